package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server"
)

// doors are tokens that can be taken away.
type doors struct {
	mu     sync.Mutex
	tokens map[string]*server.Grant
}

func (d *doors) authorize(_ context.Context, token string) (*server.Grant, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := d.tokens[token]; g != nil {
		return g, nil
	}
	return nil, server.ErrUnauthorized
}

func (d *doors) revoke(token string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.tokens, token)
}

// signedIn is a browser: the headers that it sends.
func (s *served) signedIn(body string) (headers []string, in answer) {
	s.Helper()
	in = s.ask("POST", "/web/sign-in", body, "Content-Type: application/json", "Sec-Fetch-Site: same-origin")
	var got struct{ Page string }
	_ = json.Unmarshal(in.body, &got)
	cookie, _, _ := strings.Cut(in.header.Get("Set-Cookie"), ";")
	return []string{"Cookie: " + cookie, "Coppice-Page: " + got.Page, "Sec-Fetch-Site: same-origin"}, in
}

func withDoors(t *testing.T) (*served, *doors) {
	d := &doors{tokens: map[string]*server.Grant{"cop_read": {Name: "reader", Access: home.Read}, "cop_admin": {Name: "owner", Access: home.Admin}}}
	return serve(t, func(o *server.Options) { o.Authorize = d.authorize }), d
}

// A browser is signed in for no longer than its token is valid.
func TestABrowserIsSignedInAsLongAsItsToken(t *testing.T) {
	t.Parallel()
	s, d := withDoors(t)
	browser, in := s.signedIn(`{"token": "cop_read"}`)
	set := in.header.Get("Set-Cookie")
	if in.status != http.StatusOK || !strings.Contains(set, "HttpOnly") || !strings.Contains(set, "SameSite=Strict") || strings.Contains(set, "cop_read") || strings.Contains(string(in.body), "cop_read") {
		t.Fatalf("%d %q %s", in.status, set, in.body)
	}
	if got := s.ask("GET", "/v1/sessions", "", browser...); got.status != http.StatusOK {
		t.Errorf("signed in: %d %s", got.status, got.body)
	}
	if got := s.ask("POST", "/v1/sessions", "{}", browser...); got.status != http.StatusForbidden {
		t.Errorf("a reader writes: %d %s", got.status, got.body)
	}
	other, _ := s.signedIn(`{"token": "cop_admin"}`)
	d.revoke("cop_read")
	if got := s.ask("GET", "/v1/sessions", "", browser...); got.status != http.StatusUnauthorized {
		t.Errorf("the token is revoked: %d %s", got.status, got.body)
	}
	if got := s.ask("POST", "/web/sign-out", "", other...); got.status != http.StatusOK {
		t.Errorf("signing out: %d %s", got.status, got.body)
	}
	if got := s.ask("GET", "/v1/sessions", "", other...); got.status != http.StatusUnauthorized {
		t.Errorf("signed out: %d %s", got.status, got.body)
	}
	if _, in := s.signedIn(`{"token": "cop_other"}`); in.status != http.StatusUnauthorized || in.header.Get("Set-Cookie") != "" {
		t.Errorf("a wrong token: %d %s", in.status, in.body)
	}
}

