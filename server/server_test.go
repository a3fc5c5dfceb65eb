package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/server"
	"github.com/coppice-dev/coppice/store/remote"
)

// served is a server with a home of its own.
type served struct {
	*testing.T
	home *home.Home
	url  string
	http *httptest.Server

	token string // a header that every request has
}

// serve serves a home of any kind: see postgrestest.Home.
func serve(t *testing.T, change func(*server.Options)) *served {
	t.Helper()
	return serveAt(t, postgrestest.Home(t), change)
}

func serveAt(t *testing.T, where string, change func(*server.Options)) *served {
	t.Helper()
	h, err := home.Open(t.Context(), where, &home.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	o := server.Options{Home: h, Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))}
	if change != nil {
		change(&o)
	}
	s, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.CloseClientConnections()
		_ = s.Close()
		web.Close()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return &served{T: t, home: h, url: web.URL, http: web}
}

// caller has connections of its own: each httptest.Server that closes also closes the idle ones of
// http.DefaultClient, which another test may be about to use.
var caller = &http.Client{Transport: &http.Transport{}}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// ask sends a request with headers of the form "Name: value".
func (s *served) ask(method, path, body string, headers ...string) answer {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	for _, h := range append([]string{s.token}, headers...) {
		name, value, _ := strings.Cut(h, ": ")
		if name == "" {
			continue
		}
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	resp, err := caller.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, text}
}

// outcome is the status, or that of the error with which a stream ends: on a busy machine it
// begins before the error is known.
func (a answer) outcome() int {
	var last server.Message
	text := bytes.TrimSpace(a.body)
	line := bytes.TrimPrefix(text[bytes.LastIndexByte(text, '\n')+1:], []byte("data: "))
	if err := json.Unmarshal(line, &last); err == nil && last.Error != nil {
		return last.Error.Status
	}
	return a.status
}

// want asks, and fails the test unless the status is as it should be. It returns the body as
// a value.
func want[T any](s *served, status int, method, path, body string, headers ...string) (v T) {
	s.Helper()
	a := s.ask(method, path, body, headers...)
	if a.status != status {
		s.Fatalf("%s %s %s: %d %s", method, path, body, a.status, a.body)
	}
	if err := json.Unmarshal(a.body, &v); err != nil {
		s.Fatalf("%s %s: %v in %s", method, path, err, a.body)
	}
	return v
}

const hello = `{"message": {"role": "user", "content": [{"type": "text", "text": {"content": "How do otters sleep?"}}]}}`

// talk makes a session with one message and returns both ids.
func (s *served) talk() (id, entry string) {
	s.Helper()
	made := want[home.CreateResult](s, 200, "POST", "/v1/sessions", `{"title": "Otters", "tags": ["animals"]}`)
	said := want[home.AppendResult](s, 200, "POST", "/v1/sessions/"+made.Session+"/entries", hello)
	return made.Session, said.Entry
}

func TestASessionByHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	id, entry := s.talk()

	list := want[home.ListResult](s, 200, "GET", "/v1/sessions?tags=animals&limit=5", "")
	if len(list.Sessions) != 1 || list.Sessions[0].ID != id || list.Sessions[0].Title != "Otters" {
		t.Errorf("the list is %+v", list)
	}
	found := want[home.FindResult](s, 200, "GET", "/v1/search?query=otters+role:user", "")
	if len(found.Hits) != 1 || found.Hits[0].Entry != entry {
		t.Errorf("the search found %+v", found)
	}
	a := s.ask("GET", "/v1/sessions/"+id+"/entries", "")
	pieces := bytes.Split(bytes.TrimSpace(a.body), []byte("\n"))
	var last server.Message
	if err := json.Unmarshal(pieces[len(pieces)-1], &last); err != nil || last.Result == nil {
		t.Errorf("the last piece is %s: %v", pieces[len(pieces)-1], err)
	}
	if !strings.Contains(string(a.body), "How do otters sleep?") || a.header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("the path is %s %s", a.header.Get("Content-Type"), a.body)
	}
	a = s.ask("GET", "/v1/sessions/"+id+"/export?format=md", "")
	if a.status != 200 || !strings.Contains(a.header.Get("Content-Security-Policy"), "sandbox") || a.header.Get("X-Content-Type-Options") != "nosniff" ||
		!strings.HasPrefix(a.header.Get("Content-Type"), "text/markdown") || !strings.Contains(string(a.body), "How do otters sleep?") {
		t.Errorf("the export is %d %s", a.status, a.body)
	}
	want[home.RemoveResult](s, 200, "DELETE", "/v1/sessions/"+id, "")
	want[server.Problem](s, 404, "GET", "/v1/sessions/"+id, "")
	want[home.RestoreResult](s, 200, "POST", "/v1/trash/"+id+"/restore", "")
	want[home.SessionInfo](s, 200, "GET", "/v1/sessions/"+id, "")
}

