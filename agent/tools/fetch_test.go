package tools_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/agent/tools"
)

func TestFetch(t *testing.T) {
	t.Parallel()
	var reached int
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached++
		say := func(kind, text string) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write([]byte(text))
		}
		switch r.URL.Path {
		case "/html":
			say("text/html; charset=iso-8859-1", "<html><head><title>T</title><style>p{}</style></head><body><h1>Caf\xe9</h1><script>evil()</script>\n<p>One  <b>two</b>\n<a href='/x'>three</a></p>"+
				"<ul><li>a<li>b</ul><pre>x\n  y</pre>&amp; end</body></html>")
		case "/json":
			say("application/json", `{"a":"é"}`)
		case "/large":
			say("text/plain", strings.Repeat("x", 100_000)+"end")
		case "/image":
			say("image/png", "\x89PNG")
		case "/none":
			http.NotFound(w, r)
		case "/moved":
			http.Redirect(w, r, "/json", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "http://other.example/x", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		}
	}))
	defer h.Close()
	closed := newBench(t, tools.Options{})
	closed.fails("not a public address", "fetch", "url", h.URL+"/json")
	r, err := tools.NewRules("", []string{"fetch", "fetch(*)"}, nil) // every host is no name of one
	closed.must(err)
	closed = newBench(t, tools.Options{Rules: r})
	closed.fails("a rule such as fetch(127.0.0.1)", "fetch", "url", h.URL+"/json")
	if reached != 0 {
		t.Error("the server was reached")
	}
	if r, err = tools.NewRules("", []string{"fetch(127.0.0.1)"}, []string{"fetch(*.evil.example)"}); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, tools.Options{Rules: r, MaxOutput: 1000})
	if got, want := b.run("fetch", "url", h.URL+"/html"), "# Café\n\nOne two [three](/x)\n\n- a\n- b\n\nx\n  y\n& end"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, path := range []string{"/json", "/moved"} {
		if got := b.run("fetch", "url", h.URL+path); got != `{"a":"é"}` {
			t.Errorf("%s: %q", path, got)
		}
	}
	if got := b.run("fetch", "url", h.URL+"/large"); len(got) > 1100 || !strings.HasSuffix(got, "end") {
		t.Errorf("%d bytes", len(got))
	}
	b.fails("it is no text but image/png", "fetch", "url", h.URL+"/image")
	b.fails("404 Not Found\n404 page", "fetch", "url", h.URL+"/none")
	b.fails("has moved to http://other.example/x", "fetch", "url", h.URL+"/away")
	b.fails("has moved to /loop", "fetch", "url", h.URL+"/loop")
	b.fails("http:// or https://", "fetch", "url", "file:///etc/passwd")
	b.fails("user or a password", "fetch", "url", "https://me:x@example.com")
	for url, want := range map[string]agent.Decision{h.URL: agent.Allow, "https://a.EVIL.example/x": agent.Deny, "https://example.com": "", "ftp://127.0.0.1": ""} {
		if d, _ := r.Decide(call("fetch", args("url", url))); d != want {
			t.Errorf("%s: %q", url, d)
		}
	}
	if ask, _ := b.asks("fetch", args("url", "https://example.com")); !ask {
		t.Error("it does not ask")
	}
	if got, err := r.RulesFor(call("fetch", args("url", "https://Example.com:8443/a?b"))); err != nil || !slices.Equal(got, []string{"fetch(example.com)"}) {
		t.Errorf("%q: %v", got, err)
	}
	if _, err := tools.NewRules("", []string{"fetch(https://example.com)"}, nil); err == nil {
		t.Error("an address is no host")
	}
}
