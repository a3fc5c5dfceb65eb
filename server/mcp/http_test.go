package mcp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server/mcp"
	"github.com/coppice-dev/coppice/session"
)

// older is the last protocol in which a client has a session.
const older = "2025-11-25"

const (
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	sessionID   = "Mcp-Session-Id"
)

// request is a request as a client of the older protocol sends it.
func request(t *testing.T, method, url, caller, id, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", caller)
	if id != "" {
		r.Header.Set(sessionID, id)
		r.Header.Set("Mcp-Protocol-Version", older)
	}
	return r
}

// outside has connections of its own: each httptest.Server that closes also closes the idle ones of
// http.DefaultClient, which another test may be about to use.
var outside = &http.Client{Transport: &http.Transport{}}

// post sends a message, and returns the answer and the session that it begins.
func post(t *testing.T, url, caller, id, body string) (status int, answer, session string) {
	t.Helper()
	r, err := outside.Do(request(t, http.MethodPost, url, caller, id, body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text), r.Header.Get(sessionID)
}

// listen opens the stream of a session, and waits until it is open.
func listen(t *testing.T, url, caller, id string) (*http.Response, *bufio.Reader) {
	t.Helper()
	r, err := outside.Do(request(t, http.MethodGet, url, caller, id, ""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Body.Close() })
	return r, bufio.NewReader(r.Body)
}

// serve serves a home to every caller, and returns what ends it.
func serve(t *testing.T, view func(*http.Request) (*home.Home, *mcp.Options)) (url string, stop func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	server := httptest.NewServer(mcp.Handler(ctx, view))
	t.Cleanup(func() { stop(); server.Close() })
	return server.URL, stop
}

func byCaller(h *home.Home) func(*http.Request) (*home.Home, *mcp.Options) {
	return func(r *http.Request) (*home.Home, *mcp.Options) {
		return h, &mcp.Options{Caller: r.Header.Get("Authorization")}
	}
}

// A client that subscribed to a session hears about every change, in either protocol, over HTTP
// and over lines, until it unsubscribes.
func TestSubscribersHearAboutChanges(t *testing.T) {
	t.Parallel()
	for _, version := range []string{older, "2026-07-28"} {
		for _, how := range []string{"http", "lines"} {
			t.Run(version+" "+how, func(t *testing.T) {
				t.Parallel()
				h := newHome(t)
				id, other := kiln(t, h), newSession(t, h, home.CreateRequest{Title: "Empty"})
				var transport sdk.Transport
				if how == "http" {
					url, _ := serve(t, byCaller(h))
					transport = &sdk.StreamableClientTransport{Endpoint: url}
				} else {
					near, far := sdk.NewInMemoryTransports()
					transport = near
					go func() { _ = mcp.New(h, nil).Run(t.Context(), far) }()
				}
				updated := make(chan string, 1000)
				c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
					ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { updated <- r.Params.URI },
				}).Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				hears := func(name string) {
					t.Helper()
					uri := "coppice://session/" + name
					if err := c.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err != nil {
						t.Fatal(err)
					}
					for { // in the newer protocol, nothing says when listening has begun
						appendTo(t, h, name)
						select {
						case got := <-updated:
							if got != uri {
								t.Errorf("%s has changed, not %s", got, uri)
							}
							return
						case <-t.Context().Done():
							t.Fatal("nothing is heard")
						default:
						}
					}
				}
				hears(other)
				if err := c.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: "coppice://session/" + other}); err != nil {
					t.Fatal(err)
				}
				for len(updated) > 0 {
					<-updated
				}
				hears(id)
			})
		}
	}
}

func appendTo(t *testing.T, h *home.Home, name string) {
	t.Helper()
	m := said(session.RoleUser, "more").Message
	if _, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: name, Message: m}); err != nil {
		t.Fatal(err)
	}
}

func subscribeTo(uri string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":9,"method":"resources/subscribe","params":{"uri":%q}}`, uri)
}

// What cannot be subscribed to is refused.
func TestSubscribingIsBounded(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	url, _ := serve(t, byCaller(h))
	_, _, id := post(t, url, "one", "", initialize)
	post(t, url, "one", id, initialized)
	for _, uri := range []string{"coppice://session/none", "coppice://session/", "file:///etc/passwd", "coppice://session/" + kiln(t, h) + "?cursor=x"} {
		if _, answer, _ := post(t, url, "one", id, subscribeTo(uri)); !strings.Contains(answer, `"code":-32602`) && !strings.Contains(answer, "not found") {
			t.Errorf("%s: %s", uri, answer)
		}
	}
	for i := range 51 {
		name := newSession(t, h, home.CreateRequest{Title: fmt.Sprint("one of many ", i)})
		_, answer, _ := post(t, url, "one", id, subscribeTo("coppice://session/"+name))
		if refused := strings.Contains(answer, "which is the limit"); refused != (i == 50) {
			t.Fatalf("subscription %d: %s", i, answer)
		}
	}
}

