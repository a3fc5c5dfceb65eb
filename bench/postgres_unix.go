//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/postgres"
)

// databases are the works on a PostgreSQL server. It waits for the disk at every commit, and
// what is measured stands beside bare SQL on the same server.
func databases() []work {
	return []work{
		{"postgres: append", postgresAppend},
		{"postgres: replay", postgresReplay},
		{"postgres: resume", postgresResume},
		{"postgres: copy", postgresCopy},
		{"postgres: scale", postgresScale},
		{"postgres: index", postgresIndex},
	}
}

// database is a server with a store in it.
type database struct {
	server *postgrestest.Server
	where  string
	pool   *pgxpool.Pool // for bare SQL
}

func newDatabase() *database {
	bin, err := postgrestest.Find()
	check(err)
	dir, err := os.MkdirTemp("/tmp", "pgb") // the path of a socket must be short
	check(err)
	server, err := postgrestest.Start(bin, dir, "shared_buffers=256MB", "max_wal_size=4GB", "max_connections=300")
	check(err)
	d := &database{server: server, where: server.URL(url.Values{"pool_max_conns": {"64"}})}
	_, err = postgres.Migrate(context.Background(), d.where)
	check(err)
	d.pool, err = pgxpool.New(context.Background(), d.where)
	check(err)
	_, err = d.pool.Exec(context.Background(), `CREATE TABLE bare (session bigint, seq bigint, data bytea, PRIMARY KEY (session, seq))`)
	check(err)
	return d
}

func (d *database) close() {
	d.pool.Close()
	d.server.Stop()
}

// open opens the store.
func (d *database) open() *postgres.Store {
	st, err := postgres.Open(context.Background(), d.where, nil)
	check(err)
	return st
}

// together returns a measurement of how long one of many calls takes on average, when several
// workers make them at once.
func together(workers, calls int, call func(worker int)) func() time.Duration {
	return func() time.Duration {
		start := time.Now()
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for range calls / workers {
					call(w)
				}
			})
		}
		wg.Wait()
		return time.Since(start) / time.Duration(calls)
	}
}

// postgresAppend measures appends to sessions of their own, while one of them is watched,
// beside a prepared INSERT of the same bytes.
func postgresAppend(b *bench) (rows []row) {
	ctx := context.Background()
	d := newDatabase()
	defer d.close()
	st := d.open()
	defer st.Close()
	var sequence [64]int64
	var sessions [64]*session.Session
	var logs [64]store.Log
	var ends [64]store.Pos
	for i := range sessions {
		var err error
		sessions[i], err = session.Create(ctx, st, session.Header{}, nil)
		check(err)
		logs[i], err = st.Create(ctx, fmt.Sprint("log-", i), store.Lines())
		check(err)
	}
	watched, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for range logs[0].Watch(watched, 0) {
		}
	}()
	data := line()
	data = data[:len(data)-1]
	bare := func(w int) {
		sequence[w]++
		_, err := d.pool.Exec(ctx, `INSERT INTO bare VALUES ($1, $2, $3)`, int64(w), sequence[w], data)
		check(err)
	}
	ours := func(w int) { appender(sessions[w])() }
	logged := func(w int) {
		var err error
		ends[w], err = logs[w].Append(ctx, ends[w], data)
		check(err)
	}
	for _, n := range []int{1, 8, 64} {
		calls := 64 * 20
		if n == 1 {
			calls = 300
		}
		t := inTurns(b.rounds(25), together(n, calls, bare), together(n, calls, ours), together(n, calls, logged))
		rows = append(rows, atMost(fmt.Sprintf("postgres: append, %s, watched", connections(n)), t[0], t[1], 1.25),
			atMost("– the store's part of it", t[0], t[2], 0))
	}
	return rows
}

func connections(n int) string {
	if n == 1 {
		return "1 connection"
	}
	return fmt.Sprintf("%d connections", n)
}

// postgresReplay measures reading all of a session's lines beside a bare SELECT.
func postgresReplay(b *bench) []row {
	ctx := context.Background()
	d := newDatabase()
	defer d.close()
	st := d.open()
	defer st.Close()
	const n = 10_000
	log, err := st.Create(ctx, "long", linesOf(b.writeSession(messages(n))))
	check(err)
	_, err = d.pool.Exec(ctx, `INSERT INTO bare SELECT 1, pos, data FROM coppice.lines`)
	check(err)
	_, err = d.pool.Exec(ctx, `VACUUM ANALYZE`)
	check(err)
	t := inTurns(b.rounds(30), once(func() {
		rows, err := d.pool.Query(ctx, `SELECT seq, data FROM bare WHERE session = $1 ORDER BY seq`, int64(1))
		check(err)
		_, err = pgx.CollectRows(rows, func(in pgx.CollectableRow) (l store.Line, err error) {
			var pos int64
			return l, in.Scan(&pos, &l.Data)
		})
		check(err)
	}), once(func() {
		read := 0
		for _, err := range log.Forward(ctx, 0) {
			check(err)
			read++
		}
		if read < n {
			check(fmt.Errorf("read %d lines", read))
		}
	}))
	return []row{atMost("postgres: replay of 10,000 entries", t[0], t[1], 1.25)}
}

