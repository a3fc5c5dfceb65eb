package server_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server"
	"github.com/coppice-dev/coppice/store"
)

// anybody is an Authorize that knows every token by its own name.
func anybody(_ context.Context, token string) (*server.Grant, error) {
	return &server.Grant{Name: token, Access: home.Admin}, nil
}

// head is the header of a request with a token, up to its body.
func head(token, what, fields string) string {
	return what + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\n" + fields + "\r\n"
}

// begin sends something on a connection of its own, which stays open until the test ends.
func (p *pipes) begin(t *testing.T, sent string) net.Conn {
	t.Helper()
	c := p.dial()
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, sent); err != nil {
		t.Fatal(err)
	}
	synctest.Wait() // until the server has read it
	return c
}

// ask sends a request on a connection of its own and returns the status and Retry-After.
func (p *pipes) ask(t *testing.T, request string) (status int, later string) {
	t.Helper()
	c := p.dial()
	defer c.Close()
	go func() { _, _ = io.WriteString(c, request) }() // it may be answered before it is sent
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode == 429 && kind != "application/problem+json" {
		t.Errorf("%.60q: %d in %s", request, resp.StatusCode, kind)
	}
	return resp.StatusCode, resp.Header.Get("Retry-After")
}

func (p *pipes) want(t *testing.T, status int, request string) {
	t.Helper()
	got, later := p.ask(t, request)
	if refused := status == 429 || status == 503; got != status || refused != (later != "") {
		t.Errorf("%.60q: %d, Retry-After %q; it should be %d", request, got, later, status)
	}
}

// appended is an append of n bytes to a session that does not exist. It is let in if the answer
// is 404.
func appended(token string, n int, fields string) string {
	return head(token, "POST /v1/sessions/none/entries", fmt.Sprintf("Connection: close\r\nContent-Length: %d\r\n%s", n, fields)) + hello + strings.Repeat(" ", n-len(hello))
}

// frames is a request to the store: arguments, and then bytes.
func frames(args string, pieces ...string) string {
	var b strings.Builder
	for i, piece := range append([]string{args}, pieces...) {
		b.WriteByte("JD"[min(i, 1)])
		b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(piece))))
		b.WriteString(piece)
	}
	return b.String()
}

const (
	much    = 700_000   // more than half of what the requests of a token may hold
	limited = 4_800_000 // what those of all tokens may
)

// TestWhatIsHeldInMemoryIsLimited: one token cannot fill the memory with large requests that it
// does not end, or with large answers that it does not take. Others are not held back, and it
// gets its turn when the others have ended.
func TestWhatIsHeldInMemoryIsLimited(t *testing.T) {
	t.Parallel()
	blob := strings.Repeat("x", much)
	put := frames(`{"name":"`+string(store.RefOf([]byte(blob)))+`"}`, blob) + "Z\x00\x00\x00\x00"
	putting := head("a", "POST /v1/store/put", fmt.Sprintf("Connection: close\r\nContent-Length: %d\r\n", len(put))) + put
	for name, sent := range map[string]string{
		"a body":             appended("a", 1_000_000, "")[:much],
		"a body in chunks":   head("a", "POST /v1/sessions/none/entries", "Transfer-Encoding: chunked\r\n") + fmt.Sprintf("%x\r\n", much) + strings.Repeat(" ", much),
		"a call of an agent": head("a", "POST /mcp", "Content-Length: 1000000\r\n") + strings.Repeat(" ", much),
		"what a page draws":  head("a", "POST /web/html", "Content-Length: 1000000\r\n") + strings.Repeat(" ", much),
		"a blob":             strings.TrimSuffix(putting, "Z\x00\x00\x00\x00"),
		"a line":             head("a", "POST /v1/store/create", "Content-Length: 1000000\r\n") + frames(`{"name":"x"}`, strings.Repeat("x", much)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, server.Options{Authorize: anybody, Limits: server.Limits{Body: 1_000_000, Memory: limited}}, func(t *testing.T, _ *home.Home, l *pipes) {
				c := l.begin(t, sent)
				go func() { _, _ = io.Copy(io.Discard, c) }()
				l.want(t, 429, appended("a", much, ""))
				l.want(t, 429, putting)
				l.want(t, 404, appended("a", 1000, ""))
				l.want(t, 404, appended("b", much, ""))
				waited := make(chan struct{})
				go func() { defer close(waited); l.want(t, 404, appended("a", much, "")) }()
				synctest.Wait()
				c.Close()
				<-waited
			})
		})
	}
}

// TestAllTokensTogetherAreLimited: what they hold is not more than the server has.
func TestAllTokensTogetherAreLimited(t *testing.T) {
	t.Parallel()
	inMemory(t, server.Options{Authorize: anybody, Limits: server.Limits{Body: 1_000_000, Memory: limited}}, func(t *testing.T, _ *home.Home, l *pipes) {
		for _, token := range []string{"a", "b", "c", "d"} {
			l.begin(t, appended(token, 1_000_000, "")[:990_000])
		}
		l.want(t, 503, appended("e", 1_000_000, ""))
	})
}

