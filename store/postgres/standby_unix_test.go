//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/internal/needs"
	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
	"github.com/coppice-dev/coppice/store/storetest"
)

// pair is a server and its synchronous standby: a commit is acknowledged when both have it.
type pair struct{ primary, standby *postgrestest.Server }

func newPair(t *testing.T) *pair {
	t.Helper()
	needs.This(t, needs.PostgreSQL)
	bin, err := postgrestest.Find()
	if err != nil {
		t.Fatal(err)
	}
	p := new(pair)
	if p.primary, err = postgrestest.Start(bin, socketDir(t), "wal_keep_size=512MB", "max_connections=200", "wal_retrieve_retry_interval=100ms"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.primary.Stop() })
	p.follow(t, socketDir(t))
	t.Cleanup(func() { p.standby.Stop() })
	if _, err := postgres.Migrate(t.Context(), p.primary.URL(nil)); err != nil {
		t.Fatal(err)
	}
	return p
}

func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pgs")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// follow starts a standby, and waits until no commit returns without it.
func (p *pair) follow(t *testing.T, dir string) {
	t.Helper()
	var err error
	if p.standby, err = p.primary.Standby(dir); err != nil {
		t.Fatal(err)
	}
	postgrestest.Exec(t, p.primary.URL(nil), `ALTER SYSTEM SET synchronous_standby_names = '*'`)
	postgrestest.Exec(t, p.primary.URL(nil), `SELECT pg_reload_conf()`)
	p.await(t, synchronous)
}

const synchronous = `SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'`

func TestStandby(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	t.Run("Read", func(t *testing.T) { testStandbyRead(t, p) })
	t.Run("Promoted", func(t *testing.T) { testPromoted(t, p) })
	p.follow(t, p.standby.Dir)
	t.Run("NotReplicated", func(t *testing.T) { testNotReplicated(t, p) })
}

// await waits until a question to the primary is answered with yes.
func (p *pair) await(t *testing.T, question string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.primary.URL(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for range 3000 {
		var yes bool
		if err := conn.QueryRow(t.Context(), question).Scan(&yes); err != nil {
			t.Fatal(err)
		}
		if yes {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("it does not become true: %s", question)
}

// failOver kills the primary with SIGKILL, so that it does no more harm, and promotes the
// standby.
func (p *pair) failOver(t *testing.T) {
	t.Helper()
	p.primary.Kill()
	p.primary, p.standby = p.standby, p.primary
	postgrestest.Exec(t, p.primary.URL(nil), `SELECT pg_promote()`)
}

// url names both.
func (p *pair) url(conns string) string {
	u := p.primary.URL(url.Values{"target_session_attrs": {"read-write"}, "pool_max_conns": {conns}})
	return strings.Replace(u, url.QueryEscape(p.primary.Dir), url.QueryEscape(p.primary.Dir+","+p.standby.Dir), 1)
}

// A standby can be read while the primary is written to. What would write is refused at once.
func testStandbyRead(t *testing.T, p *pair) {
	s := mustOpen(t, p.primary.URL(nil), nil)
	log := storetest.MustCreate(t, s, "a", `{"n":0}`)
	storetest.MustCreate(t, s, "removed", `{}`)
	if err := errors.Join(s.Remove(t.Context(), "removed"), s.Notes("r").Write(t.Context(), "note", []byte("text"))); err != nil {
		t.Fatal(err)
	}
	standby := mustOpen(t, p.standby.URL(nil), nil)
	for err := store.ErrNotExist; errors.Is(err, store.ErrNotExist); time.Sleep(10 * time.Millisecond) { // until it has replayed that
		_, err = standby.Notes("r").Read(t.Context(), "note")
	}
	for what, try := range attempts() {
		if err := try(t.Context(), standby); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("on a standby, %s: %v", what, err)
		}
	}
	watched, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	lines := 0
	for _, err := range storetest.MustOpen(t, standby, "a").Watch(watched, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if lines++; lines == 2 {
			break
		}
		storetest.MustAppend(t, log, `{"n":1}`)
	}
}

// A synchronous standby is promoted again and again while 32 append. Nothing that was
// acknowledged is lost, nothing is there twice, and the writers go on by themselves.
//
//	COPPICE_SOAK=10 go test ./store/postgres -run TestStandby -v
func testPromoted(t *testing.T, p *pair) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const stores, writers = 4, 32
	var acknowledged [writers]atomic.Int64
	var wg sync.WaitGroup
	var s *postgres.Store
	for w := range writers {
		if w%(writers/stores) == 0 {
			s = mustOpen(t, p.url(fmt.Sprint(writers/stores)), nil)
		}
		log := storetest.MustCreate(t, s, fmt.Sprintf("log-%d", w))
		wg.Go(func() {
			end, err := store.Pos(0), error(nil)
			for n := &acknowledged[w]; ctx.Err() == nil; n.Add(1) {
				if end, err = log.Append(t.Context(), end, fmt.Appendf(nil, `{"n":%d}`, n.Load())); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	total := func() (n int64) {
		for w := range acknowledged {
			n += acknowledged[w].Load()
		}
		return n
	}
	for n := range soak.N(1) {
		if n > 0 {
			p.follow(t, p.standby.Dir)
		}
		time.Sleep(300 * time.Millisecond)
		before, start := total(), time.Now()
		p.failOver(t)
		promoted := time.Since(start)
		for now := total(); total() <= now+writers && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
		t.Logf("%d appends before; promoted after %v, and %d more appends after %v", before, promoted, writers, time.Since(start))
	}
	cancel()
	wg.Wait()
	for w := range writers {
		lines := storetest.MustRead(t, storetest.MustOpen(t, s, fmt.Sprintf("log-%d", w)), 0)
		for n, line := range lines {
			if want := fmt.Sprintf(`{"n":%d}`, n); string(line.Data) != want {
				t.Fatalf("line %d of log %d is %s", n, w, line.Data)
			}
		}
		if n := acknowledged[w].Load(); int64(len(lines)) != n {
			t.Errorf("log %d has %d lines, %d were acknowledged", w, len(lines), n)
		}
	}
}

// A connection is cut while the server waits for the standby. The change is there, and its author
// finds that out, but is not told so before the standby has it: otherwise it would be lost with
// the server.
func testNotReplicated(t *testing.T, p *pair) {
	s := mustOpen(t, p.url("4"), nil)
	storetest.MustCreate(t, s, "b", `{}`)
	p.standby.Kill()
	done := make(chan error, 1)
	go func() {
		done <- s.Notes("").Change(t.Context(), "n", func([]byte) ([]byte, error) { return []byte("text"), nil })
	}()
	const waiting = `FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'coppice'`
	p.await(t, `SELECT count(*) = 1 `+waiting)
	conn, err := pgx.Connect(t.Context(), p.primary.URL(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var first int
	if err := conn.QueryRow(t.Context(), `SELECT pid `+waiting).Scan(&first); err != nil {
		t.Fatal(err)
	}
	postgrestest.Exec(t, p.primary.URL(nil), `SELECT pg_terminate_backend($1)`, first)
	for again := false; !again; {
		select {
		case err := <-done:
			t.Fatalf("acknowledged before the standby has it: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
		if err := conn.QueryRow(t.Context(), `SELECT count(*) > 0 `+waiting+` AND pid <> $1`, first).Scan(&again); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.standby.Run(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	p.await(t, synchronous)
	p.failOver(t)
	if note, err := s.Notes("").Read(t.Context(), "n"); err != nil || string(note) != "text" {
		t.Errorf("on the standby, the note is %q, %v", note, err)
	}
}
