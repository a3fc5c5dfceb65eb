//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-dev/coppice/index"
	indexpostgres "github.com/coppice-dev/coppice/index/postgres"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/postgres"
)

// perLog is how many messages a session has: a million messages are 100,000 sessions.
const perLog = 10

// postgresIndex measures the index of a home in a database.
func postgresIndex(b *bench) (rows []row) {
	ctx := context.Background()
	where := b.database
	if where == "" {
		d := newDatabase()
		defer d.close()
		where = d.where
	}
	_, err := postgres.Migrate(ctx, where, indexpostgres.Migrate)
	check(err)
	n := b.messages
	if b.quick {
		n /= 10
	}
	fillStore(where, n)
	x := openIndex(where)
	defer x.close()
	rows = append(rows, x.build(n)...)
	_, err = x.pool.Exec(ctx, `VACUUM ANALYZE`)
	check(err)
	rows = append(rows, x.lists(b, n)...)
	rows = append(rows, x.searches(b, n)...)
	return append(rows, x.appends(b)...)
}

// fillStore writes sessions, unless there are some.
func fillStore(where string, n int) {
	ctx := context.Background()
	// What is made here need not be safe.
	st, err := postgres.Open(ctx, where+"&synchronous_commit=off", nil)
	check(err)
	defer st.Close()
	for range st.List(ctx) {
		return
	}
	texts := zipfTexts(n)
	first := time.Now().Add(-time.Duration(n) * 20 * time.Second)
	var next atomic.Int64
	together(8, n/perLog, func(int) {
		s := int(next.Add(1)) - 1
		log, err := st.Create(ctx, logName(s), sessionLines(s, texts[s*perLog:][:perLog], first.Add(time.Duration(s*perLog)*20*time.Second)))
		check(err)
		check(log.Close())
	})()
}

func logName(n int) string { return fmt.Sprintf("s%07d", n) }

// sessionLines yields the lines of a session.
func sessionLines(s int, texts []string, at time.Time) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if !yield(fmt.Appendf(nil, `{"type":"session","id":%q,"version":1,"timestamp":%q,"cwd":"/home/u/p%d"}`, logName(s), at.UTC().Format(time.RFC3339Nano), s%50), nil) {
			return
		}
		parent := "null"
		for i, text := range texts {
			at = at.Add(20 * time.Second)
			id := fmt.Sprintf(`"%08x-%04x-7000-8000-%012x"`, s, i, i)
			role, extra := "user", ""
			if i%2 == 1 {
				role, extra = "assistant", fmt.Sprintf(`,"model":"model-%d","usage":{"input":%d,"output":%d},"response_id":"r%d-%d"`, s%5, 100+i, 10+i, s, i)
			}
			line := fmt.Appendf(nil, `{"type":"message","id":%s,"parent_id":%s,"timestamp":%q,"message":{"role":%q,"content":[{"type":"text","text":{"content":%q}}]%s}}`,
				id, parent, at.UTC().Format(time.RFC3339Nano), role, text, extra)
			if !yield(line, nil) {
				return
			}
			parent = id
		}
	}
}

// databaseIndex is an index in a database, and a connection for bare SQL.
type databaseIndex struct {
	st      *postgres.Store
	ix      *index.Index
	pool    *pgxpool.Pool
	counted *counter // of what the store and the index ask
}

func openIndex(where string) *databaseIndex {
	ctx := context.Background()
	u, err := url.Parse(where)
	check(err)
	params := u.Query()
	x := &databaseIndex{counted: newCounter(params.Get("host"))}
	x.pool, err = pgxpool.New(ctx, where)
	check(err)
	params.Set("host", x.counted.dir)
	u.RawQuery = params.Encode()
	x.st, err = postgres.Open(ctx, u.String(), nil)
	check(err)
	room, err := indexpostgres.Open(ctx, x.st)
	check(err)
	x.ix = index.New(x.st, room, nil)
	return x
}

func (x *databaseIndex) close() {
	x.ix.Close()
	x.st.Close()
	x.pool.Close()
	x.counted.close()
}

// build brings the index up to date.
func (x *databaseIndex) build(n int) (rows []row) {
	ctx := context.Background()
	start, trips := time.Now(), x.counted.trips.Load()
	shown := start
	report, err := x.ix.CatchUp(ctx, func(done, total int64) {
		if time.Since(shown) > 10*time.Second {
			shown = time.Now()
			fmt.Fprintf(os.Stderr, "indexed %d of %d MB in %.0f s\n", done>>20, total>>20, time.Since(start).Seconds())
		}
	})
	check(err)
	if took := time.Since(start); report.Entries > 0 {
		rows = append(rows, row{work: fmt.Sprintf("postgres: index %d messages (%s)", report.Entries, perSecond(int(report.Entries), took)), ours: show(took)},
			row{work: "– round trips for each message", ours: fmt.Sprintf("%.2f", float64(x.counted.trips.Load()-trips)/float64(report.Entries))})
	}
	var size, lines int64
	check(x.pool.QueryRow(ctx, `SELECT sum(pg_total_relation_size(oid)) FILTER (WHERE relname LIKE 'index\_%'), sum(pg_total_relation_size(oid)) FILTER (WHERE relname NOT LIKE 'index\_%')
		FROM pg_class WHERE relkind = 'r' AND relnamespace = 'coppice'::regnamespace`).Scan(&size, &lines))
	return append(rows, row{work: "– bytes for each message, beside those of the store", raw: fmt.Sprint(lines / int64(n)), ours: fmt.Sprint(size / int64(n)), ratio: fmt.Sprintf("%.2f ×", float64(size)/float64(lines))})
}