// A cookie alone is worth nothing: browsers send it to other ports, too. Nor is it of use to
// other sites.
func TestOnlyThePageUsesTheCookie(t *testing.T) {
	t.Parallel()
	s, _ := withDoors(t)
	browser, _ := s.signedIn(`{"token": "cop_admin"}`)
	cookie, page := browser[0], browser[1]
	for name, headers := range map[string][]string{
		"no page":       {cookie},
		"another page":  {cookie, "Coppice-Page: none"},
		"no cookie":     {page},
		"another port":  {cookie, page, "Sec-Fetch-Site: same-site"},
		"another site":  {cookie, page, "Sec-Fetch-Site: cross-site"},
		"a wrong token": {cookie, page, "Authorization: Bearer cop_wrong"},
	} {
		if got := s.ask("GET", "/v1/sessions", "", headers...); got.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	for _, headers := range [][]string{{cookie, page, "Sec-Fetch-Site: cross-site"}, {cookie, page, "Origin: https://example.org"}} {
		if got := s.ask("POST", "/v1/sessions", "{}", headers...); got.status != http.StatusForbidden {
			t.Errorf("%s: %d %s", headers[2], got.status, got.body)
		}
	}
	if got := s.ask("POST", "/web/sign-in", `{"token": "cop_admin"}`, "Origin: https://example.org"); got.status != http.StatusForbidden || got.header.Get("Set-Cookie") != "" {
		t.Errorf("another site signs in: %d %s", got.status, got.body)
	}
	if got := s.ask("GET", "/", "", "Host: example.org"); got.status != http.StatusMisdirectedRequest {
		t.Errorf("another name: %d %s", got.status, got.body)
	}
}

// A code signs in once, with the token of the one who asked for it, and never outlives that.
func TestACodeSignsInOnce(t *testing.T) {
	t.Parallel()
	s, d := withDoors(t)
	code := func() string {
		t.Helper()
		var given struct{ Code string }
		got := s.ask("POST", "/web/code", "", "Authorization: Bearer cop_read")
		if err := json.Unmarshal(got.body, &given); err != nil || given.Code == "" {
			t.Fatalf("%d %s", got.status, got.body)
		}
		return fmt.Sprintf(`{"code": %q}`, given.Code)
	}
	if got := s.ask("POST", "/web/code", ""); got.status != http.StatusUnauthorized {
		t.Errorf("a code without a token: %d %s", got.status, got.body)
	}
	once := code()
	browser, _ := s.signedIn(once)
	if got := s.ask("GET", "/web/me", "", browser...); got.status != http.StatusOK || !strings.Contains(string(got.body), `"reader"`) {
		t.Errorf("signed in: %d %s", got.status, got.body)
	}
	if _, in := s.signedIn(once); in.status != http.StatusUnauthorized {
		t.Errorf("a second time: %d %s", in.status, in.body)
	}
	late := code()
	d.revoke("cop_read")
	if _, in := s.signedIn(late); in.status != http.StatusUnauthorized {
		t.Errorf("after the token: %d %s", in.status, in.body)
	}
}

// No more than so many browsers are remembered for a token: the oldest is forgotten, and those of
// other tokens are not.
func TestBrowsersAreBounded(t *testing.T) {
	t.Parallel()
	s, _ := withDoors(t)
	other, _ := s.signedIn(`{"token": "cop_admin"}`)
	oldest, _ := s.signedIn(`{"token": "cop_read"}`)
	var newest []string
	for range 100 {
		newest, _ = s.signedIn(`{"token": "cop_read"}`)
	}
	for want, browser := range map[int][][]string{http.StatusUnauthorized: {oldest}, http.StatusOK: {newest, other}} {
		for _, headers := range browser {
			if got := s.ask("GET", "/web/me", "", headers...); got.status != want {
				t.Errorf("%d instead of %d: %s", got.status, want, got.body)
			}
		}
	}
}

// The page may run what is in its files, and ask nothing of anyone else.
func TestThePageHasAPolicy(t *testing.T) {
	t.Parallel()
	s, _ := withDoors(t)
	for path, kind := range map[string]string{"/": "text/html", "/s/x/e/y": "text/html", "/stats": "text/html", "/app.js": "text/javascript", "/app.css": "text/css"} {
		got := s.ask("GET", path, "", "Accept-Encoding: gzip")
		policy := got.header.Get("Content-Security-Policy")
		if got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), kind) || got.header.Get("Content-Encoding") != "gzip" || len(got.body) == 0 {
			t.Errorf("%s: %d %v", path, got.status, got.header)
		}
		if !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; style-src 'self'; ") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") ||
			got.header.Get("X-Content-Type-Options") != "nosniff" || got.header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v", path, got.header)
		}
		if again := s.ask("GET", path, "", "Accept-Encoding: gzip", "If-None-Match: "+got.header.Get("ETag")); again.status != http.StatusNotModified || len(again.body) > 0 {
			t.Errorf("%s again: %d", path, again.status)
		}
		if path != "/" && kind != "text/html" {
			continue
		}
		if plain := string(s.ask("GET", path, "", "Accept-Encoding: identity").body); strings.Contains(plain, "<style") || strings.Contains(plain, "http") || strings.Count(plain, "<script") != strings.Count(plain, "<script type=\"module\" src=\"/app.js\"></script>") {
			t.Errorf("%s: %s", path, plain)
		}
	}
	for prefix, want := range map[string]string{"/woods": `src="/woods/app.js"`, "/a/b-2/": `src="/a/b-2/app.js"`, "//example.org": `src="/app.js"`, `/"><script>`: `src="/app.js"`, "https://example.org": `src="/app.js"`} {
		if got := s.ask("GET", "/s/x", "", "X-Forwarded-Prefix: "+prefix, "Accept-Encoding: identity"); !strings.Contains(string(got.body), want) || strings.Count(string(got.body), "<script") != 1 {
			t.Errorf("%s: %s", prefix, got.body)
		}
	}
	if got := s.ask("GET", "/web/rows/last", ""); got.status != http.StatusUnauthorized {
		t.Errorf("rows without a token: %d", got.status)
	}
}

