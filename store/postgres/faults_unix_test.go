//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/needs"
	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
)

// cutter is a proxy that loses connections: sometimes before a statement arrives, sometimes
// after it was executed and before the answer comes back.
type cutter struct {
	network, server string
	rng             *rand.Rand                              // says how much of a piece arrives
	cuts            func(client net.Conn, said []byte) bool // client is the connection, whichever side says it
}

const socket = ".s.PGSQL.5432"

// newCutter returns the directory of a proxy for the socket in the directory of a server.
func newCutter(t *testing.T, server string, rng *rand.Rand, cuts func(client net.Conn, said []byte) bool) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "cut") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &cutter{"unix", filepath.Join(server, socket), rng, cuts}
	c.listen(t, filepath.Join(dir, socket))
	return dir
}

// listen returns the address that the proxy listens at.
func (c *cutter) listen(t *testing.T, address string) string {
	t.Helper()
	l, err := net.Listen(c.network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.serve(conn)
		}
	}()
	return l.Addr().String()
}

func (c *cutter) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial(c.network, c.server)
	if err != nil {
		return
	}
	defer server.Close()
	go c.pass(client, server, client)
	c.pass(client, client, server)
}

// pass copies what one side says to the other, until it loses a piece and the connection.
func (c *cutter) pass(client, to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if c.cuts(client, buf[:n]) {
			_, _ = to.Write(buf[:c.rng.IntN(n+1)])
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// behind returns a store's URL with another directory for the socket.
func behind(t *testing.T, where, dir string) string {
	t.Helper()
	u, err := url.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	params := u.Query()
	params.Set("host", dir)
	u.RawQuery = params.Encode()
	return u.String()
}

func hostOf(t *testing.T, where string) string {
	t.Helper()
	u, err := url.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("host")
}

// Whatever becomes of the connections, what was acknowledged is there, nothing is there twice,
// and nobody had to know.
func TestLostConnections(t *testing.T) {
	t.Parallel()
	where := postgrestest.URL(t)
	var wild atomic.Bool // after the store is opened
	rng := soak.Rand(t)
	dir := newCutter(t, hostOf(t, where), rng, func(net.Conn, []byte) bool { return wild.Load() && rng.IntN(20) == 0 })
	s := mustOpen(t, behind(t, where, dir), nil)
	direct := mustOpen(t, where, nil)
	wild.Store(true)
	const writers = 8
	appends := soak.N(60)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			name := fmt.Sprintf("log-%d", w)
			log, err := s.Create(t.Context(), name, store.Lines([]byte(`{"first":true}`)))
			if err != nil {
				t.Errorf("create %s: %v", name, err)
				return
			}
			end, err := log.End(t.Context())
			for n := 0; n < appends && err == nil; n++ {
				one, two := fmt.Appendf(nil, `{"n":%d}`, n), []byte(`{"more":true}`)
				if w%2 == 0 {
					end, err = log.Append(t.Context(), end, one, two)
				} else if end, err = log.Append(t.Context(), end, one); err == nil { // perhaps with those of others
					end, err = log.Append(t.Context(), end, two)
				}
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			if _, err := s.Blobs().Put(t.Context(), []byte(name)); err != nil {
				t.Errorf("put: %v", err)
			}
			if err := s.Notes("").Change(t.Context(), "count", func(old []byte) ([]byte, error) { return append(old, 'x'), nil }); err != nil {
				t.Errorf("change: %v", err)
			}
		})
	}
	wg.Wait()
	for w := range writers {
		wantWritten(t, direct, fmt.Sprintf("log-%d", w), appends)
	}
	if note, err := direct.Notes("").Read(t.Context(), "count"); err != nil || len(note) != writers {
		t.Errorf("after %d changes the note is %q, %v", writers, note, err)
	}
	if err := s.Remove(t.Context(), "log-0"); err != nil {
		t.Errorf("remove: %v", err)
	}
	removed, err := direct.Trash().List(t.Context())
	if err != nil || len(removed) != 1 {
		t.Errorf("the trash has %v, %v", removed, err)
	}
}

// wantWritten checks that a log has what TestLostConnections appended, once.
func wantWritten(t *testing.T, s store.Store, name string, appends int) {
	t.Helper()
	log, err := s.Open(t.Context(), name)
	if err != nil {
		t.Error(err)
		return
	}
	n := 0
	for line, err := range log.Forward(t.Context(), 0) {
		if err != nil {
			t.Error(err)
			return
		}
		want := `{"first":true}`
		if n > 0 {
			if want = fmt.Sprintf(`{"n":%d}`, (n-1)/2); n%2 == 0 {
				want = `{"more":true}`
			}
		}
		if string(line.Data) != want {
			t.Errorf("line %d of %s is %s, want %s", n, name, line.Data, want)
			return
		}
		n++
	}
	if n != 1+2*appends {
		t.Errorf("%s has %d lines, want %d", name, n, 1+2*appends)
	}
}

// A server is killed again and again while several write. Nothing that was acknowledged is
// lost, and the writers go on by themselves.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	needs.This(t, needs.PostgreSQL)
	bin, err := postgrestest.Find()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "pgk")
	if err != nil {
		t.Fatal(err)
	}
	server, err := postgrestest.Start(bin, dir) // with fsync
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	where := server.URL(nil)
	if _, err := postgres.Migrate(t.Context(), where); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, where, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const writers = 4
	acknowledged := make([]int, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			log, err := s.Create(t.Context(), fmt.Sprintf("log-%d", w), store.Lines())
			end := store.Pos(0)
			for ctx.Err() == nil && err == nil {
				if end, err = log.Append(t.Context(), end, fmt.Appendf(nil, `{"n":%d}`, acknowledged[w])); err == nil {
					acknowledged[w]++
				}
			}
			if err != nil {
				t.Errorf("writer %d: %v", w, err)
			}
		})
	}
	var gap time.Duration
	for range soak.N(2) {
		time.Sleep(300 * time.Millisecond)
		server.Kill()
		start := time.Now()
		if err := server.Run(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Stat(t.Context(), "log-0"); err != nil {
			t.Fatal(err)
		}
		gap = max(gap, time.Since(start))
	}
	time.Sleep(300 * time.Millisecond)
	cancel()
	wg.Wait()
	for w := range writers {
		log, err := s.Open(t.Context(), fmt.Sprintf("log-%d", w))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line, err := range log.Forward(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf(`{"n":%d}`, n); string(line.Data) != want {
				t.Fatalf("line %d of log %d is %s", n, w, line.Data)
			}
			n++
		}
		if n != acknowledged[w] {
			t.Errorf("log %d has %d lines, %d were acknowledged", w, n, acknowledged[w])
		}
	}
	t.Logf("%v lines were acknowledged; after a restart the longest wait was %v", acknowledged, gap)
}

// Without a server, an operation gives up with an error that says so.
func TestNoServer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := postgres.Open(ctx, "postgres:///x?user=x&host="+t.TempDir(), nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("open without a server: %v", err)
	}
}