// TestWhatIsOnlyAnnouncedHoldsNothing: a length in a header costs its sender nothing.
func TestWhatIsOnlyAnnouncedHoldsNothing(t *testing.T) {
	t.Parallel()
	inMemory(t, server.Options{Authorize: anybody, Limits: server.Limits{Body: 1_000_000, Memory: limited}}, func(t *testing.T, _ *home.Home, l *pipes) {
		for range 50 {
			l.begin(t, appended("a", 1_000_000, "")[:200])
		}
		for range 5 {
			l.begin(t, head("a", "POST /v1/store/put", "Content-Length: 1000000\r\n")+frames(`{"name":"x"}`)+"D\x00\x0f\x00\x00x")
		}
		began := time.Now()
		l.want(t, 404, appended("a", 300_000, ""))
		if waited := time.Since(began); waited > 0 {
			t.Errorf("it had to wait for %s", waited)
		}
	})
}

// TestAnAnswerThatIsNotTakenIsCounted: those who ask for something large and do not read it.
func TestAnAnswerThatIsNotTakenIsCounted(t *testing.T) {
	t.Parallel()
	inMemory(t, server.Options{Authorize: anybody, Limits: server.Limits{Memory: limited}}, func(t *testing.T, h *home.Home, l *pipes) {
		made, err := h.Sessions.Create(t.Context(), home.CreateRequest{})
		if err != nil {
			t.Fatal(err)
		}
		ref, err := h.Store().Blobs().Put(t.Context(), []byte(strings.Repeat("x", much)))
		if err != nil {
			t.Fatal(err)
		}
		var said home.AppendRequest
		if err := json.Unmarshal([]byte(`{"force": true, "message": {"role": "tool", "content": [{"type": "tool_result", "tool_result": {"tool_use_id": "t1", "content": "`+strings.Repeat("x", much)+`"}}]}}`), &said); err != nil {
			t.Fatal(err)
		}
		said.Session = made.Session
		if _, err := h.Entries.Append(t.Context(), said); err != nil {
			t.Fatal(err)
		}
		asking := head("a", "GET /v1/sessions/"+made.Session+"/blobs/"+string(ref), "")
		l.begin(t, asking)
		l.want(t, 429, asking)
		l.want(t, 200, strings.Replace(asking, "Bearer a", "Bearer b", 1))
		args := frames(`{"name":"`+string(ref)+`"}`) + "Z\x00\x00\x00\x00"
		l.want(t, 429, head("a", "POST /v1/store/blob", fmt.Sprintf("Content-Length: %d\r\n", len(args)))+args)
	})
}

// TestConversationsThatAreNotTakenAreCounted: what a conversation needs while it is read, and while
// a caller does not take it, counts. Those for whom there is no memory are told so.
func TestConversationsThatAreNotTakenAreCounted(t *testing.T) {
	t.Parallel()
	const callers, texts, size = 12, 40, 150_000 // decoded, twice the size of its lines: 12 MB of 16
	s := serve(t, func(o *server.Options) {
		o.Authorize, o.Limits.Memory = anybody, 64<<20
	})
	s.token = "Authorization: Bearer maker"
	id, _ := s.talk()
	for range texts {
		want[home.AppendResult](s, 200, "POST", "/v1/sessions/"+id+"/entries", strings.Replace(hello, "How do otters sleep?", strings.Repeat("otters ", size/7), 1))
	}
	var all sync.WaitGroup
	defer all.Wait()
	for name, what := range map[string]string{
		"context":  "POST /v1/sessions/%s/context",
		"markdown": "GET /v1/sessions/%s/export", "codex": "GET /v1/sessions/%s/export?format=codex",
	} {
		all.Go(func() {
			request := head(name, fmt.Sprintf(what, id), "Connection: close\r\n")
			var deaf [callers]net.Conn
			for i := range deaf {
				c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
				if err == nil {
					defer c.Close()
					_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
					_, err = io.WriteString(c, request)
				}
				if err != nil {
					t.Error(err)
					return
				}
				deaf[i] = c
			}
			served := 0
			for _, c := range deaf {
				switch resp, err := http.ReadResponse(bufio.NewReaderSize(c, 16), nil); {
				case err != nil:
					t.Errorf("%s: %v", name, err)
				case resp.StatusCode == 200:
					served++
				case resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "":
					t.Errorf("%s: %d, Retry-After %q", name, resp.StatusCode, resp.Header.Get("Retry-After"))
				}
			}
			if served == callers { // some answers may fit into the sockets, and leave room for others
				t.Errorf("%s: all %d were answered; there is memory for 1 or 2 at a time", name, callers)
			}
		})
	}
}

// TestManySmallValuesAreLimited: decoded, they take many times the memory of their text. A text
// that looks like them is only a text.
func TestManySmallValuesAreLimited(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *server.Options) { o.Limits = server.Limits{Body: 1_000_000, Memory: limited} })
	id, _ := s.talk()
	many := strings.Repeat("{},", 10_000)
	want[server.Problem](s, 413, "POST", "/v1/sessions/"+id+"/entries", `{"message": {"role": "user", "content": [`+many+`{}]}}`)
	want[server.Problem](s, 413, "POST", "/web/html", `{"content": [`+many+`{}]}`)
	want[home.AppendResult](s, 200, "POST", "/v1/sessions/"+id+"/entries", strings.Replace(hello, "otters", many+`\"[[`, 1))
}

