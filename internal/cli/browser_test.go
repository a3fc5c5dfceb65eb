package cli

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// findBrowser returns a Chromium. In CI there has to be one: scripts/deps.sh
// installs it.
func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("there is no browser; scripts/deps.sh installs one")
	}
	t.Skip("there is no Chromium; scripts/deps.sh installs one")
	return ""
}

// A page of a session in which everything is hostile, opened in a real browser:
// no script of the session runs, nothing is fetched, and the title is text.
func TestBrowserRunsNothingOfASession(t *testing.T) {
	browser := findBrowser(t)
	var mu sync.Mutex
	var fetched []string
	var page atomic.Pointer[[]byte]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/page" {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(*page.Load())
			return
		}
		mu.Lock()
		fetched = append(fetched, r.URL.Path)
		mu.Unlock()
	}))
	defer server.Close()

	dir := filepath.Join(t.TempDir(), "sessions")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	// What a script does is seen in the document, and what is fetched by the server.
	act := "document.body.setAttribute('data-pwned','yes')"
	attack := `</title></script></style>--><script>` + act + `</script><img src=x onerror="` + act + `"><img src="` + server.URL + `/image.png">` +
		`<svg onload="` + act + `"><iframe src="` + server.URL + `/frame"></iframe><link rel=stylesheet href="` + server.URL + `/style.css">` +
		`"'><a href="javascript:` + act + `">x</a> ![x](` + server.URL + `/md.png)`
	lines := hostileLines("page")
	for i := range lines {
		lines[i] = replaced(lines[i], evil, attack).(fields)
	}
	writeLines(t, filepath.Join(dir, "page.jsonl"), lines)
	var out, talked bytes.Buffer
	env := map[string]string{"COPPICE_HOME": dir, "HOME": filepath.Dir(dir)}
	getenv := func(name string) string { return env[name] }
	a := &app{talk: newTalk(&out, &talked, getenv), stdin: strings.NewReader(""), getenv: getenv}
	if code := a.run(t.Context(), []string{"export", "page", "--format", "html", "--leaf", "id"}); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &talked)
	}
	exported := out.Bytes()
	page.Store(&exported)

	dom := dumpDOM(t, browser, server.URL+"/page")
	if strings.Contains(dom, "data-pwned=") {
		t.Error("a script of the session ran")
	}
	if !strings.Contains(dom, "&lt;/title&gt;&lt;/script&gt;") || !strings.Contains(dom, "<title>title&lt;/title&gt;") {
		t.Errorf("the title or the text is not there as text:\n%.2000s", dom)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, path := range fetched {
		if path != "/favicon.ico" { // the browser's own wish
			t.Errorf("the page fetched %s", path)
		}
	}

	// The same in a page that does not escape it is seen: the test can fail.
	unsafe := []byte("<!DOCTYPE html><title>x</title><body><script>" + act + "</script>")
	page.Store(&unsafe)
	if dom := dumpDOM(t, browser, server.URL+"/page"); !strings.Contains(dom, "data-pwned=") {
		t.Errorf("the browser does not run scripts, so the test shows nothing:\n%.2000s", dom)
	}
}

// replaced returns a value with a text in all of its strings and keys replaced.
func replaced(v any, old, by string) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, old, by)
	case []string:
		out := make([]string, len(v))
		for i := range v {
			out[i] = strings.ReplaceAll(v[i], old, by)
		}
		return out
	case fields:
		out := make(fields, len(v))
		for key, value := range v {
			out[strings.ReplaceAll(key, old, by)] = replaced(value, old, by)
		}
		return out
	case []fields:
		out := make([]fields, len(v))
		for i := range v {
			out[i] = replaced(v[i], old, by).(fields)
		}
		return out
	}
	return v
}

// dumpDOM opens a page in a browser, lets its scripts run, and returns what the
// document is then.
func dumpDOM(t *testing.T, browser, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	defer func(began time.Time) { t.Logf("the browser took %v", time.Since(began).Round(time.Millisecond)) }(time.Now())
	host := strings.TrimPrefix(url, "http://")
	host, _, _ = net.SplitHostPort(host[:strings.Index(host, "/")])
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-extensions", "--disable-background-networking", "--user-data-dir="+t.TempDir(),
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE "+host, "--timeout=3000", "--dump-dom", url)
	var said bytes.Buffer
	cmd.Stderr = &said
	dom, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %.2000s", err, said.String())
	}
	return string(dom)
}
