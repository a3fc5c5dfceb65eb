package remote_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-dev/coppice/store/remote"
	"github.com/coppice-dev/coppice/store/storetest"
)

// pipes is a listener whose connections are in memory, so that a test's clock counts for them.
type pipes struct {
	waiting chan net.Conn
	closed  context.Context
	close   context.CancelFunc
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.waiting:
		return c, nil
	case <-p.closed.Done():
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.close(); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.waiting <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// inPipes returns the options of clients of a handler.
func inPipes(t *testing.T, h *remote.Handler) *remote.Options {
	t.Helper()
	p := &pipes{waiting: make(chan net.Conn)}
	p.closed, p.close = context.WithCancel(t.Context())
	server, web := &http.Server{Handler: h}, &http.Transport{DialContext: p.dial}
	go func() { _ = server.Serve(p) }()
	t.Cleanup(func() {
		web.CloseIdleConnections()
		_ = h.Close()
		_ = server.Close()
	})
	return &remote.Options{Client: &http.Client{Transport: web}}
}

// A lease ends when its life is over, however often its client says that it is alive. The clock is
// that of a bubble: no sign of life is ever late.
func TestSignsOfLifeDoNotProlongALease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		served := inMemory()
		handler := remote.NewHandler(served)
		handler.Shorten(50 * time.Millisecond)
		options := inPipes(t, handler)
		open := func() *remote.Store {
			st, err := remote.Open(t.Context(), "http://localhost", options)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { st.Close() })
			return st
		}
		tight, other := open(), open()
		tight.Tick(time.Millisecond)
		holdAll(t, tight)
		ref := storetest.MustPut(t, other.Blobs(), []byte("nobody names it"))
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		log := storetest.MustOpen(t, other, "a")
		defer log.Close()
		end, err := log.End(soon)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := log.Append(soon, end, []byte(num(1))); err != nil {
			t.Errorf("append to what another has pinned: %v", err)
		}
		if done, err := served.Blobs().Collect(soon, ref); err != nil || len(done.Deleted) != 1 {
			t.Errorf("collect what another holds: %+v, %v", done, err)
		}
	})
}

// holdAll creates a log, pins it, and holds all blobs until the test ends.
func holdAll(t *testing.T, st *remote.Store) {
	t.Helper()
	unpin, err := storetest.MustCreate(t, st, "a", num(0)).Pin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unpin() })
	release, err := st.Blobs().Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release() })
}

// A sign of life renews a lease. It does not take another one, which nobody would release.
func TestSignsOfLifeRenewALease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		served := &counted{Store: inMemory()}
		handler := remote.NewHandler(served)
		handler.Hurry(time.Second, 10*time.Millisecond)
		st, err := remote.Open(t.Context(), "http://localhost", inPipes(t, handler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		st.Tick(time.Millisecond)
		holdAll(t, st)
		time.Sleep(time.Second)
		if holds, pins := served.holds.Load(), served.pins.Load(); holds != 1 || pins != 1 {
			t.Errorf("%d holds and %d pins were taken", holds, pins)
		}
	})
}

// unheard is a response that never reaches its client.
type unheard struct{ *httptest.ResponseRecorder }

func (unheard) Write([]byte) (int, error) { return 0, errors.New("connection reset") }

// If the answer to a renewal is lost, the lease stays: its client is alive. If the answer to a grant is
// lost, the lease ends: its client would never release it.
func TestALostAnswerEndsOnlyWhatItGranted(t *testing.T) {
	t.Parallel()
	served := inMemory()
	handler := remote.NewHandler(served)
	defer handler.Close()
	hold := func(w http.ResponseWriter, args string) {
		body := strings.NewReader(frame('J', args) + frame('Z', ""))
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/hold", body))
	}
	isHeld := func() bool {
		ref := storetest.MustPut(t, served.Blobs(), []byte("nobody names it"))
		soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := served.Blobs().Collect(soon, ref)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		return err != nil
	}
	hold(unheard{httptest.NewRecorder()}, `{}`)
	if isHeld() {
		t.Error("what was granted to a client that has gone is held")
	}
	granted := httptest.NewRecorder()
	hold(granted, `{}`)
	lease := regexp.MustCompile(`"lease":"[^"]+"`).FindString(granted.Body.String())
	hold(unheard{httptest.NewRecorder()}, "{"+lease+"}")
	if !isHeld() {
		t.Error("the hold of a client that is alive has ended")
	}
}

// A pin lasts until it is released, even if its log is closed before.
func TestAPinOutlivesItsHandle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		served := inMemory()
		handler := remote.NewHandler(served)
		handler.Hurry(time.Second, 10*time.Millisecond)
		st, err := remote.Open(t.Context(), "http://localhost", inPipes(t, handler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		st.Tick(time.Millisecond)
		log := storetest.MustCreate(t, st, "a", num(0))
		unpin, err := log.Pin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := served.Remove(soon, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("remove what is pinned: %v", err)
		}
		unpin()
		if err := served.Remove(t.Context(), "a"); err != nil {
			t.Errorf("remove what is no longer pinned: %v", err)
		}
	})
}
