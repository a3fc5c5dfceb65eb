//go:build unix

package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
)

// postgresScale measures what docs/scale.md calculates with: what a session and an entry take on
// the server's disk, and what each operation asks of it.
func postgresScale(b *bench) (rows []row) {
	d := newDatabase()
	defer d.close()
	counted := newCounter(d.server.Dir)
	defer counted.close()
	where := d.server.URL(url.Values{"pool_max_conns": {"1"}}) // each connection prepares its own statements, once
	st, err := postgres.Open(context.Background(), strings.Replace(where, url.QueryEscape(d.server.Dir), url.QueryEscape(counted.dir), 1), nil)
	check(err)
	defer st.Close()
	s := &scale{database: d, store: st, counted: counted, sessions: b.sessions, entries: 50}
	if b.quick {
		s.sessions /= 10
	}
	s.fill()
	rows = append(rows, s.sizes()...)
	rows = append(rows, s.operations()...)
	return append(rows, s.left()...)
}

// scale is a database with many sessions.
type scale struct {
	*database
	store             *postgres.Store
	counted           *counter
	sessions, entries int
}

// fill makes the sessions.
func (s *scale) fill() {
	ctx, data := context.Background(), line()
	data = data[:len(data)-1]
	lines := make([][]byte, s.entries)
	for i := range lines {
		lines[i] = data
	}
	for n := 0; n < s.sessions; {
		batch := s.store.Batch()
		for ; n < s.sessions && batch.Len() < 500; n++ {
			check(batch.Add(ctx, fmt.Sprint("session-", n), store.Lines(lines...)))
		}
		for _, err := range batch.Commit(ctx) {
			check(err)
		}
	}
	s.exec(`VACUUM (ANALYZE, FREEZE)`)
}

func (s *scale) exec(sql string) {
	_, err := s.pool.Exec(context.Background(), sql)
	check(err)
}

// ask returns a number that the server knows.
func (s *scale) ask(sql string, args ...any) (n float64) {
	check(s.pool.QueryRow(context.Background(), sql, args...).Scan(&n))
	return n
}

// sizes are those of the tables.
func (s *scale) sizes() (rows []row) {
	entries := float64(s.sessions * s.entries)
	of := func(what, table string, n float64, each string) {
		heap := s.ask(`SELECT pg_table_size($1::regclass)::float8`, table)
		index := s.ask(`SELECT pg_indexes_size($1::regclass)::float8`, table)
		rows = append(rows,
			row{work: fmt.Sprintf("scale: a row of %s, for each %s", what, each), raw: bytesOf(float64(len(line()))), ours: bytesOf(heap / n)},
			row{work: "– in its indexes", ours: bytesOf(index / n)})
	}
	of("lines", "coppice.lines", entries, "entry")
	rows[0].ratio = fmt.Sprintf("%.2f ×", s.ask(`SELECT pg_total_relation_size('coppice.lines')::float8`)/entries/float64(len(line())))
	of("logs", "coppice.logs", float64(s.sessions), "session")
	rows[2].raw = ""
	return rows
}

// operations are what a program does all day.
func (s *scale) operations() (rows []row) {
	ctx, n := context.Background(), 0
	data := line()
	data = data[:len(data)-1]
	log, err := s.store.Open(ctx, "session-0")
	check(err)
	end, err := log.End(ctx)
	check(err)
	for _, op := range []struct {
		name  string
		times int
		do    func()
	}{
		{"append of an entry", 500, func() {
			end, err = log.Append(ctx, end, data)
			check(err)
		}},
		{"append of ten entries", 100, func() {
			ten := make([][]byte, 10)
			for i := range ten {
				ten[i] = data
			}
			end, err = log.Append(ctx, end, ten...)
			check(err)
		}},
		{"create a session", 200, func() {
			n++
			created, err := s.store.Create(ctx, fmt.Sprint("created-", n), store.Lines(data))
			check(err)
			check(created.Close())
		}},
		{"open a session and read its end", 100, func() {
			n++
			opened, err := s.store.Open(ctx, fmt.Sprint("session-", n%s.sessions))
			check(err)
			last, err := opened.End(ctx)
			check(err)
			for _, err := range opened.Backward(ctx, last) {
				check(err)
				break
			}
			check(opened.Close())
		}},
		{"remove a session", 100, func() {
			n++
			check(s.store.Remove(ctx, fmt.Sprint("session-", n%s.sessions)))
		}},
		{fmt.Sprintf("list %d sessions", s.sessions), 1, func() {
			for _, err := range s.store.List(ctx) {
				check(err)
			}
		}},
	} {
		rows = append(rows, s.operation(op.name, op.times, op.do)...)
	}
	return rows
}

// operation measures one of them.
func (s *scale) operation(name string, times int, do func()) []row {
	do()                               // prepares its statements
	time.Sleep(100 * time.Millisecond) // until others were told
	s.exec(`CHECKPOINT`)
	const written = `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8`
	do() // writes whole pages, the first time after a checkpoint
	time.Sleep(100 * time.Millisecond)
	wal, trips := s.ask(written), s.counted.trips.Load()
	for range times {
		do()
	}
	trips = s.counted.trips.Load() - trips
	wal = s.ask(written) - wal
	return []row{
		{work: "scale: " + name + ", round trips", ours: fmt.Sprintf("%.1f", float64(trips)/float64(times))},
		{work: "– WAL", ours: bytesOf(wal / float64(times))},
	}
}

// left is what the appends have left behind for VACUUM.
func (s *scale) left() []row {
	time.Sleep(1100 * time.Millisecond) // until the server has counted
	updates := s.ask(`SELECT n_tup_upd::float8 FROM pg_stat_user_tables WHERE relid = 'coppice.logs'::regclass`)
	hot := s.ask(`SELECT n_tup_hot_upd::float8 FROM pg_stat_user_tables WHERE relid = 'coppice.logs'::regclass`)
	dead := s.ask(`SELECT n_dead_tup::float8 FROM pg_stat_user_tables WHERE relid = 'coppice.lines'::regclass`)
	return []row{
		{work: "scale: updates of logs that touch no index", ours: fmt.Sprintf("%.0f %%", 100*hot/max(1, updates))},
		{work: "– dead rows among the lines", ours: fmt.Sprintf("%.0f", dead)},
	}
}

func bytesOf(n float64) string {
	if n < 10_000 {
		return fmt.Sprintf("%.0f B", n)
	}
	return fmt.Sprintf("%.0f kB", n/1000)
}
