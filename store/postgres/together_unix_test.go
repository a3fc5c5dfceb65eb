//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
	"github.com/coppice-dev/coppice/store/storetest"
)

// crowd is appends that travel together, because those that are under way wait for logs that are
// locked.
type crowd struct {
	t      *testing.T
	store  *postgres.Store
	tenant string
	conn   *pgx.Conn // of the owner, who can see and lock everything

	free    func() // ends the locks
	blocked sync.WaitGroup
	next    []func() // see run
}

// newCrowd makes a store at a URL with n empty logs, log-0 and so on, and locks the logs that are
// named, and those of two appends that it begins: as many as go at once with four connections.
func newCrowd(t *testing.T, where string, n int, locked ...string) *crowd {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), postgrestest.Owner(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	c := &crowd{t: t, store: mustOpen(t, postgrestest.With(t, where, "lock_timeout", "5min", "pool_max_conns", "4"), nil), tenant: postgrestest.Param(t, where, "tenant"), conn: conn}
	for i := range n {
		storetest.MustCreate(t, c.store, fmt.Sprint("log-", i))
	}
	first := []store.Log{storetest.MustCreate(t, c.store, "first"), storetest.MustCreate(t, c.store, "second")}
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT FROM shared.logs WHERE tenant = $1 AND name = ANY ($2) FOR UPDATE`, c.tenant, append(locked, "first", "second")); err != nil {
		t.Fatal(err)
	}
	c.free = sync.OnceFunc(func() {
		if err := tx.Rollback(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { c.free(); c.blocked.Wait() })
	for _, log := range first {
		c.blocked.Go(func() { c.add(log, 0, `{"late":true}`) })
	}
	c.await(len(first))
	return c
}

// await waits until so many statements wait for the logs that are locked.
func (c *crowd) await(n int) {
	c.t.Helper()
	for waiting := 0; waiting < n; {
		if err := c.conn.QueryRow(c.t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid`).Scan(&waiting); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *crowd) open(i int) store.Log {
	return storetest.MustOpen(c.t, c.store, fmt.Sprint("log-", i))
}

// run calls the next functions, all at the same time.
func (c *crowd) run() {
	var wg sync.WaitGroup
	for _, f := range c.next {
		wg.Go(f)
	}
	c.next = nil
	wg.Wait()
}

// number has each of n logs appended its number next.
func (c *crowd) number(n int) {
	for i := range n {
		log := c.open(i)
		at := storetest.MustEnd(c.t, log)
		c.next = append(c.next, func() { c.add(log, at, numbered(i)) })
	}
}

// add appends a line, which must succeed.
func (c *crowd) add(log store.Log, at store.Pos, line string) {
	if end, err := log.Append(context.WithoutCancel(c.t.Context()), at, []byte(line)); err != nil || end != at+store.Pos(len(line))+1 {
		c.t.Errorf("append %s: %d, %v", line, end, err)
	}
}

// want checks that each of n logs has its number, and that they were not added one by one.
func (c *crowd) want(n int) {
	c.t.Helper()
	for i := range n {
		lines := storetest.MustRead(c.t, c.open(i), 0)
		if len(lines) != 1 || string(lines[0].Data) != numbered(i) {
			c.t.Errorf("log %d has %+v, want %s", i, lines, numbered(i))
		}
	}
	if got := c.transactions(); got >= n {
		c.t.Errorf("%d lines were added by %d transactions", n, got)
	}
}

