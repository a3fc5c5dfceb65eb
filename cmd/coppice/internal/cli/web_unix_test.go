//go:build unix

package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
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
	cmd := exec.Command("coppice", "--dir", filepath.Join(dir, "sessions"), "web", "--addr", "127.0.0.1:0")
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

// webServer is a coppice web that prints its address.
type webServer struct {
	*testing.T
	cmd  *exec.Cmd
	said []string // what it said before the address
	page string   // its address, without the code
	code string
}

// startWeb starts a coppice web for a user, and waits until it serves.
func startWeb(t *testing.T, user string, args ...string) *webServer {
	t.Helper()
	w := &webServer{T: t, cmd: exec.Command("coppice", append([]string{"web", "--print"}, args...)...)}
	w.cmd.Env = append(os.Environ(), "HOME="+user, "COPPICE_HOME="+filepath.Join(user, "sessions"), "NO_COLOR=1")
	out, err := w.cmd.StderrPipe()
	if err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if page, code, ok := strings.Cut(strings.TrimSpace(lines.Text()), "/#sign-in="); ok {
			w.page, w.code = page, code
			return w
		}
		w.said = append(w.said, lines.Text())
	}
	t.Fatalf("it ended, and said %q", w.said)
	return nil
}

// stop ends the server as Ctrl-C does.
func (w *webServer) stop() {
	w.Helper()
	http.DefaultClient.CloseIdleConnections()
	if err := w.cmd.Process.Signal(syscall.SIGINT); err != nil {
		w.Fatal(err)
	}
	if err := w.cmd.Wait(); err != nil {
		w.Error(err)
	}
}

// visitor is a browser: it keeps what signing in gave it.
type visitor struct{ cookie, secret string }

// signIn signs a browser in with the code of the server.
func (w *webServer) signIn() *visitor {
	w.Helper()
	resp, err := http.Post(w.page+"/web/sign-in", "application/json", strings.NewReader(`{"code":"`+w.code+`"}`))
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	var given struct{ Page string }
	if err := json.NewDecoder(resp.Body).Decode(&given); err != nil || given.Page == "" {
		w.Fatalf("signing in: %s, %v", resp.Status, err)
	}
	return &visitor{resp.Header.Get("Set-Cookie"), given.Page}
}