func TestProblems(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	id, entry := s.talk()
	pinned, _ := s.talk()
	want[home.PinResult](s, 200, "PUT", "/v1/sessions/"+pinned+"/pin", `{"pinned": true}`)
	reply := `{"role": "assistant", "content": [{"type": "text", "text": {"content": "Afloat."}}]}`
	want[home.AppendResult](s, 200, "POST", "/v1/sessions/"+id+"/entries", `{"message": `+reply+`, "at": "`+entry+`"}`)
	for _, test := range []struct {
		name, method, path, body string
		status                   int
		kind                     home.Kind
		field                    string
	}{
		{"no session", "GET", "/v1/sessions/nothing", "", 404, home.KindNotFound, ""},
		{"another came first", "POST", "/v1/sessions/" + id + "/entries", `{"message": ` + reply + `, "at": "` + entry + `"}`, 409, home.KindConflict, ""},
		{"not JSON", "POST", "/v1/sessions", `{"title"`, 400, home.KindInvalid, ""},
		{"not an object", "POST", "/v1/sessions", `[1]`, 400, home.KindInvalid, ""},
		{"unknown member", "POST", "/v1/sessions", `{"titel": "x"}`, 422, home.KindInvalid, "titel"},
		{"wrong type", "POST", "/v1/sessions", `{"title": 7}`, 422, home.KindInvalid, "title"},
		{"unknown parameter", "GET", "/v1/sessions?sortt=x", "", 422, home.KindInvalid, "sortt"},
		{"not a number", "GET", "/v1/sessions?limit=many", "", 422, home.KindInvalid, "limit"},
		{"not a time", "GET", "/v1/sessions?since=yesterday", "", 422, home.KindInvalid, "since"},
		{"refused by the floor", "GET", "/v1/sessions?sort=colour", "", 422, home.KindInvalid, "sort"},
		{"a path of the server", "GET", "/v1/sessions/" + id + "/export?format=md&path=/tmp/x", "", 422, home.KindInvalid, "path"},
		{"another session in the body", "POST", "/v1/sessions/" + id + "/revert", `{"session": "other"}`, 422, home.KindInvalid, "session"},
		{"no such route", "GET", "/v2/sessions", "", 404, home.KindNotFound, ""},
		{"wrong method", "DELETE", "/v1/sessions", "", 405, home.KindInvalid, ""},
		{"a directory of the server", "GET", "/v1/sessions/%2E", "", 404, home.KindNotFound, ""},
		{"pinned", "DELETE", "/v1/sessions/" + pinned, "", 409, home.KindError, ""},
		{"no query", "GET", "/v1/search", "", 422, home.KindInvalid, "query"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := s.ask(test.method, test.path, test.body)
			var p server.Problem
			if err := json.Unmarshal(a.body, &p); err != nil || a.header.Get("Content-Type") != "application/problem+json" {
				t.Fatalf("%d %s: %v", a.status, a.body, err)
			}
			if a.status != test.status || p.Status != test.status || p.Kind != test.kind || p.Field != test.field || p.Detail == "" {
				t.Errorf("%d %s", a.status, a.body)
			}
			here, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(a.body), s.home.Dir()) || strings.Contains(string(a.body), here) {
				t.Errorf("the answer tells where the home is: %s", a.body)
			}
		})
	}
}

// TestNoPlacesAreTold: where the home is, is the business of the machine that has it.
func TestNoPlacesAreTold(t *testing.T) {
	t.Parallel()
	s := serveAt(t, t.TempDir(), nil)
	id, _ := s.talk()
	want[home.ArchiveResult](s, 200, "POST", "/v1/archive", `{"session": "`+id+`"}`)
	for _, ask := range []string{"GET /v1/overview", "POST /v1/sessions/" + id + "/unarchive"} {
		method, path, _ := strings.Cut(ask, " ")
		if a := s.ask(method, path, ""); a.status != 200 || strings.Contains(string(a.body), s.home.Dir()) {
			t.Errorf("%s: %d %s", ask, a.status, a.body)
		}
	}
}

