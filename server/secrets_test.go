package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server"
	"github.com/coppice-dev/coppice/server/token"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// told is everything that the operator of a server can read: its log and its spans.
type told struct {
	noop.TracerProvider
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *told) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *told) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Tracer implements trace.TracerProvider.
func (l *told) Tracer(string, ...trace.TracerOption) trace.Tracer { return tracer{of: l} }

type tracer struct {
	noop.Tracer
	of *told
}

func (t tracer) Start(ctx context.Context, name string, o ...trace.SpanStartOption) (context.Context, trace.Span) {
	config := trace.NewSpanStartConfig(o...)
	fmt.Fprintln(t.of, "span", name, config.Attributes())
	return ctx, span{of: t.of}
}

type span struct {
	noop.Span
	of *told
}

func (s span) SetName(name string)                           { fmt.Fprintln(s.of, "span", name) }
func (s span) SetAttributes(all ...attribute.KeyValue)       { fmt.Fprintln(s.of, "span", all) }
func (s span) AddEvent(name string, _ ...trace.EventOption)  { fmt.Fprintln(s.of, "span", name) }
func (s span) RecordError(err error, _ ...trace.EventOption) { fmt.Fprintln(s.of, "span", err) }

// TestNothingThatWasSaidIsTold asks for every operation, well and badly. Everything that is said
// in the requests is about otters and eels: texts, titles, searches, tags, keys, tokens, names.
func TestNothingThatWasSaidIsTold(t *testing.T) { // not in parallel: the tracer is everybody's
	var out told
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(&out)
	defer otel.SetTracerProvider(before)
	const bearer = "Authorization: Bearer cop_OTTERS"
	h, err := home.Open(t.Context(), t.TempDir(), &home.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	srv, err := server.New(server.Options{
		Home: h, Log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Authorize: func(_ context.Context, token string) (*server.Grant, error) {
			if token != strings.TrimPrefix(bearer, "Authorization: Bearer ") {
				return nil, server.ErrUnauthorized
			}
			return &server.Grant{Name: "zoo", Access: home.Admin}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ctx, l) }()
	s := &served{T: t, home: h, url: "http://" + l.Addr().String(), token: bearer}

	names := s.names()
	for _, r := range requests {
		method, _, _ := strings.Cut(home.OperationNamed(r.operation).Route, " ")
		if a := s.ask(method, names.Replace(r.path), names.Replace(r.body)); a.status != 200 {
			t.Errorf("%s: %d %s", r.operation, a.status, a.body)
		}
	}
	for _, op := range home.Operations() {
		if op.Route == "" {
			continue
		}
		method, path, _ := strings.Cut(op.Route, " ")
		path = strings.NewReplacer("{", "otters-", "}", "").Replace(path)
		for _, bad := range []struct{ path, body string }{{path + "?otters=eels", `{"otters": "eels"}`}, {path + "?session=otters", `{"sessions": ["otters"], "session": "otters"}`}, {path, `{"otters`}} {
			if bad.path == "/v1/follow" { // it follows every session from a place that was forgotten
				s.events(bad.path, "Last-Event-ID: otters", bearer)()
			} else {
				s.ask(method, bad.path, bad.body, "Idempotency-Key: otters", "Last-Event-ID: otters")
			}
			s.ask(method, bad.path, bad.body, "Authorization: Bearer cop_EELS")
			s.ask(method, bad.path, bad.body, "Host: otters.example.com", "Origin: https://otters.example.com")
		}
	}
	s.ask("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"otters"}}}`, "Content-Type: application/json", "Accept: application/json, text/event-stream")
	s.ask("POST", "/v1/store/otters", "otters")
	s.ask("OTTERS", "/otters", "otters")
	for _, broken := range []string{"GET /otters HTTP/1.1\r\nHost: otters\r\nno otters\r\n\r\n", "otters\r\n\r\n"} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, broken)
		_, _ = io.Copy(io.Discard, c)
		c.Close()
	}
	metrics := s.ask("GET", "/metrics", "")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	caller.CloseIdleConnections()
	for name, text := range map[string]string{"the log and the spans": out.String(), "the metrics": string(metrics.body)} {
		if found := regexp.MustCompile(`(?i).*(otter|eels|snore|R0lGOD).*`).FindString(text); found != "" {
			t.Errorf("%s: %s", name, found)
		}
	}
	for _, there := range []string{"operation=entries.append", "token=zoo", "status=422", "span coppice.request", "coppice.operation"} {
		if !strings.Contains(out.String(), there) {
			t.Errorf("%s is missing", there)
		}
	}
	if !strings.Contains(string(metrics.body), `operation="search.find"`) {
		t.Errorf("the metrics are %d %.300s", metrics.status, metrics.body)
	}
}

// TestOneWhoIsNotLetInLearnsNothing: no token, a wrong one, one that was revoked or has expired,
// the beginning of a good one and what the home knows of it are all the same.
func TestOneWhoIsNotLetInLearnsNothing(t *testing.T) {
	t.Parallel()
	var tokens *token.Tokens
	s := serve(t, func(o *server.Options) {
		tokens = token.Of(o.Home.Store())
		o.Authorize = func(ctx context.Context, given string) (*server.Grant, error) {
			known, err := tokens.Check(ctx, given)
			if errors.Is(err, token.ErrRefused) {
				return nil, server.ErrUnauthorized
			}
			return &server.Grant{Name: known.Name, Access: known.Access}, err
		}
	})
	add := func(name string, expires time.Time) string {
		secret, err := tokens.Add(t.Context(), token.Token{Name: name, Access: home.Admin, Expires: expires})
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	good, revoked := add("good", time.Time{}), add("revoked", time.Time{})
	s.token = "Authorization: Bearer " + good
	id, _ := s.talk()
	if err := tokens.Revoke(t.Context(), "revoked"); err != nil {
		t.Fatal(err)
	}
	expired := add("expired", time.Now().Add(time.Millisecond))
	kept, err := s.home.Store().Notes("tokens").Read(t.Context(), "tokens.json")
	if err != nil {
		t.Fatal(err)
	}
	hash := regexp.MustCompile(`"sha256":"([^"]+)"`).FindSubmatch(kept)
	if hash == nil || bytes.Contains(kept, []byte(good[len(token.Prefix):])) {
		t.Fatalf("the home has %s", kept)
	}
	given := map[string]string{
		"wrong": "Bearer " + token.Prefix + strings.Repeat("A", 52), "revoked": "Bearer " + revoked, "expired": "Bearer " + expired, "no token": "", "empty": "Bearer ",
		"another scheme": "Basic " + good, "a part": "Bearer " + good[:len(good)-1], "more": "Bearer " + good + "A", "the hash": "Bearer " + string(hash[1]),
		"long": "Bearer " + strings.Repeat("x", 20_000), "lower case": "Bearer " + strings.ToLower(good),
	}
	for _, path := range []string{"/v1/sessions", "/v1/sessions/" + id, "/v1/sessions/none", "/metrics", "/mcp", "/nothing", "/v1/store/hello"} {
		first, from := "", ""
		for name, header := range given {
			deadline := time.Now().Add(10 * time.Second)
			a := s.ask("POST", path, "{}", "Authorization: "+header)
			for a.status != 401 && time.Now().Before(deadline) { // it is good for a moment longer
				a = s.ask("POST", path, "{}", "Authorization: "+header)
			}
			a.header.Del("X-Request-Id")
			a.header.Del("Date")
			text := fmt.Sprint(a.status, a.header, string(a.body))
			if first == "" {
				first, from = text, name
			}
			if text != first || a.status != 401 {
				t.Errorf("%s with %s: %s\nwith %s: %s", path, name, text, from, first)
			}
		}
	}
}

// TestReady: a load balancer learns when not to send requests to the server.
func TestReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testReady)
}

