//go:build unix

package render_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/needs"
	"github.com/coppice-dev/coppice/session"
)

// tab is a page in a real browser, driven through its debugging pipe.
type tab struct {
	t       testing.TB
	in      io.Writer
	out     *bufio.Reader
	session string
	last    int
}

// findBrowser returns a Chromium.
func findBrowser(t testing.TB) string {
	t.Helper()
	needs.This(t, needs.Chromium)
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("there is no browser; scripts/deps.sh installs one")
	return ""
}

// openTab starts a browser. It can reach this machine and nothing else.
func openTab(t testing.TB) *tab {
	t.Helper()
	read, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(findBrowser(t), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-extensions", "--disable-background-networking", "--user-data-dir="+t.TempDir(), "--window-size=1200,900",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{read, write}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = read.Close(), write.Close()
	k := &tab{t: t, in: out, out: bufio.NewReaderSize(in, 1<<20)}
	t.Cleanup(func() {
		_, _ = io.WriteString(out, `{"id":1000000,"method":"Browser.close"}`+"\x00")
		stop := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		_, _ = io.Copy(io.Discard, in)
		_ = cmd.Wait()
		stop.Stop()
		_, _ = out.Close(), in.Close()
	})
	hang := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { hang.Stop() })
	var target struct{ TargetID string }
	k.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	k.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	k.session = attached.SessionID
	return k
}

// call asks the browser for something and waits for the answer.
func (k *tab) call(method string, params map[string]any, answer any) {
	k.t.Helper()
	k.last++
	message := map[string]any{"id": k.last, "method": method, "params": params}
	if k.session != "" {
		message["sessionId"] = k.session
	}
	line, err := json.Marshal(message)
	if err == nil {
		_, err = k.in.Write(append(line, 0))
	}
	if err != nil {
		k.t.Fatal(err)
	}
	for {
		line, err := k.out.ReadBytes(0)
		if err != nil {
			k.t.Fatalf("the browser is gone: %v", err)
		}
		var got struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(line[:len(line)-1], &got); err != nil {
			k.t.Fatal(err)
		}
		if got.ID != k.last {
			continue
		}
		if got.Error != nil {
			k.t.Fatalf("%s: %s", method, got.Error.Message)
		}
		if answer != nil {
			if err := json.Unmarshal(got.Result, answer); err != nil {
				k.t.Fatal(err)
			}
		}
		return
	}
}

// eval returns what an expression is in the page, as text.
func (k *tab) eval(expression string) string {
	k.t.Helper()
	var got struct {
		Result           struct{ Value any }
		ExceptionDetails *struct {
			Exception struct{ Description string }
		}
	}
	k.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &got)
	if got.ExceptionDetails != nil {
		k.t.Fatalf("%s: %s", expression, got.ExceptionDetails.Exception.Description)
	}
	return fmt.Sprint(got.Result.Value)
}

// visit opens a page and waits until it is there.
func (k *tab) visit(url string) {
	k.t.Helper()
	k.call("Page.navigate", map[string]any{"url": url}, nil)
	k.await(`document.readyState + " " + (location.href !== "about:blank")`, "complete true")
}

// await waits until an expression has a value.
func (k *tab) await(expression, want string) {
	k.t.Helper()
	got := ""
	for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(25 * time.Millisecond) {
		if got = k.eval(expression); got == want {
			return
		}
	}
	k.t.Errorf("%s is %s, want %s", expression, got, want)
}

// press presses keys: a character each, or one that has a name.
func (k *tab) press(keys ...string) {
	k.t.Helper()
	for _, key := range keys {
		press := map[string]any{"type": "keyDown", "key": key}
		switch {
		case len(key) == 1:
			press["text"] = key
		case key == "Enter":
			press["text"], press["windowsVirtualKeyCode"] = "\r", 13
		}
		k.call("Input.dispatchKeyEvent", press, nil)
		k.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
	}
}

// server serves pages and remembers what else was asked for.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	pages   map[string]string
	fetched []string
}