// linesOf yields the lines of a session file.
func linesOf(path string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		st, err := file.Open(filepath.Dir(path), nil)
		check(err)
		defer st.Close()
		log, err := st.Open(context.Background(), strings.TrimSuffix(filepath.Base(path), ".jsonl"))
		check(err)
		for line, err := range log.Forward(context.Background(), 0) {
			if !yield(line.Data, err) {
				return
			}
		}
	}
}

// postgresResume measures how long it takes to get the context of a compacted session, and how
// often the server is asked for that.
func postgresResume(b *bench) []row {
	ctx := context.Background()
	d := newDatabase()
	defer d.close()
	counted := newCounter(d.server.Dir)
	defer counted.close()
	where := d.server.URL(url.Values{"pool_max_conns": {"1"}}) // each connection prepares its own statements, once
	st, err := postgres.Open(ctx, strings.Replace(where, url.QueryEscape(d.server.Dir), url.QueryEscape(counted.dir), 1), nil)
	check(err)
	defer st.Close()
	entries := []int64{1_000, 100_000}
	if b.quick {
		entries[1] = 10_000
	}
	size := int64(len(line()))
	var measures []func() time.Duration
	var trips []int64
	for _, n := range entries {
		name := fmt.Sprint("of-", n)
		log, err := st.Create(ctx, name, linesOf(b.writeSession(compacted(n*size))))
		check(err)
		check(log.Close())
		resume := func() {
			s, err := session.Open(ctx, st, name, nil)
			check(err)
			found, err := s.GetContext()
			check(err)
			if len(found) != kept+2 {
				check(fmt.Errorf("the context has %d entries", len(found)))
			}
			check(s.Close())
		}
		resume()
		time.Sleep(50 * time.Millisecond) // until others were told of the new session
		before := counted.trips.Load()
		resume()
		trips = append(trips, counted.trips.Load()-before)
		measures = append(measures, once(resume))
	}
	t := inTurns(b.rounds(30), measures...)
	rows := []row{atMost(fmt.Sprintf("postgres: resume, %d entries beside %d", entries[1], entries[0]), t[0], t[1], 1.5)}
	for i, n := range entries {
		rows = append(rows, row{work: fmt.Sprintf("– round trips with %d entries", n), ours: fmt.Sprint(trips[i]), goal: "≤ 3", met: trips[i] <= 3})
	}
	return rows
}

// counter is a proxy that counts how often a client speaks and then waits.
type counter struct {
	dir      string
	listener net.Listener
	trips    atomic.Int64
}

func newCounter(server string) *counter {
	const socket = ".s.PGSQL.5432"
	dir, err := os.MkdirTemp("/tmp", "cnt")
	check(err)
	c := &counter{dir: dir}
	c.listener, err = net.Listen("unix", filepath.Join(dir, socket))
	check(err)
	go func() {
		for {
			client, err := c.listener.Accept()
			if err != nil {
				return
			}
			go c.serve(client, filepath.Join(server, socket))
		}
	}()
	return c
}

func (c *counter) serve(client net.Conn, socket string) {
	defer client.Close()
	server, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer server.Close()
	var answered atomic.Bool
	answered.Store(true)
	go func() {
		_, _ = io.Copy(client, reader(func(p []byte) (int, error) {
			n, err := server.Read(p)
			answered.Store(true)
			return n, err
		}))
		client.Close()
	}()
	_, _ = io.Copy(server, reader(func(p []byte) (int, error) {
		n, err := client.Read(p)
		if answered.Swap(false) {
			c.trips.Add(1)
		}
		return n, err
	}))
}

func (c *counter) close() {
	c.listener.Close()
	os.RemoveAll(c.dir)
}

type reader func(p []byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

// postgresCopy copies a home in files to a database, and back.
func postgresCopy(b *bench) []row {
	d := newDatabase()
	defer d.close()
	files, tenants, to := b.homeToCopy(), 0, ""
	rows := b.copyHome("postgres: copy from files", files, files, func() string {
		tenants++
		to = d.server.URL(url.Values{"tenant": {fmt.Sprint("t", tenants)}})
		return to
	})
	back := func() string { return filepath.Join(b.newDir(), "sessions") }
	return append(rows, b.copyHome("postgres: copy to files", files, to, back)...)
}