const listTools = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`

// A session belongs to its caller, who sees what it may see now.
func TestSessionsBelongToTheirCaller(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	readOnly := false
	url, _ := serve(t, func(r *http.Request) (*home.Home, *mcp.Options) {
		return h, &mcp.Options{Caller: r.Header.Get("Authorization"), ReadOnly: readOnly}
	})
	status, _, id := post(t, url, "one", "", initialize)
	if status != http.StatusOK || id == "" {
		t.Fatalf("there is no session: %d", status)
	}
	post(t, url, "one", id, initialized)
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		r, err := outside.Do(request(t, method, url, "two", id, ""))
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if r.StatusCode != http.StatusNotFound {
			t.Errorf("%s on the session of another caller: %d", method, r.StatusCode)
		}
	}
	uri := "coppice://session/" + kiln(t, h)
	if _, answer, _ := post(t, url, "two", id, subscribeTo(uri)); !strings.Contains(answer, "initialize again") {
		t.Errorf("another caller subscribes in the session: %s", answer)
	}
	if _, answer, _ := post(t, url, "one", id, subscribeTo(uri)); strings.Contains(answer, "error") {
		t.Errorf("its own caller: %s", answer)
	}
	readOnly = true // the caller lost a right
	if _, answer, _ := post(t, url, "one", id, listTools); strings.Contains(answer, "append_note") || !strings.Contains(answer, "read_session") {
		t.Errorf("a caller who may only read by now gets: %.300s", answer)
	}
}

// There is only so much room for sessions. Those who get none are served without.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	url, _ := serve(t, byCaller(h))
	var last string
	for i := range 52 {
		status, answer, id := post(t, url, "one", "", initialize)
		if status != http.StatusOK || (id == "") != (i >= 50) {
			t.Fatalf("session %d is %q: %d %s", i, id, status, answer)
		}
		if id != "" {
			last = id
		}
	}
	if _, answer, _ := post(t, url, "one", "", listTools); !strings.Contains(answer, "read_session") {
		t.Errorf("without a session: %s", answer)
	}
	if _, _, id := post(t, url, "two", "", initialize); id == "" {
		t.Error("another caller gets none")
	}
	if r, err := outside.Do(request(t, http.MethodDelete, url, "one", last, "")); err != nil || r.StatusCode != http.StatusNoContent {
		t.Fatal(r, err)
	}
	if _, _, id := post(t, url, "one", "", initialize); id == "" {
		t.Error("a session that was ended still takes room")
	}
	if status, answer, _ := post(t, url, "one", last, listTools); status != http.StatusOK || !strings.Contains(answer, "read_session") {
		t.Errorf("with a session that has ended: %d %s", status, answer)
	}
	if _, answer, _ := post(t, url, "one", last, subscribeTo("coppice://session/"+kiln(t, h))); !strings.Contains(answer, "initialize again") {
		t.Errorf("subscribing in a session that has ended: %s", answer)
	}
	if _, _, id := post(t, url, "one", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":7}`); id != "" {
		if r, _ := listen(t, url, "one", id); r.StatusCode != http.StatusNotFound {
			t.Error("a session that did not begin is kept")
		}
	}
}

// A caller who is refused while it listens loses its session, and a server that stops ends what
// listens.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	revoke := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	handler := mcp.Handler(ctx, byCaller(h))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		if r.Header.Get("Authorization") == "revoked" && r.Method == http.MethodGet {
			go func() { <-revoke; cancel(errors.New("the token was revoked")) }()
		}
		handler.ServeHTTP(w, r.WithContext(ctx))
	}))
	t.Cleanup(func() { stop(); server.Close() })
	for _, caller := range []string{"revoked", "stopped"} {
		_, _, id := post(t, server.URL, caller, "", initialize)
		post(t, server.URL, caller, id, initialized)
		r, stream := listen(t, server.URL, caller, id)
		if r.StatusCode != http.StatusOK {
			t.Fatal(r.Status)
		}
		if caller == "revoked" {
			close(revoke)
		} else {
			stop()
		}
		if _, err := io.ReadAll(stream); err != nil {
			t.Error(err)
		}
		for { // it ends as soon as what runs in it has ended
			if r, _ := listen(t, server.URL, caller, id); r.StatusCode == http.StatusNotFound {
				break
			}
		}
	}
	if _, _, id := post(t, server.URL, "late", "", initialize); id != "" {
		t.Error("a session begins after the end")
	}
}

// A session that is not used ends after a while; one that listens does not.
func TestIdleSessionsEnd(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		handler := mcp.Handler(ctx, byCaller(h))
		do := func(r *http.Request) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			return w
		}
		begin := func(caller string) string {
			id := do(request(t, http.MethodPost, "http://x/", caller, "", initialize)).Header().Get(sessionID)
			do(request(t, http.MethodPost, "http://x/", caller, id, initialized))
			return id
		}
		idle, listens := begin("idle"), begin("listens")
		ended := make(chan int, 1)
		go func() { ended <- do(request(t, http.MethodGet, "http://x/", "listens", listens, "")).Code }()
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if w := do(request(t, http.MethodDelete, "http://x/", "idle", idle, "")); w.Code != http.StatusNotFound {
			t.Errorf("an idle session is still there: %d", w.Code)
		}
		select {
		case code := <-ended:
			t.Errorf("one that listens has ended: %d", code)
		default:
		}
		stop()
		<-ended
	})
}
