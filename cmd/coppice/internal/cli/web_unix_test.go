//go:build unix

package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestWebOpensABrowserThatIsSignedIn: the browser gets a file with an address, whose code signs it in
// once. The server ends with Ctrl-C.
func TestWebOpensABrowserThatIsSignedIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	browser, opened := filepath.Join(dir, "browser"), filepath.Join(dir, "opened")
	if err := os.WriteFile(browser, []byte("#!/bin/sh\necho \"$1\" > "+opened+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(opened, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("coppice", "--dir", filepath.Join(dir, "sessions"), "web")
	cmd.Env = append(os.Environ(), "HOME="+dir, "BROWSER="+browser)
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	file, ok := strings.CutPrefix(firstLine(t, opened), "file://") // waits for the browser
	if !ok {
		t.Fatalf("the browser was started with %q, which others see", file)
	}
	leads, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read %s: %v, %v", file, info.Mode(), err)
	}
	_, address, _ := strings.Cut(string(leads), `content="0;url=`)
	address, _, _ = strings.Cut(address, `"`)
	said := bufio.NewScanner(out)
	said.Scan()
	page, code, ok := strings.Cut(address, "/#sign-in=")
	if !ok || !strings.HasPrefix(page, "http://127.0.0.1:") || !strings.Contains(said.Text(), page+" is open in your browser") || strings.Contains(said.Text(), code) {
		t.Fatalf("the browser got %q, and people %q", address, said.Text())
	}
	for _, want := range []int{http.StatusOK, http.StatusUnauthorized} {
		body, _ := json.Marshal(map[string]string{"code": code})
		r, err := http.NewRequestWithContext(t.Context(), "POST", page+"/web/sign-in", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("signing in: %s instead of %d", resp.Status, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", file, err)
	}
}

// firstLine waits for a line in a named pipe.
func firstLine(t *testing.T, pipe string) string {
	t.Helper()
	f, err := os.OpenFile(pipe, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Scan()
	return lines.Text()
}
