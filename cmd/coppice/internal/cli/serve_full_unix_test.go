//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server"
)

// ask sends a request to the server and returns its answer.
func (k *killable) ask(t *testing.T, method, path, body string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, k.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(read)), "\n")
	var last server.Message
	if json.Unmarshal([]byte(lines[len(lines)-1]), &last) != nil || last.Error == nil {
		return resp.StatusCode, string(read)
	}
	problem, err := json.Marshal(last.Error) // on a busy machine, a stream begins before its error
	if err != nil {
		t.Fatal(err)
	}
	return last.Error.Status, string(problem)
}

// TestServeOnAFullDisk checks that writers learn why their requests fail, and that reading still works.
// Everything that was acknowledged is there, and the same request succeeds once there is room.
func TestServeOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t)
	k := &killable{dir: filepath.Join(disk, "sessions"), env: []string{"HOME=" + t.TempDir()}}
	k.start(t)
	defer k.kill()
	var made home.CreateResult
	if _, text := k.ask(t, "POST", "/v1/sessions", `{"title": "Otters"}`); json.Unmarshal([]byte(text), &made) != nil {
		t.Fatal(text)
	}
	entries := "/v1/sessions/" + made.Session + "/entries"
	said := 0
	say := func() (status int, text string) {
		body := fmt.Sprintf(`{"once": "%d", "message": {"role": "user", "content": [{"type": "text", "text": "otter-%d. %s"}]}}`, said, said, strings.Repeat("afloat ", 500))
		if status, text = k.ask(t, "POST", entries, body); status == http.StatusOK {
			said++
		}
		return status, text
	}
	// isThere looks for each otter that was acknowledged.
	isThere := func() {
		t.Helper()
		status, text := k.ask(t, "GET", entries, "")
		for i := range said {
			if n := strings.Count(text, fmt.Sprintf("otter-%d. ", i)); status != http.StatusOK || n != 1 {
				t.Errorf("%d is there %d times: %d", i, n, status)
			}
		}
	}
	// logs returns the sessions that there are, of which each must end with a whole line.
	logs := func() []string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(k.dir, "*.jsonl*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			if text, err := os.ReadFile(path); err != nil || !strings.HasSuffix(string(text), "\n") {
				t.Errorf("%s ends with %q, %v", path, text[max(0, len(text)-50):], err)
			}
		}
		return found
	}
	for range 5 {
		if status, text := say(); status != http.StatusOK {
			t.Fatalf("there is room: %d %s", status, text)
		}
	}
	ballast := filepath.Join(disk, "full")
	for range 2 { // times the disk becomes full
		fill(t, ballast)
		status, text := say()
		for status == http.StatusOK { // as long as its last block has room
			status, text = say()
		}
		before := logs()
		requests := map[string]string{entries: "", "/v1/sessions": `{"title": "More otters"}`, "/v1/turns": `{"text": "say hello"}`}
		for path, body := range requests {
			if path != entries {
				status, text = k.ask(t, "POST", path, body)
			}
			var p server.Problem
			err := json.Unmarshal([]byte(text), &p)
			if err != nil || status != http.StatusInsufficientStorage || p.Kind != home.KindNoSpace || p.Hint == "" || !strings.Contains(p.Detail, "no space left") || strings.Contains(text, disk) {
				t.Errorf("POST %s on a full disk: %d %s", path, status, text)
			}
		}
		for _, path := range []string{"/readyz", "/v1/sessions", "/v1/search?query=afloat", "/v1/sessions/last/export?format=md"} {
			if status, text := k.ask(t, "GET", path, ""); status != http.StatusOK {
				t.Errorf("GET %s on a full disk: %d %s", path, status, text)
			}
		}
		if left := logs(); !slices.Equal(left, before) {
			t.Errorf("before the disk was full there were %q, and now %q", before, left)
		}
		if left, err := filepath.Glob(filepath.Join(k.dir, ".coppice", "tmp", "*")); err != nil || len(left) > 0 {
			t.Errorf("half of something is left: %q, %v", left, err)
		}
		isThere()
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if status, text := say(); status != http.StatusOK {
				t.Errorf("there is room again: %d %s", status, text)
			}
		}
		isThere()
	}
	k.kill()
	if out, err := program(k.dir, "fsck"); err != nil {
		t.Error(out, err)
	}
}