func serve(t testing.TB) *server {
	t.Helper()
	s := &server{pages: make(map[string]string)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if page, ok := s.pages[r.URL.Path]; ok {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, page)
			return
		}
		if r.URL.Path != "/favicon.ico" { // the browser's own wish
			s.fetched = append(s.fetched, r.URL.Path)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) put(path, page string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[path] = page
	return s.URL + path
}

// A page of a session in which everything is hostile: no script of the session
// runs, nothing is fetched, and what was written is there as text.
func TestBrowserRunsNothingOfASession(t *testing.T) {
	t.Parallel()
	k, s := openTab(t), serve(t)
	// What a script does is seen in the document, and what is fetched by the server.
	act := "document.body.setAttribute('data-pwned','yes')"
	attack := `</title></script></style>--><script>` + act + `</script><img src=x onerror="` + act + `"><img src="` + s.URL + `/image.png">` +
		`<svg onload="` + act + `"><iframe src="` + s.URL + `/frame"></iframe><link rel=stylesheet href="` + s.URL + `/style.css">` +
		`<style>body{display:none}</style>"'><a href="javascript:` + act + `">x</a> ![x](` + s.URL + `/md.png)`
	k.visit(s.put("/page", attacked(t, attack)))
	for i := range 3 { // also when links are followed
		k.eval(fmt.Sprintf(`document.querySelectorAll("main a:not([href^='http'])").forEach((a, i) => { if (i %% 3 === %d) a.click() })`, i))
	}
	if k.eval(`document.body.hasAttribute("data-pwned")`) != "false" {
		t.Error("a script of the session ran")
	}
	if got := k.eval(`document.title`); !strings.HasPrefix(got, "title</title></script>") {
		t.Errorf("the title is %q", got)
	}
	if got := k.eval(`getComputedStyle(document.body).display`); got != "block" {
		t.Errorf("a style of the session counts: %s", got)
	}
	if got := k.eval(`document.querySelectorAll("main script, main img, main svg, main iframe, main link, main style").length`); got != "0" {
		t.Errorf("%s elements of the session", got)
	}
	s.mu.Lock()
	fetched := s.fetched
	s.mu.Unlock()
	if len(fetched) > 0 {
		t.Errorf("the page fetched %q", fetched)
	}

	// The same in a page that does not escape it is seen: the test can fail.
	k.visit(s.put("/unsafe", "<!DOCTYPE html><title>x</title><body><script>"+act+"</script>"))
	k.await(`document.body.hasAttribute("data-pwned")`, "true")
}

// reading is a talk with branches, tools and thinking.
func reading(t testing.TB) string {
	t.Helper()
	k := htmlNewTalk(t)
	first := k.say("user", text("The first prompt."))
	k.say("assistant", thinking("A secret thought."), text("A needle in the open."), bash("a", "make"))
	k.say("tool", result("a", "a needle in the output"))
	k.say("user", text("The abandoned prompt."))
	k.say("assistant", text("A needle on another branch."))
	k.branch(first)
	k.say("assistant", text("The answer."), bash("b", "ls"))
	k.say("tool", result("b", "one file"))
	k.say("user", text("The second prompt."))
	k.say("assistant", bash("c", "date"))
	k.say("tool", result("c", "Monday"))
	k.say("assistant", text("The end."))
	return k.page()
}

const (
	shown    = `Array.from(document.querySelectorAll("main article")).filter(a => a.checkVisibility()).map(a => a.id).join(" ")`
	selected = `(document.querySelector("article.here") || {}).id`
)

func TestReadingThePage(t *testing.T) {
	t.Parallel()
	k, s := openTab(t), serve(t)
	k.visit(s.put("/page", reading(t)))
	k.await(shown, "e1 e6 e8 e9 e11")

	t.Run("keys move from message to message", func(t *testing.T) {
		k.press("j")
		k.await(selected, "e1")
		k.press("j", "j")
		k.await(selected, "e8")
		k.press("k")
		k.await(selected, "e6")
		k.press("n")
		k.await(selected, "e8")
		k.press("p")
		k.await(selected, "e1")
		k.press("G")
		k.await(selected, "e11")
		k.press("g")
		k.await(selected, "e1")
	})
	t.Run("branches are switched in place", func(t *testing.T) {
		k.press("]")
		k.await(shown, "e1 e2 e4 e5")
		k.await(`document.querySelectorAll(".marks li:not([hidden])").length`, "2")
		k.eval(`document.querySelector('.branches a[href="#e6"]').click()`)
		k.await(shown, "e1 e6 e8 e9 e11")
		k.await(`document.querySelector('.branches a[aria-current]').hash`, "#e6")
	})
	t.Run("filters hide tools and cards of nothing else", func(t *testing.T) {
		k.press("t")
		k.await(shown, "e1 e6 e8 e11")
		k.await(`Array.from(document.querySelectorAll(".tool")).some(e => e.checkVisibility())`, "false")
		k.press("t")
		k.await(shown, "e1 e6 e8 e9 e11")
	})
	t.Run("find reaches what is folded, filtered or on another branch", func(t *testing.T) {
		k.press("t", "/")
		for _, c := range "NEEDLE in" {
			k.press(string(c))
		}
		k.await(`document.querySelector("#find output").textContent`, "1 / 2")
		k.await(selected+` + " " + document.querySelector("#e2").checkVisibility()`, "e2 true")
		k.press("Enter")
		k.await(`document.querySelector("#find output").textContent`, "2 / 2")
		k.await(`document.querySelector("#e2 .tool").open && document.querySelector("#e3").checkVisibility()`, "true")
		k.await(`String(Array.from(CSS.highlights.get("here"))[0])`, "needle in")
		k.press("Escape")
		k.await(`document.querySelector("#find").hidden`, "true")
	})
	t.Run("a link leads to its entry, whatever hides it", func(t *testing.T) {
		k.visit(s.URL + "/page#e10")
		k.await(`document.querySelector("#e10").checkVisibility() + " " + document.querySelector("#e10").textContent`, "true Monday")
		k.visit(s.URL + "/page#e5")
		k.await(shown, "e1 e2 e4 e5")
	})
	t.Run("light and dark", func(t *testing.T) {
		k.press("d")
		dark := `getComputedStyle(document.body).backgroundColor`
		k.await(`document.documentElement.dataset.theme`, "dark")
		before := k.eval(dark)
		k.press("d")
		k.await(`document.documentElement.dataset.theme`, "light")
		if k.eval(dark) == before {
			t.Error("the page looks the same")
		}
	})
}

// Images can be looked at by themselves, those that a tool answered with, too.
func TestImagesByThemselves(t *testing.T) {
	t.Parallel()
	const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	picture := session.Image("image/png", pixel)
	talk := htmlNewTalk(t)
	talk.say("user", text("Draw."))
	talk.say("assistant", text("Here."), bash("a", "draw"))
	talk.say("tool", session.Content{Type: "tool_result", ToolResult: &session.ToolResultContent{ToolUseID: "a", Parts: []session.Content{picture}}})
	asked := talk.say("user", text("And this?"), picture)
	talk.say("user", text("On another branch."), picture)
	talk.branch(asked)
	talk.say("assistant", text("The end."))
	k, s := openTab(t), serve(t)
	k.visit(s.put("/page", talk.page()))
	k.await(shown, "e1 e2 e4 e6")
	k.press("t") // which hides the tool's image, until all images are wanted
	k.press("i")
	k.await(shown, "e2 e4 e5")
	k.await(`Array.from(document.querySelectorAll("main img")).filter(i => i.checkVisibility()).length`, "3")
	k.press("i")
	k.await(shown, "e1 e2 e4 e6")
	k.press("i")
	k.visit(s.URL + "/page#e6") // what a link leads to is shown
	k.await(shown, "e1 e2 e4 e6")

	k.visit(s.put("/other", reading(t)))
	k.await(`document.querySelector("#images").hidden`, "true")
}

// Branches that are so long that whole groups of sections are hidden.
func TestLongBranchesAreSwitchedInPlace(t *testing.T) {
	t.Parallel()
	k, s := openTab(t), serve(t)
	talk := htmlNewTalk(t)
	first := talk.say("user", text("Go."))
	for range 2 {
		talk.branch(first)
		for i := range 1000 {
			talk.say("assistant", text(fmt.Sprintf("Step %d.", i)))
		}
	}
	k.visit(s.put("/page", talk.page()))
	const visible = `["#e2", "#e900", "#e1002", "#e1900"].map(id => document.querySelector(id).checkVisibility()).join(" ")`
	k.await(visible, "false false true true")
	k.press("j", "[")
	k.await(visible, "true true false false")
	k.press("G")
	k.await(selected, "e1001")
	k.press("g", "n", "j")
	k.await(selected, "e2")
	k.press("[")
	k.await(visible, "false false true true")
}