func TestWhatIsKnownAlreadyIsNotSentAgain(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	id, _ := s.talk()
	first := s.ask("GET", "/v1/sessions/"+id, "")
	tag := first.header.Get("ETag")
	if again := s.ask("GET", "/v1/sessions/"+id, "", "If-None-Match: "+tag); again.status != 304 || len(again.body) > 0 {
		t.Errorf("%d %s", again.status, again.body)
	}
	want[home.AppendResult](s, 200, "POST", "/v1/sessions/"+id+"/entries", hello)
	if changed := s.ask("GET", "/v1/sessions/"+id, "", "If-None-Match: "+tag); changed.status != 200 {
		t.Errorf("%d %s", changed.status, changed.body)
	}
}

// TestARepeatedRequestIsAnsweredAndNotRepeated: a caller who got no answer asks again.
func TestARepeatedRequestIsAnsweredAndNotRepeated(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	id, _ := s.talk()
	first := want[home.AppendResult](s, 200, "POST", "/v1/sessions/"+id+"/entries", hello, "Idempotency-Key: a7")
	again := want[home.AppendResult](s, 200, "POST", "/v1/sessions/"+id+"/entries", hello, "Idempotency-Key: a7")
	other := want[home.AppendResult](s, 200, "POST", "/v1/sessions/"+id+"/entries", hello, "Idempotency-Key: a8")
	if again.Entry != first.Entry || !again.Already || other.Entry == first.Entry {
		t.Errorf("%+v, %+v, %+v", first, again, other)
	}
	if info := want[home.SessionInfo](s, 200, "GET", "/v1/sessions/"+id, ""); info.Messages != 3 {
		t.Errorf("there are %d messages", info.Messages)
	}
	const goodbye = `{"message": {"role": "user", "content": [{"type": "text", "text": "Something else"}]}}`
	refused := s.ask("POST", "/v1/sessions/"+id+"/entries", goodbye, "Idempotency-Key: a7")
	text := string(refused.body)
	if refused.status != http.StatusConflict || !strings.Contains(text, `"field":"Idempotency-Key"`) || !strings.Contains(text, "the same Idempotency-Key") {
		t.Errorf("other content under the same key: %d %s", refused.status, text)
	}
}

// listen asks for a stream of server-sent events. It ends with the test, or with leave. ok is
// false after the last of them.
func (s *served) listen(method, path, body string, headers ...string) (next func() (id, name, data string, ok bool), leave func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	resp, err := caller.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { cancel(); resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		s.Fatalf("%s %s: %s", method, path, resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return func() (id, name, data string, ok bool) {
		for lines.Scan() {
			key, value, _ := strings.Cut(lines.Text(), ": ")
			switch key {
			case "id":
				id = value
			case "event":
				name = value
			case "data":
				data = value
			case "":
				if name != "" {
					return id, name, data, true
				}
			}
		}
		return "", "", "", false
	}, cancel
}

// events reads server-sent events that have no end.
func (s *served) events(path string, headers ...string) func() (id, name, data string) {
	s.Helper()
	next, _ := s.listen("GET", path, "", headers...)
	return func() (id, name, data string) {
		s.Helper()
		id, name, data, ok := next()
		if !ok {
			s.Fatalf("%s ended", path)
		}
		return id, name, data
	}
}

// arrivals is events without the one that says that nothing is missed any more.
func (s *served) arrivals(path string, headers ...string) func() (id, name, data string) {
	next := s.events(path, headers...)
	return func() (id, name, data string) {
		s.Helper()
		for id, name, data = next(); name == "begin"; id, name, data = next() {
		}
		return id, name, data
	}
}

// TestFollowingGoesOnWhereItWas: one who was away gets what came meanwhile, once.
func TestFollowingGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	id, entry := s.talk()
	say := func() string {
		return want[home.AppendResult](s, 200, "POST", "/v1/sessions/"+id+"/entries", hello).Entry
	}
	for _, test := range []struct{ name, path, last string }{
		{"one session", "/v1/follow?session=" + id, entry},
		{"all sessions", "/v1/follow", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			at := test.last
			if at == "" {
				at, _, _ = s.events(test.path)() // it says from where on nothing is missed
			}
			var said []string
			for range 3 {
				said = append(said, say())
			}
			got := func(next func() (string, string, string)) string {
				for {
					var last, name, data string
					if last, name, data = next(); name != "message" {
						continue
					}
					var m struct{ Event home.Arrival }
					if err := json.Unmarshal([]byte(data), &m); err != nil {
						t.Fatal(err)
					}
					at = last
					return m.Event.Entry.ID
				}
			}
			for i := range said {
				if test.last != "" && i == 0 {
					at = entry
				}
				next := s.events(test.path, "Last-Event-ID: "+at) // it comes back for each of them
				if e := got(next); e != said[i] {
					t.Fatalf("after %s came %s, not %s", at, e, said[i])
				}
			}
			entry = said[len(said)-1]
		})
	}
}