// get asks for something, and returns the answer.
func (w *webServer) get(v *visitor, path string) (status int, body string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), "GET", w.page+path, nil)
	if err != nil {
		w.Fatal(err)
	}
	if v != nil {
		cookie, _, _ := strings.Cut(v.cookie, ";")
		r.Header.Set("Cookie", cookie)
		r.Header.Set("Coppice-Page", v.secret)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// freeAddr returns an address at which nothing listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestWebIsWhereItWasYesterday: a link to a session leads to it again when the server was started
// again. What a browser had of the last run signs nobody in.
func TestWebIsWhereItWasYesterday(t *testing.T) {
	t.Parallel()
	user, addr := t.TempDir(), freeAddr(t)
	w := startWeb(t, user, "--addr", addr)
	yesterday := w.signIn()
	if status, body := w.get(yesterday, "/v1/sessions"); status != http.StatusOK || w.page != "http://"+addr {
		t.Fatalf("%s: %d, %s", w.page, status, body)
	}
	w.stop()
	w = startWeb(t, user, "--addr", addr)
	defer w.stop()
	if status, _ := w.get(nil, "/s/nightly"); status != http.StatusOK {
		t.Errorf("a link of yesterday: %d", status)
	}
	if status, _ := w.get(yesterday, "/v1/sessions"); status != http.StatusUnauthorized {
		t.Errorf("a browser that was signed in to the last run: %d", status)
	}
	if status, body := w.get(w.signIn(), "/v1/sessions"); status != http.StatusOK {
		t.Errorf("signed in again: %d, %s", status, body)
	}
}

// TestWebRunsOnce: who calls it twice gets the page that they have, signed in. One that can do more
// is another server, and so is one on another home.
func TestWebRunsOnce(t *testing.T) {
	t.Parallel()
	user := t.TempDir()
	w := startWeb(t, user, "--addr", "127.0.0.1:0")
	again := startWeb(t, user)
	if again.page != w.page || !strings.Contains(strings.Join(again.said, " "), "runs already") {
		t.Errorf("the second one is at %s, the first at %s, and says %q", again.page, w.page, again.said)
	}
	if err := again.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if status, body := w.get(again.signIn(), "/v1/sessions"); status != http.StatusOK {
		t.Errorf("the code of the second one: %d, %s", status, body)
	}
	for _, args := range [][]string{{"--tools"}, {"--import"}, {"--dir", filepath.Join(user, "other")}, {"--addr", freeAddr(t)}} {
		other := startWeb(t, user, args...)
		if other.page == w.page {
			t.Errorf("%v got the page of another", args)
		}
		other.stop()
	}
	notes, err := filepath.Glob(filepath.Join(user, ".cache", "coppice", "*.web"))
	if err != nil || len(notes) != 1 {
		t.Fatalf("the notes are %q, %v", notes, err)
	}
	if info, err := os.Stat(notes[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read the token in %s: %v, %v", notes[0], info.Mode(), err)
	}
	w.stop()
	if _, err := os.Stat(notes[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", notes[0], err)
	}
}

// TestADeadWebIsNotAsked: it left its note. Whatever listens at its address by now gets nothing.
func TestADeadWebIsNotAsked(t *testing.T) {
	t.Parallel()
	user, addr := t.TempDir(), freeAddr(t)
	w := startWeb(t, user, "--addr", addr)
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = w.cmd.Wait()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	asked := make(chan struct{}, 1)
	go func() {
		if _, err := l.Accept(); err == nil {
			asked <- struct{}{}
		}
	}()
	other := startWeb(t, user)
	defer other.stop()
	if other.page == w.page {
		t.Error("it opened the page of another program")
	}
	select {
	case <-asked:
		t.Error("it asked another program")
	default:
	}
}

// TestWebMovesOverForOtherPrograms: its own address is taken.
func TestWebMovesOverForOtherPrograms(t *testing.T) {
	t.Parallel()
	if l, err := net.Listen("tcp", webAddr); err == nil { // otherwise it is taken already
		defer l.Close()
	}
	w := startWeb(t, t.TempDir())
	defer w.stop()
	if said := strings.Join(w.said, " "); w.page == "http://"+webAddr || !strings.Contains(said, "another program is at http://"+webAddr+", so the page is at "+w.page) {
		t.Errorf("it is at %s, and says %q", w.page, said)
	}
}

// TestWebShowsWhatAnAgentHasJustBegun: sessions of an agent were imported once. Another one is on the
// page soon, and grows there.
func TestWebShowsWhatAnAgentHasJustBegun(t *testing.T) {
	t.Parallel()
	user := t.TempDir()
	begin := func(n int, texts ...string) {
		t.Helper()
		id := fmt.Sprintf("%08d-4d57-4a54-9be1-3f6b1b2f6f10", n)
		path := filepath.Join(user, ".claude", "projects", "-w", id+".jsonl")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, text := range texts {
			fmt.Fprintf(f, `{"type":"user","uuid":"%08d-0000-4000-8000-%012x","parentUuid":null,"sessionId":%q,"cwd":"/w","version":"2.0.0","timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":%q}}`+"\n", n, len(text), id, text)
		}
	}
	begin(1, "prune the hazel")
	cmd := exec.Command("coppice", "import", "--all")
	cmd.Env = append(os.Environ(), "HOME="+user, "COPPICE_HOME="+filepath.Join(user, "sessions"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w := startWeb(t, user, "--addr", "127.0.0.1:0")
	defer w.stop()
	v := w.signIn()
	sees := func(path, text string) {
		t.Helper()
		began := time.Now()
		for {
			_, body := w.get(v, path)
			if strings.Contains(body, text) {
				t.Logf("%q is there after %v", text, time.Since(began).Round(time.Millisecond))
				return
			}
			if time.Since(began) > 30*time.Second {
				t.Fatalf("%s has no %q: %s", path, text, body)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	sees("/v1/sessions", "prune the hazel")
	begin(2, "water the fern")
	sees("/v1/sessions", "water the fern")
	begin(2, "and the moss, too")
	sees("/v1/search?query=moss", "and the moss, too")
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