// transactions returns how many transactions have added the lines of the store.
func (c *crowd) transactions() (n int) {
	c.t.Helper()
	err := c.conn.QueryRow(c.t.Context(), `SELECT count(DISTINCT xmin::text) FROM shared.lines WHERE tenant = $1`, c.tenant).Scan(&n)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

func numbered(i int) string { return fmt.Sprintf(`{"n":%d}`, i) }

// Appends to many logs share a statement. Those to a log that another program has locked wait,
// alone.
func TestAppendsTogether(t *testing.T) {
	t.Parallel()
	const n = 40
	for _, mode := range []string{"cache_statement", "exec"} {
		c := newCrowd(t, postgrestest.With(t, postgrestest.URL(t), "default_query_exec_mode", mode), n+1, "log-40")
		locked := c.open(n)
		c.number(n)
		c.blocked.Go(func() { c.add(locked, 0, `{"late":true}`) })
		c.run()
		c.want(n)
		c.free()
		c.blocked.Wait()
		if lines := storetest.MustRead(t, locked, 0); len(lines) != 1 {
			t.Errorf("the log that was locked has %+v", lines)
		}
	}
}

// What is wrong with one append is not the fault of those that travel with it.
func TestAppendsTogetherFail(t *testing.T) {
	t.Parallel()
	const n = 20
	// So planned, the first of two lines for a log would be added if both were in the statement.
	c := newCrowd(t, postgrestest.With(t, postgrestest.URL(t), "enable_hashjoin", "off"), n+4)
	moved, removed, refused, twice := c.open(n), c.open(n+1), c.open(n+2), c.open(n+3)
	if err := c.store.Remove(t.Context(), fmt.Sprint("log-", n+1)); err != nil {
		t.Fatal(err)
	}
	fails := func(log store.Log, at store.Pos, want error) {
		c.next = append(c.next, func() {
			if _, err := log.Append(t.Context(), at, []byte(`{}`)); err == nil || want != nil && !errors.Is(err, want) {
				t.Errorf("an append at %d that should fail: %v, want %v", at, err, want)
			}
		})
	}
	fails(moved, 7, store.ErrConflict)
	fails(removed, 0, store.ErrNotExist)
	// Lines for the same place: one is added, and its writer knows.
	var winner atomic.Pointer[string]
	for i := range 5 {
		c.next = append(c.next, func() {
			line := fmt.Sprintf(`{"writer":%d}`, i)
			_, err := twice.Append(t.Context(), 0, []byte(line))
			switch {
			case err == nil:
				winner.Store(&line)
			case !errors.Is(err, store.ErrConflict):
				t.Errorf("one of several writers: %v", err)
			}
		})
	}
	c.number(n)
	c.run()
	c.want(n)
	if lines := storetest.MustRead(t, twice, 0); len(lines) != 1 || winner.Load() == nil || string(lines[0].Data) != *winner.Load() {
		t.Errorf("of several writers one has added %+v", lines)
	}
	// A line where there should be none, which makes the server refuse another one.
	postgrestest.Exec(t, postgrestest.Owner(t), `INSERT INTO shared.lines SELECT tenant, log, life, 0, '{}' FROM shared.logs WHERE tenant = $1 AND name = $2`,
		c.tenant, fmt.Sprint("log-", n+2))
	fails(refused, 0, nil)
	c.number(n)
	c.run()
	for i := range n {
		if lines := storetest.MustRead(t, c.open(i), 0); len(lines) != 2 {
			t.Errorf("beside a line that was refused, log %d has %+v", i, lines)
		}
	}
}

// If the answer to many appends is lost, each finds out what became of it.
func TestAppendsTogetherLost(t *testing.T) {
	t.Parallel()
	const n = 20
	where := postgrestest.URL(t)
	var statement atomic.Value // the connection that carries the lines of several
	var lost atomic.Bool
	// With exec, a statement is one message. What comes after it on its connection is the answer.
	dir := newCutter(t, hostOf(t, where), soak.Rand(t), func(client net.Conn, said []byte) bool {
		if bytes.Contains(said, []byte("SKIP LOCKED")) {
			statement.CompareAndSwap(nil, client)
			return false
		}
		return statement.Load() == client && lost.CompareAndSwap(false, true)
	})
	c := newCrowd(t, postgrestest.With(t, behind(t, where, dir), "default_query_exec_mode", "exec"), n)
	c.number(n)
	c.run()
	c.want(n)
	if !lost.Load() {
		t.Error("nothing was lost")
	}
}

// With appends=single, each append is a statement of its own.
func TestAppendsSingle(t *testing.T) {
	t.Parallel()
	const n = 20
	c := newCrowd(t, postgrestest.With(t, postgrestest.URL(t), "appends", "single"), n)
	c.number(n)
	c.run()
	if got := c.transactions(); got != n {
		t.Errorf("%d lines were added by %d transactions", n, got)
	}
}
