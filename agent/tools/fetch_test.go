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
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	r, err := tools.NewRules("", []string{"fetch(127.0.0.1:*)"}, []string{"fetch(*.evil.example)"})
	if err != nil {
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
	b.fails("it is not text but image/png", "fetch", "url", h.URL+"/image")
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
	if got, err := r.RulesFor(call("fetch", args("url", "https://Example.com:8443/a?b"))); err != nil || !slices.Equal(got, []string{"fetch(example.com:8443)"}) {
		t.Errorf("%q: %v", got, err)
	}
	if _, err := tools.NewRules("", []string{"fetch(https://example.com)"}, nil); err == nil {
		t.Error("an address is no host")
	}
}

func TestFetchReadsCharacters(t *testing.T) {
	t.Parallel()
	pages := map[string]struct{ kind, body, want string }{
		"/utf8":     {"text/plain; charset=UTF-8", "日本 é", "日本 é"},
		"/western":  {"text/plain; charset=ISO-8859-1", "caf\xe9 \x80 \x93q\x94", "café € “q”"},
		"/windows":  {"text/html; charset=windows-1252", "<p>\x8cuvre</p>", "Œuvre"},
		"/meta":     {"text/html", "<meta charset='latin1'><p>na\xefve</p>", "naïve"},
		"/metautf8": {"text/html", "<meta http-equiv=Content-Type content=\"text/html; charset=utf-8\"><p>naïve \xff</p>", "naïve \uFFFD"},
		"/mark":     {"text/plain; charset=latin1", "\uFEFFé", "é"},
		"/nothing":  {"text/plain", "日本", "日本"},
		"/guess":    {"text/plain", "caf\xe9", "café"},
		"/json":     {"application/json", "{\"a\":\"é\"}", "{\"a\":\"é\"}"},
	}
	strange := map[string]struct{ kind, body string }{
		"shift_jis": {"text/html; charset=shift_jis", "\x93\xfa"},
		"gbk":       {"text/html", "<meta charset=gbk>\xc8\xd5"},
		"utf-16":    {"text/plain", "\xff\xfea\x00"},
	}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, body := pages[r.URL.Path].kind, pages[r.URL.Path].body
		if other, ok := strange[r.URL.Path[1:]]; ok {
			kind, body = other.kind, other.body
		}
		if r.URL.Path == "/endless" { // it is cut off in the middle of a character
			kind, body = "text/plain", strings.Repeat("日", 2<<20)
		}
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(body))
	}))
	defer h.Close()
	r, err := tools.NewRules("", []string{"fetch(127.0.0.1:*)"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, tools.Options{Rules: r})
	for path, page := range pages {
		if got := b.run("fetch", "url", h.URL+path); got != page.want {
			t.Errorf("%s: %q, want %q", path, got, page.want)
		}
	}
	if got := b.run("fetch", "url", h.URL+"/endless"); !strings.HasPrefix(got, "日") || !strings.HasSuffix(got, "日") {
		t.Errorf("a page that is cut off ends with %q", got[max(0, len(got)-10):])
	}
	for name := range strange {
		b.fails(`the page is in "`+name+`", which fetch cannot read`, "fetch", "url", h.URL+"/"+name)
	}
}

// A rule is for the usual ports unless it names another, and no rule for every host reaches
// what is not public. What the person is told is not public, they can approve.
func TestFetchAsksAboutWhatIsNotPublic(t *testing.T) {
	t.Parallel()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("here")) }))
	defer h.Close()
	port := h.URL[strings.LastIndex(h.URL, ":"):]
	for _, tt := range []struct {
		allow, url string
		want       agent.Decision
	}{
		{"fetch", "https://example.com", agent.Allow},
		{"fetch", "https://example.com:8443", agent.Allow},
		{"fetch(example.com)", "http://example.com:80/x", agent.Allow},
		{"fetch(example.com)", "https://example.com/x", agent.Allow},
		{"fetch(example.com)", "https://example.com:8443", ""},
		{"fetch(example.com)", "http://example.com:443", ""},
		{"fetch(example.com:8443)", "https://example.com:8443", agent.Allow},
		{"fetch(example.com:8443)", "https://example.com", ""},
		{"fetch(example.com:443)", "https://example.com", agent.Allow},
		{"fetch(example.com:*)", "https://example.com:1", agent.Allow},
		{"fetch", h.URL, ""},
		{"fetch(*:*)", h.URL, ""},
		{"fetch", "http://localhost", ""},
		{"fetch(127.0.0.1)", h.URL, ""},
		{"fetch(127.0.0.1" + port + ")", h.URL, agent.Allow},
		{"fetch([::1]:8080)", "http://[::1]:8080", agent.Allow},
		{"fetch(::1)", "http://[::1]", agent.Allow},
		{"fetch(::1)", "http://[::1]:8080", ""},
	} {
		r, err := tools.NewRules("", []string{tt.allow}, []string{"fetch(evil.example)", "fetch(odd.example:8080)"})
		if err != nil {
			t.Fatal(err)
		}
		if d, _ := r.Decide(call("fetch", args("url", tt.url))); d != tt.want {
			t.Errorf("%s with %s: %q", tt.url, tt.allow, d)
		}
		for url, want := range map[string]bool{"http://evil.example:8080": true, "http://odd.example:8080": true, "http://odd.example": false} {
			if d, _ := r.Decide(call("fetch", args("url", url))); (d == agent.Deny) != want {
				t.Errorf("%s: %q", url, d)
			}
		}
	}
	b := newBench(t, tools.Options{})
	if ask, why := b.asks("fetch", args("url", h.URL)); !ask || !strings.Contains(why, "not a public address") {
		t.Errorf("it asks: %v, %q", ask, why)
	}
	if got := b.run("fetch", "url", h.URL); got != "here" {
		t.Errorf("after it was approved: %q", got)
	}
}