func TestFollowingAfterTooLongBeginsAgain(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	if _, name, _ := s.events("/v1/follow", "Last-Event-ID: another-17")(); name != "reset" {
		t.Errorf("it begins with %s", name)
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *server.Options) { o.Hosts = []string{"sessions.example.org"} })
	for host, status := range map[string]int{
		"localhost:80": 200, "127.0.0.1": 200, "[::1]:9": 200, "sessions.example.org": 200, "sessions.example.org:8080": 200,
		"evil.example.com": 421, "localhost.evil.example.com": 421, "192.168.0.7": 421,
	} {
		if a := s.ask("GET", "/v1/sessions", "", "Host: "+host); a.status != status {
			t.Errorf("%s: %d %s", host, a.status, a.body)
		}
	}
	if a := s.ask("GET", "/v1/sessions", "", "Sec-Fetch-Site: cross-site"); a.status != 403 {
		t.Errorf("a page of another site may read from a server without tokens: %d", a.status)
	}
	if a := s.ask("POST", "/v1/sessions", "{}", "Origin: https://evil.example.com", "Sec-Fetch-Site: cross-site"); a.status != 403 {
		t.Errorf("another site may ask: %d", a.status)
	}
}

// allowed is an Authorize with three tokens.
func allowed(_ context.Context, token string) (*server.Grant, error) {
	if a := map[string]home.Access{"r": home.Read, "w": home.Write, "a": home.Admin}[token]; a != 0 {
		return &server.Grant{Name: token, Access: a}, nil
	}
	return nil, server.ErrUnauthorized
}

// TestEveryOperationNeedsItsAccess goes through the table.
func TestEveryOperationNeedsItsAccess(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *server.Options) { o.Authorize = allowed })
	for _, op := range home.Operations() {
		if op.Route == "" || op.Name == "entries.follow" || op.Name == "transfer.import" {
			continue
		}
		method, path, _ := strings.Cut(op.Route, " ")
		path = strings.NewReplacer("{session}", "x", "{entry}", "x", "{image}", "x", "{id}", "x", "{filter}", "tag").Replace(path)
		if a := s.ask(method, path, ""); a.status != 401 || a.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s without a token: %d %s", op.Name, a.status, a.body)
		}
		for token, access := range map[string]home.Access{"r": home.Read, "w": home.Write, "a": home.Admin} {
			a := s.ask(method, path, "", "Authorization: Bearer "+token)
			if refused := a.status == 403; refused != (access < op.Access) || a.status == 401 || a.status >= 500 {
				t.Errorf("%s with %s access: %d %s", op.Name, access, a.status, a.body)
			}
		}
	}
	if a := s.ask("GET", "/metrics", "", "Authorization: Bearer w"); a.status != 403 {
		t.Errorf("metrics: %d", a.status)
	}
	if a := s.ask("GET", "/metrics", "", "Authorization: Bearer a"); a.status != 200 || !strings.Contains(string(a.body), "coppice_requests_total") {
		t.Errorf("metrics: %d %s", a.status, a.body)
	}
	if a := s.ask("GET", "/healthz", ""); a.status != 200 {
		t.Errorf("healthz: %d", a.status)
	}
}