// Rows for the page are HTML in which nothing of a session acts, and a result is with its call
// wherever the window begins.
func TestRowsForThePage(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	hostile := `<script>alert(1)</script><img src=x onerror=alert(1)>[a](javascript:alert(1))`
	s.ask("POST", "/v1/sessions", `{"key": "k"}`)
	say := func(role, content string) {
		t.Helper()
		if got := s.ask("POST", "/v1/sessions/k/entries", fmt.Sprintf(`{"message": {"role": %q, "content": [%s]}}`, role, content), "Content-Type: application/json"); got.status != http.StatusOK {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	text := func(s string) string { b, _ := json.Marshal(s); return `{"type": "text", "text": ` + string(b) + `}` }
	for i := range 20 {
		say("user", text(fmt.Sprintf("%d %s", i, hostile)))
		say("assistant", fmt.Sprintf(`{"type": "tool_use", "tool_use": {"id": "c%d", "name": "bash", "input": {"command": "</code><script>"}}}`, i))
		say("tool", fmt.Sprintf(`{"type": "tool_result", "tool_result": {"tool_use_id": "c%d", "content": "out-%d </pre><script>alert(2)</script>"}}`, i, i))
	}
	type row struct {
		Index int
		HTML  string
	}
	rows := func(query string) (got []row) {
		t.Helper()
		var result struct {
			Total, From int
			Rows        []row
		}
		if err := json.Unmarshal(s.ask("GET", "/web/rows/k"+query, "").body, &result); err != nil || result.Total != 60 {
			t.Fatalf("%+v, %v", result, err)
		}
		return result.Rows
	}
	all := rows("?count=60")
	for _, r := range all {
		if strings.Contains(r.HTML, "<script") || strings.Contains(r.HTML, "<img") || strings.Contains(r.HTML, `href="javascript`) {
			t.Errorf("row %d: %s", r.Index, r.HTML)
		}
		switch isResult := r.Index%3 == 2; {
		case isResult && r.HTML != "":
			t.Errorf("the result at %d is not with its call: %s", r.Index, r.HTML)
		case r.Index%3 == 1 && !strings.Contains(r.HTML, fmt.Sprintf("out-%d ", r.Index/3)):
			t.Errorf("the call at %d has no result: %s", r.Index, r.HTML)
		}
	}
	for _, query := range []string{"?from=28&count=7", "?from=29&count=1", "?from=-5&count=5", "?from=40&count=5"} {
		for _, r := range rows(query) {
			if r != all[r.Index] {
				t.Errorf("%s: row %d is %q and was %q", query, r.Index, r.HTML, all[r.Index].HTML)
			}
		}
	}
}
