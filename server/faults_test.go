package server_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-dev/coppice/home"
	_ "github.com/coppice-dev/coppice/home/all"
	"github.com/coppice-dev/coppice/internal/leak"
	"github.com/coppice-dev/coppice/server"
)

// TestMain looks for goroutines that the servers of all tests have left.
func TestMain(m *testing.M) {
	code := m.Run()
	caller.CloseIdleConnections()
	if err := leak.Find(time.Minute); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// pipes is a listener whose connections are in memory, so that a test's clock counts for them.
type pipes struct {
	waiting chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func newPipes() *pipes { return &pipes{waiting: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.waiting <- theirs
	return ours
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.waiting:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// inMemory runs a server in a bubble of its own, where time passes when all wait.
func inMemory(t *testing.T, o server.Options, test func(*testing.T, *home.Home, *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h, err := home.Open(t.Context(), "mem:", nil) // a disk would tell of changes, from outside of the bubble
		if err != nil {
			t.Fatal(err)
		}
		o.Home = h
		s, err := server.New(o)
		if err != nil {
			t.Fatal(err)
		}
		l := newPipes()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx, l) }()
		test(t, h, l)
		cancel()
		if err := errors.Join(<-ended, h.Close()); err != nil {
			t.Error(err)
		}
	})
}

// exchange sends a request on a connection of its own and returns the status.
func exchange(t *testing.T, l *pipes, request string) int {
	t.Helper()
	c := l.dial()
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

const overview = "GET /v1/overview HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

// TestCallersWhoStallAreCutOff: one who sends a piece and then nothing keeps a connection for a
// while, and not for ever. Others are answered meanwhile.
func TestCallersWhoStallAreCutOff(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]string{
		"nothing":               "",
		"a part of the header":  "GET /v1/sessions HTTP/1.1\r\nHost: local",
		"a header without end":  "GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n",
		"a part of the body":    "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"title\":",
		"a chunk without end":   "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n{",
		"a part of an import":   "POST /v1/import HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"type\":",
		"a body that is unread": "POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"type\":",
		"a body for a stranger": "POST /v1/sessions HTTP/1.1\r\nHost: evil.example.com\r\nContent-Length: 100\r\n\r\n{\"type\":",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, server.Options{}, func(t *testing.T, _ *home.Home, l *pipes) {
				c := l.dial()
				defer c.Close()
				if _, err := io.WriteString(c, sent); err != nil {
					t.Fatal(err)
				}
				if status := exchange(t, l, overview); status != http.StatusOK {
					t.Errorf("another caller gets %d", status)
				}
				_ = c.SetReadDeadline(time.Now().Add(10 * time.Minute))
				if answer, err := io.ReadAll(c); err != nil {
					t.Errorf("the connection is still open: %v; the answer is %q", err, answer)
				}
			})
		})
	}
}

// TestACallerWhoDoesNotReadIsCutOff: an answer that is not taken does not keep the server busy
// for ever, and does not keep others from theirs.
func TestACallerWhoDoesNotReadIsCutOff(t *testing.T) {
	t.Parallel()
	inMemory(t, server.Options{}, func(t *testing.T, _ *home.Home, l *pipes) {
		c := l.dial()
		defer c.Close()
		if _, err := io.WriteString(c, "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if status := exchange(t, l, overview); status != http.StatusOK {
			t.Errorf("another caller gets %d", status)
		}
		time.Sleep(10 * time.Minute) // of the bubble
		if n, err := io.Copy(io.Discard, c); err != nil || n > 0 {
			t.Errorf("after a long time there are %d bytes: %v", n, err)
		}
	})
}

// gone is a caller that has left.
type gone struct{ *httptest.ResponseRecorder }

func (gone) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// TestACallerWhoLeavesIsNoError: the operator is not told of an error if a caller leaves before the
// end of an answer.
func TestACallerWhoLeavesIsNoError(t *testing.T) {
	t.Parallel()
	var log told
	s := serve(t, func(o *server.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	id, _ := s.talk()
	for _, path := range []string{"/entries", "/tree", "/export?format=md"} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/v1/sessions/"+id+path, nil)
		func() {
			defer func() {
				if why := recover(); why != nil && why != http.ErrAbortHandler {
					panic(why)
				}
			}()
			s.http.Config.Handler.ServeHTTP(gone{httptest.NewRecorder()}, r)
		}()
	}
	if n := strings.Count(log.String(), "the caller left"); n != 3 {
		t.Errorf("the log has %d of the 3 callers who left:\n%s", n, log.String())
	}
	for _, level := range []string{"WARN", "ERROR"} {
		if strings.Contains(log.String(), level) {
			t.Errorf("the log has a line of level %s:\n%s", level, log.String())
		}
	}
}

// TestABodyThatTricklesIsRefused: a caller that sends a byte now and then does not keep a connection
// for ever.
func TestABodyThatTricklesIsRefused(t *testing.T) {
	t.Parallel()
	inMemory(t, server.Options{}, func(t *testing.T, _ *home.Home, l *pipes) {
		c := l.dial()
		if _, err := io.WriteString(c, "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		var sending sync.WaitGroup
		defer sending.Wait()
		defer c.Close()
		sending.Go(func() {
			for range 30 {
				if _, err := io.WriteString(c, " "); err != nil {
					return
				}
				time.Sleep(20 * time.Second) // of the bubble
			}
			_ = c.Close()
		})
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("it gets %s", resp.Status)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Error(err)
		}
	})
}

// TestAConnectionIsGoodForLater: what was given to one answer to arrive does not count for the
// next on the same connection.
func TestAConnectionIsGoodForLater(t *testing.T) {
	t.Parallel()
	inMemory(t, server.Options{}, func(t *testing.T, _ *home.Home, l *pipes) {
		c := l.dial()
		defer c.Close()
		in := bufio.NewReader(c)
		for _, path := range []string{"/v1/overview", "/openapi.json", "/v1/nothing", "/v1/overview"} {
			if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			resp.Body.Close()
			time.Sleep(time.Minute + time.Second) // of the bubble
		}
	})
}

func TestBadBodies(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *server.Options) { o.Limits.Body = 1000 })
	id, _ := s.talk()
	before := s.ask("GET", "/v1/sessions/"+id+"/export?format=jsonl", "")
	deep := strings.Repeat(`[`, 200)
	for name, c := range map[string]struct {
		body   string
		status int
	}{
		"too large":         {`{"once": "` + strings.Repeat("x", 1000) + `"}`, 413},
		"too large, spaces": {strings.Repeat(" ", 1001), 413},
		"not JSON":          {`{"message": }`, 400},
		"cut off":           {hello[:len(hello)-1], 400},
		"two":               {hello + hello, 400},
		"not text":          {"\xff\xfe\x00", 400},
		"not UTF-8":         {strings.Replace(hello, "otters", "ot\xffers", 1), 400},
		"a list":            {`[` + hello + `]`, 400},
		"deep":              {`{"entry": ` + deep + strings.Repeat(`]`, 200) + `}`, 422},
		"deep, unfinished":  {`{"entry": ` + deep, 400},
		"nothing":           {``, 422},
		"null":              {`null`, 400},
	} {
		if a := s.ask("POST", "/v1/sessions/"+id+"/entries", c.body); a.status != c.status {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if after := s.ask("GET", "/v1/sessions/"+id+"/export?format=jsonl", ""); !bytes.Equal(before.body, after.body) {
		t.Errorf("the session has changed to %s", after.body)
	}
}