// TestTheStoreIsForThoseWhoMayDoEverything: its notes have the tokens of the home, what is trusted
// and the key that signs approvals, and its lines are what agents act on. A token that may do less
// opens the store, as every client does, and gets nothing of it by any operation.
func TestTheStoreIsForThoseWhoMayDoEverything(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *server.Options) { o.Authorize = allowed })
	made, err := s.home.Sessions.Create(t.Context(), home.CreateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.home.Store().Notes("tokens").Write(t.Context(), "tokens.json", []byte("secret")); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../store/remote/operations.go")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("(?m)^\t\"([a-z-]+)\": +").FindAllStringSubmatch(string(source), -1)
	if len(names) != 20 {
		t.Fatalf("the store has %d operations", len(names))
	}
	reads := make(map[string]bool)
	for name := range strings.FieldsSeq("hello open close end current flush read watch stat list blob note notes") {
		reads[name] = true
	}
	args := frames(`{"name":"`+made.Session+`","room":"tokens"}`) + "Z\x00\x00\x00\x00"
	for token, access := range map[string]home.Access{"r": home.Read, "w": home.Write, "a": home.Admin} {
		for _, name := range names {
			a := s.ask("POST", "/v1/store/"+name[1], args, "Authorization: Bearer "+token)
			if refused := a.status == 403; refused != (access < home.Admin && !reads[name[1]]) || !refused && a.status != 200 {
				t.Errorf("%s with %s access: %d", name[1], access, a.status)
			}
		}
		st, err := remote.Open(t.Context(), s.url+"/v1/store", &remote.Options{Token: token})
		if err != nil {
			t.Fatal(err)
		}
		data, err := st.Notes("tokens").Read(t.Context(), "tokens.json")
		if access == home.Admin && string(data) != "secret" || access < home.Admin && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s access reads %q, %v", access, data, err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestMetricsAndProfilesNeedAdmin: they tell of everything that the server does.
func TestMetricsAndProfilesNeedAdmin(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *server.Options) { o.Pprof, o.Authorize = true, allowed })
	for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/cmdline"} {
		for token, status := range map[string]int{"r": 403, "w": 403, "a": 200} {
			if a := s.ask("GET", path, "", "Authorization: Bearer "+token); a.status != status {
				t.Errorf("%s for %s: %d", path, token, a.status)
			}
		}
	}
}

// TestContentThatIsKeptApart: a part of a large output can be asked for, but only through a
// session that has it.
func TestContentThatIsKeptApart(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	id, _ := s.talk()
	long := strings.Repeat("otters sleep afloat. ", 20_000)
	want[home.AppendResult](s, 200, "POST", "/v1/sessions/"+id+"/entries",
		`{"force": true, "message": {"role": "tool", "content": [{"type": "tool_result", "tool_result": {"tool_use_id": "t1", "content": "`+long+`"}}]}}`)
	found := regexp.MustCompile(`sha256:[0-9a-f]{64}`).Find(s.ask("GET", "/v1/sessions/"+id+"/export?format=jsonl", "").body)
	if found == nil {
		t.Fatal("the session has no blob")
	}
	path := "/blobs/" + string(found)
	if a := s.ask("GET", "/v1/sessions/"+id+path, ""); a.status != 200 || string(a.body) != long {
		t.Errorf("%d, %d bytes", a.status, len(a.body))
	}
	if a := s.ask("GET", "/v1/sessions/"+id+path, "", "Range: bytes=7-11"); a.status != 206 || string(a.body) != "sleep" {
		t.Errorf("%d %s", a.status, a.body)
	}
	other, _ := s.talk()
	if a := s.ask("GET", "/v1/sessions/"+other+path, ""); a.status != 404 {
		t.Errorf("another session has it: %d", a.status)
	}
	if a := s.ask("GET", "/v1/sessions/"+id+"/blobs/sha256:7", ""); a.status != 422 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestARevokedTokenHearsNothingMore: what it listens to ends.
func TestARevokedTokenHearsNothingMore(t *testing.T) {
	t.Parallel()
	var revoked atomic.Bool
	s := serve(t, func(o *server.Options) {
		o.Authorize = func(context.Context, string) (*server.Grant, error) {
			if revoked.Load() {
				return nil, server.ErrUnauthorized
			}
			return &server.Grant{Name: "x", Access: home.Admin}, nil
		}
	})
	id, _ := s.talk()
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/v1/follow?session="+id, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := caller.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	revoked.Store(true)
	if _, err := io.ReadAll(resp.Body); err != nil { // it would go on for ever
		t.Log(err)
	}
}

// TestAnEntryCannotForgeEvents: its id may be anything that another program wrote.
func TestAnEntryCannotForgeEvents(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	id, _ := s.talk()
	log, err := s.home.Store().Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	end, err := log.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	line := `{"type":"message","id":"x\nevent: result\ndata: {}\n\n","parent_id":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"hi"}}`
	if _, err := log.Append(t.Context(), end, []byte(line)); err != nil {
		t.Fatal(err)
	}
	if _, name, _ := s.arrivals("/v1/follow?last=1&session=" + id)(); name != "message" {
		t.Errorf("it begins with %s", name)
	}
}