// lists measures pages of the list beside a bare SELECT of the rows that they show.
func (x *databaseIndex) lists(b *bench, n int) (rows []row) {
	ctx := context.Background()
	for _, by := range []struct {
		name, where string
		o           index.ListOptions
	}{
		{"", "", index.ListOptions{Desc: true}},
		{", of a directory", " AND dir = (SELECT id FROM coppice.index_names WHERE name = '/home/u/p7')", index.ListOptions{Desc: true, CWD: "/home/u/p7"}},
	} {
		bare := func() {
			found, err := x.pool.Query(ctx, `SELECT row FROM coppice.index_sessions WHERE tenant = ''`+by.where+` ORDER BY updated DESC, ord DESC LIMIT 50`)
			check(err)
			all, err := pgx.CollectRows(found, pgx.RowTo[[]byte])
			check(err)
			if len(all) == 0 {
				check(errors.New("no rows"))
			}
		}
		list := func() {
			page, _, err := x.ix.List(ctx, by.o)
			check(err)
			if len(page) == 0 {
				check(errors.New("no sessions"))
			}
		}
		list()
		trips := x.counted.trips.Load()
		list()
		trips = x.counted.trips.Load() - trips
		t := inTurns(b.rounds(200), once(bare), once(list))
		rows = append(rows, beside(fmt.Sprintf("postgres: list 50 of %d sessions%s (%d round trips)", n/perLog, by.name, trips), t[0], t[1], 5*time.Millisecond))
	}
	return rows
}

// searches measures queries of all sorts. Each is asked with other words every time.
func (x *databaseIndex) searches(b *bench, n int) (rows []row) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(7, 7))
	word := func(from, to int) string { return "w" + strconv.FormatInt(int64(from+r.IntN(to-from)), 36) }
	rare := func() string { return word(20_000, 50_000) }
	common := func() string { return word(10, 30) }
	sessions := n / perLog
	for _, q := range []struct {
		name  string
		query func() string
	}{
		{"a rare word", rare},
		{"a word of a hundredth of all", func() string { return word(300, 600) }},
		{"a common word", common},
		{"two words", func() string { return common() + " " + word(100, 10_000) }},
		{"a phrase of the commonest words", func() string { return `"w0 w1"` }},
		{"a phrase of common words", func() string { return `"` + common() + " " + common() + `"` }},
		{"a rare phrase of common words", func() string { return `"` + word(4, 12) + " " + word(4, 12) + " " + word(4, 12) + `"` }},
		{"a prefix", func() string { return word(36, 36*36) + "*" }},
		{"OR", func() string { return common() + " OR " + common() + " OR " + rare() }},
		{"NOT", func() string { return common() + " -w1 -" + common() }},
		{"a common word and a role", func() string { return common() + " role:user" }},
		{"a common word in a session", func() string { return "w0 session:" + logName(r.IntN(sessions)) }},
		{"a common word in a directory", func() string { return common() + " cwd:/home/u/p" + strconv.Itoa(r.IntN(50)) }},
		{"a common word of the last days", func() string { return common() + " since:7d" }},
		{"a common word of old times", func() string {
			return common() + " until:" + time.Now().Add(-time.Duration(n)*15*time.Second).Format(time.DateOnly)
		}},
		{"a misspelt word", func() string { return rare() + "qx" }},
	} {
		var took []time.Duration
		trips := x.counted.trips.Load()
		for range b.rounds(60) {
			query := q.query()
			start := time.Now()
			_, err := x.ix.Search(ctx, index.SearchOptions{Query: query})
			check(err)
			took = append(took, time.Since(start))
		}
		trips = x.counted.trips.Load() - trips
		rows = append(rows, within(fmt.Sprintf("postgres: search %s, p95 (p50 %s, max %s, %d trips)", q.name, show(quantile(took, 0.5)), show(slices.Max(took)), trips/int64(len(took))),
			quantile(took, 0.95), 100*time.Millisecond))
	}
	return rows
}

// appends measures a catch-up after one appended message.
func (x *databaseIndex) appends(b *bench) []row {
	ctx := context.Background()
	s, err := session.Open(ctx, x.st, logName(1), nil)
	check(err)
	defer s.Close()
	add := appender(s)
	catchUp := func() time.Duration {
		add()
		start := time.Now()
		_, err := x.ix.CatchUp(ctx, nil)
		check(err)
		return time.Since(start)
	}
	catchUp()
	add()
	trips := x.counted.trips.Load()
	_, err = x.ix.CatchUp(ctx, nil)
	check(err)
	trips = x.counted.trips.Load() - trips
	t := inTurns(b.rounds(30), catchUp)
	return []row{{work: fmt.Sprintf("postgres: index one appended message (%d round trips)", trips), ours: show(t[0])}}
}