// TestAnImportIsNotHeld: it is as long as a history.
func TestAnImportIsNotHeld(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *server.Options) { o.Limits = server.Limits{Body: 100_000, Memory: 400_000} })
	var long strings.Builder
	for i := 0; long.Len() < 1_000_000; i++ {
		uuid := fmt.Sprintf("7f6c1a52-6f0e-4c63-9a25-%012d", i)
		fmt.Fprintln(&long, strings.NewReplacer("7f6c1a52-6f0e-4c63-9a25-1d6f3a1c0b11", uuid, "Do otters snore?", strings.Repeat("Do otters snore? ", 1000)).Replace(transcript))
	}
	if a := s.ask("POST", "/v1/import?format=claude-code", long.String()); a.status != 200 || strings.Contains(string(a.body), `"error"`) {
		t.Errorf("%d %.300s", a.status, a.body)
	}
}

// TestStreamsAreCountedByOperation: whatever form a caller wants, what goes on for as long as it
// listens is a stream, and what has an end is none.
func TestStreamsAreCountedByOperation(t *testing.T) {
	t.Parallel()
	o := server.Options{Authorize: anybody, Limits: server.Limits{Requests: 1, Streams: 1}}
	overview := func(token, accept string) string {
		return head(token, "GET /v1/overview", "Connection: close\r\nAccept: "+accept+"\r\n")
	}
	follow := func(token, accept string) string {
		return head(token, "GET /v1/follow", "Connection: close\r\nAccept: "+accept+"\r\n")
	}
	watch := func(token, handle string) string {
		args := frames(`{"handle":"`+handle+`"}`) + "Z\x00\x00\x00\x00"
		return head(token, "POST /v1/store/watch", fmt.Sprintf("Content-Length: %d\r\n", len(args))) + args
	}
	agent := func(token string) string {
		return head(token, "GET /mcp", "Connection: close\r\nAccept: text/event-stream\r\nMcp-Session-Id: none\r\n")
	}
	inMemory(t, o, func(t *testing.T, _ *home.Home, l *pipes) {
		c := l.begin(t, follow("a", "application/x-ndjson"))
		go func() { _, _ = io.Copy(io.Discard, c) }()
		l.want(t, 200, overview("a", "application/json"))
		l.want(t, 200, overview("a", "text/event-stream"))
		for _, again := range []string{follow("a", "application/x-ndjson"), follow("a", "text/event-stream"), follow("a", "*/*"), watch("a", "none"), agent("a")} {
			l.want(t, 429, again)
		}
		l.want(t, 429, strings.Replace(follow("a", "*/*"), "GET", "HEAD", 1))
		l.want(t, 200, watch("b", "none")) // the store says that there is no such handle
		l.want(t, 404, agent("b"))         // there is no such session
		l.want(t, 200, overview("b", "application/json"))
	})
	inMemory(t, o, func(t *testing.T, _ *home.Home, l *pipes) {
		l.begin(t, appended("a", 1000, "")[:900])
		l.want(t, 429, overview("a", "application/json"))
		l.want(t, 429, overview("a", "text/event-stream"))
		l.want(t, 200, overview("b", "application/json"))
	})
}

// TestRequestsInASecond: one token that asks too often is held back, and no other.
func TestRequestsInASecond(t *testing.T) {
	t.Parallel()
	inMemory(t, server.Options{Authorize: anybody, Limits: server.Limits{Rate: 2}}, func(t *testing.T, _ *home.Home, l *pipes) {
		overview := func(token string) string { return head(token, "GET /v1/overview", "Connection: close\r\n") }
		allowed := 0
		for ; allowed < 20; allowed++ {
			if status, _ := l.ask(t, overview("a")); status != 200 {
				break
			}
		}
		if allowed < 2 || allowed > 5 {
			t.Errorf("%d requests at once are let in", allowed)
		}
		l.want(t, 429, overview("a"))
		l.want(t, 200, overview("b"))
		time.Sleep(time.Second) // of the bubble
		l.want(t, 200, overview("a"))
	})
}

// TestAnAgentsSessionBelongsToItsToken: another token cannot end it, or listen to it.
func TestAnAgentsSessionBelongsToItsToken(t *testing.T) {
	t.Parallel()
	inMemory(t, server.Options{Authorize: anybody}, func(t *testing.T, _ *home.Home, l *pipes) {
		const body = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
		c := l.begin(t, head("a", "POST /mcp", fmt.Sprintf("Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n", len(body)))+body)
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		id := r.Header.Get("Mcp-Session-Id")
		if id == "" {
			t.Fatalf("there is no session: %s", r.Status)
		}
		end := func(token string) string {
			return head(token, "DELETE /mcp", "Connection: close\r\nMcp-Session-Id: "+id+"\r\n")
		}
		l.want(t, 404, end("b"))
		l.want(t, 204, end("a"))
	})
}