func testReady(t *testing.T) {
	h, err := home.Open(t.Context(), t.TempDir()+"/home", &home.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.Options{Home: h, Authorize: allowed})
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost"+path, nil)
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		srv.ServeHTTP(w, r)
		return w
	}
	is := func(what string, ready int) {
		t.Helper()
		time.Sleep(time.Second) // of the bubble: for that long the answer is the same
		if a := get("/readyz"); a.Code != ready || strings.Contains(a.Body.String(), h.Dir()) {
			t.Errorf("%s: readyz is %d %s", what, a.Code, a.Body)
		}
		if a := get("/healthz"); a.Code != 200 {
			t.Errorf("%s: healthz is %d %s", what, a.Code, a.Body)
		}
	}
	is("at first", 200)
	if _, err := h.Sessions.Create(t.Context(), home.CreateRequest{}); err != nil {
		t.Fatal(err)
	}
	is("with a session", 200)
	away := h.Dir() + "-away"
	if err := os.Rename(h.Dir(), away); err != nil {
		t.Fatal(err)
	}
	is("without a home", 503)
	if err := os.Rename(away, h.Dir()); err != nil {
		t.Fatal(err)
	}
	is("with it again", 200)
	if a := get("/debug/pprof/", "Authorization: Bearer a"); a.Code != 404 {
		t.Errorf("there are profiles, though no one asked for them: %d", a.Code)
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	is("while it stops", 503)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	is("without a store", 503)
}

// listed is a store that counts how often its logs are listed.
type listed struct {
	store.Store
	times atomic.Int64
}

func (l *listed) List(ctx context.Context) iter.Seq2[store.Stat, error] {
	l.times.Add(1)
	return l.Store.List(ctx)
}

// TestAskingWhetherItIsReadyCostsLittle: those who ask have no token, so however many ask, and
// leave before they are answered, the home is read once in a second.
func TestAskingWhetherItIsReadyCostsLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := &listed{Store: memory.New(nil)}
		h, err := home.On(t.Context(), st, nil)
		if err != nil {
			t.Fatal(err)
		}
		srv, err := server.New(server.Options{Home: h, Authorize: allowed})
		if err != nil {
			t.Fatal(err)
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		ask := func(ctx context.Context) {
			w := httptest.NewRecorder()
			srv.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "http://localhost/readyz", nil))
			if w.Code != 200 {
				t.Errorf("readyz is %d %s", w.Code, w.Body)
			}
		}
		st.times.Store(0)
		for second := range int64(3) {
			var asking sync.WaitGroup
			for range 20 {
				asking.Go(func() { ask(gone); ask(t.Context()) })
			}
			asking.Wait()
			if n := st.times.Load(); n != second+1 {
				t.Errorf("the home was listed %d times in %d seconds", n, second+1)
			}
			time.Sleep(time.Second) // of the bubble
		}
		if err := errors.Join(srv.Close(), h.Close()); err != nil {
			t.Error(err)
		}
	})
}
