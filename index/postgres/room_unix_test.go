//go:build unix

package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	index "github.com/coppice-dev/coppice/index/postgres"
	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
)

func mustOpen(t testing.TB, where string) *index.Room {
	t.Helper()
	s, err := postgres.Open(t.Context(), where, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := index.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), s.Close() })
	return r
}

// update writes, and reports what went wrong.
func update(ctx context.Context, r *index.Room, f func(tx room.Tx) error) error {
	return r.View(ctx, false, func(tables room.Tables) error { return r.Update(ctx, tables, f) })
}

func mustUpdate(t testing.TB, r *index.Room, f func(tx room.Tx) error) {
	t.Helper()
	if err := update(t.Context(), r, f); err != nil {
		t.Fatal(err)
	}
}

// column returns the first column of an answer.
func column[T any](ctx context.Context, q room.Querier, query string, args ...any) (all []T, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// want checks what a query answers.
func want[T comparable](t testing.TB, r *index.Room, want []T, query string, args ...any) {
	t.Helper()
	err := r.View(t.Context(), false, func(tables room.Tables) error {
		got, err := column[T](t.Context(), tables, query, args...)
		if err == nil && !slices.Equal(got, want) {
			t.Errorf("%s %v\n got %v\nwant %v", query, args, got, want)
		}
		return err
	})
	if err != nil {
		t.Errorf("%s: %v", query, err)
	}
}

// texts adds documents; facets are the words that begin with an underscore.
func texts(ctx context.Context, tx room.Tx, docs map[int64]string) error {
	var words []string
	var all []room.Text
	counts := make(map[string]int)
	for id, doc := range docs {
		text := room.Text{ID: id}
		seen := make(map[string]bool)
		for word := range strings.FieldsSeq(doc) {
			n := uint32(len(words))
			if at := slices.Index(words, word); at >= 0 {
				n = uint32(at)
			} else {
				words = append(words, word)
			}
			if strings.HasPrefix(word, "_") && !strings.HasPrefix(word, "__") {
				text.Facets = append(text.Facets, n)
				continue
			}
			text.Body = append(text.Body, n)
			if !seen[word] {
				counts[word]++
			}
			seen[word] = true
		}
		all = append(all, text)
	}
	slices.SortFunc(all, func(a, b room.Text) int { return int(a.ID - b.ID) })
	var rows []any
	for word, n := range counts {
		rows = append(rows, word, n, "")
	}
	done := tx.AddTexts(ctx, all, words)
	return done(tx.InsertContext(ctx, "terms", "term, df, stem", " ON CONFLICT (term) DO UPDATE SET df = terms.df + excluded.df", rows))
}

const find = `SELECT rowid FROM fts WHERE fts MATCH ? ORDER BY rowid DESC`

func mustFind(t *testing.T, r *index.Room, m room.Match) (ids []int64) {
	t.Helper()
	err := r.View(t.Context(), false, func(tables room.Tables) (err error) {
		ids, err = column[int64](t.Context(), tables, find, m)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestFullText(t *testing.T) {
	t.Parallel()
	r := mustOpen(t, postgrestest.With(t, postgrestest.URL(t), "tenant", "it's another tenant"))
	const era = 1 << 26
	docs := map[int64]string{
		1:           "the quick brown fox _s1 _k0",
		2:           "the brown quick fox __option _s1 _k1",
		3 * era:     "it's a b\\ c \x00 🚀 _s2 _k0",
		300*era + 5: "the _s3",
	}
	for i := range int64(200) {
		docs[(100+i)*era] = "common word _s4"
	}
	mustUpdate(t, r, func(tx room.Tx) error { return texts(t.Context(), tx, docs) })
	for match, ids := range map[string][]int64{
		`"the"`:                                {300*era + 5, 2, 1},
		`"the" AND "_s1"`:                      {2, 1},
		`("the" NOT ("_k1" OR "_s3"))`:         {1},
		`body : "quick brown"`:                 {1},
		`body : "brown quick fox" OR "🚀"`:      {3 * era, 2},
		`body : "fox _k0"`:                     nil,
		`"it's" AND "b\" AND "` + "\x00" + `"`: {3 * era},
		`"` + "\xff" + `"`:                     {3 * era}, // what is no text is all the same
		`"__option"`:                           {2},
		`"nothing"`:                            nil,
		`"_@@" OR "_@0@"`:                      nil,
		`"quick" AND ("fox" OR "nothing")`:     {2, 1},
	} {
		want(t, r, ids, find, room.Match{Query: match})
		want(t, r, ids, find, room.Match{Query: match, Newest: 1000})
	}
	// In whichever era they are, the newest are found first.
	for _, newest := range []int{1, 2, 3, 50, 64, 150, 200, 300} {
		var ids []int64
		for i := range int64(min(newest, 200)) {
			ids = append(ids, (299-i)*era)
		}
		want(t, r, ids, find, room.Match{Query: `"common"`, Newest: newest})
	}
	want(t, r, []int64{250 * era, 249 * era}, find, room.Match{Query: `"common"`, To: 250*era + 1, Newest: 2})
	want(t, r, []int64{251 * era, 250 * era}, find, room.Match{Query: `"word"`, From: 250 * era, To: 251 * era, Newest: 200})
	want(t, r, []int64{251 * era, 250 * era}, find, room.Match{Query: `"word"`, From: 250 * era, To: 251 * era})

	// For a phrase, the newest texts are looked into, always the same number, unless all matches are
	// wanted. A frequent word is found in all texts.
	r.SetLookedInto(3)
	for _, tt := range []struct {
		query    string
		few      bool
		from     int64
		found    int
		isPartly bool
	}{
		{`body : "quick brown"`, false, 0, 0, true},
		{`body : "quick brown"`, true, 0, 1, false},
		{`body : "quick brown"`, false, 298 * era, 0, false},
		{`"common"`, false, 0, 200, false},
		{`body : "common"`, false, 0, 200, false},
	} {
		isPartly := false
		got := mustFind(t, r, room.Match{Query: tt.query, From: tt.from, Newest: 1000, Few: tt.few, Partly: &isPartly})
		if len(got) != tt.found || isPartly != tt.isPartly {
			t.Errorf("%s: %d found, partly %v: %+v", tt.query, len(got), isPartly, tt)
		}
	}

	// What is dropped is not found, and its words are forgotten if no other text has them.
	mustUpdate(t, r, func(tx room.Tx) error { return tx.DropTexts(t.Context(), []int64{2, 300*era + 5, 77}) })
	want(t, r, []int64{1}, find, room.Match{Query: `"the"`})
	want(t, r, []string{"brown", "common", "fox", "quick", "the", "word"}, `SELECT term FROM terms WHERE length(term) > 2 AND term <> ? ORDER BY term`, "it's")
	want(t, r, []int64{1}, `SELECT df FROM terms WHERE term = ?`, "the")
	want[string](t, r, nil, `SELECT df FROM terms WHERE term = ?`, "__option")
	mustUpdate(t, r, func(tx room.Tx) error {
		if err := tx.AddTexts(t.Context(), []room.Text{{ID: 9, Body: []uint32{0}}}, []string{"gone"})(errors.New("given up")); err == nil {
			return errors.New("an error is lost")
		}
		return nil
	})
	want[int64](t, r, nil, find, room.Match{Query: `"gone"`})
}

// What the rows of an index may have comes back as it was, or as near as the server allows.
func TestValues(t *testing.T) {
	t.Parallel()
	r := mustOpen(t, postgrestest.URL(t))
	mustUpdate(t, r, func(tx room.Tx) error {
		rows := []any{
			1, 0,
			[]byte{0, 255},
			-1, 0, 5, true, nil,
			1, 1, nil, 0, 9, 6, false, 7,
		}
		if err := tx.InsertContext(t.Context(), "entries", "session, n, id, parent, pos, time, class, context", "", rows); err != nil {
			return err
		}
		if err := tx.InsertContext(t.Context(), "sessions", "id, row", "", []any{3, []byte{}}); err != nil {
			return err
		}
		if err := tx.InsertContext(t.Context(), "names", "id, name", "", []any{1, "Tschüß \x00\xff"}); err != nil {
			return err
		}
		return tx.InsertContext(t.Context(), "sessions", "id, name, tools", "", []any{1, "a", `{"ba\u0000sh":2}`, 2, nil, `{"ba\u0000sh":3,"é":1}`})
	})
	want(t, r, []int64{1, 0}, `SELECT class FROM entries WHERE session = ? ORDER BY n`, 1)
	want(t, r, []bool{false, true}, `SELECT id IS NULL FROM entries ORDER BY n`)
	want(t, r, []int64{0}, `SELECT n FROM entries WHERE id = ? AND context IS NULL AND time / 2 = 2`, []byte{0, 255})
	want(t, r, []int64{3, 2}, `SELECT id FROM sessions WHERE length(row) = 0 ORDER BY id DESC LIMIT 2`)
	want(t, r, []string{"Tschüß ��"}, `SELECT name FROM names WHERE name = ? AND lower(name) = lower(?)`, "Tschüß \x00\xff", "TSCHüß \x00\xff")
	want[string](t, r, nil, `SELECT name FROM names WHERE lower(name) = lower(?)`, "TSCHÜSS")
	want(t, r, []int64{5}, `SELECT sum(j.value) FROM sessions s, json_each(s.tools) j WHERE j.key = ?`, "ba\x00sh")
	want(t, r, []int64{3, 1 << 40}, `SELECT value FROM json_each(?) WHERE value > 2 ORDER BY value`, `[3,1,1099511627776]`)
	want(t, r, []string{"\\u", "a�"}, `SELECT j.atom FROM json_each(?) j ORDER BY j.atom`, `["a\u0000","\\u"]`)
	want(t, r, []int64{4294967295, 40}, `SELECT 4294967295 UNION SELECT 5 << CAST(? AS int) ORDER BY 1 DESC`, 3)
	want(t, r, []string{"a"}, `SELECT name FROM sessions WHERE name IS NOT NULL AND (updated, ord) <= (?, ?)`, 0, 0)
}

// An index asks while it goes through an answer, also in a transaction, and however few
// connections there are.
func TestAnswersWhileAsking(t *testing.T) {
	t.Parallel()
	r := mustOpen(t, postgrestest.With(t, postgrestest.URL(t), "pool_max_conns", "1"))
	nested := func(q room.Querier) error {
		rows, err := q.QueryContext(t.Context(), `SELECT name FROM counters`)
		if err != nil {
			return err
		}
		defer rows.Close()
		n := 0
		for ; rows.Next(); n++ {
			var name string
			if err := rows.Scan(&name); err != nil {
				return err
			}
			if names, err := column[string](t.Context(), q, `SELECT name FROM counters WHERE name = ?`, name); err != nil || len(names) != 1 {
				return fmt.Errorf("%v, %w", names, err)
			}
		}
		if n != 4 {
			return fmt.Errorf("%d counters", n)
		}
		return rows.Err()
	}
	err := r.View(t.Context(), false, func(tables room.Tables) error {
		if err := nested(tables); err != nil {
			return err
		}
		return r.Update(t.Context(), tables, func(tx room.Tx) error { return errors.Join(nested(tx), nested(tables)) })
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWritesWait tests that what a transaction writes is seen by what it asks, counted if somebody
// wants to know, and that a failure ends the transaction, whatever it travels with.
func TestWritesWait(t *testing.T) {
	r := mustOpen(t, postgrestest.URL(t))
	const insert = `INSERT INTO names (id, name) VALUES (?, ?)`
	mustUpdate(t, r, func(tx room.Tx) error {
		for n := range 200 { // more than wait
			if _, err := tx.ExecContext(t.Context(), insert, n, fmt.Sprint(n)); err != nil {
				return err
			}
		}
		all, err := column[int64](t.Context(), tx, `SELECT count(*) FROM names`)
		if err != nil || all[0] != 200 {
			t.Errorf("the transaction sees %d, want 200 (%v)", all, err)
		}
		res, err := tx.ExecContext(t.Context(), `DELETE FROM names WHERE id >= ?`, 150)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); n != 50 || err != nil {
			t.Errorf("it deleted %d (%v), want 50", n, err)
		}
		return nil
	})
	for name, then := range map[string]func(tx room.Tx) error{
		"the end":    func(room.Tx) error { return nil },
		"a question": func(tx room.Tx) error { _, err := column[int64](t.Context(), tx, `SELECT 1`); return err },
		"a mistake that is ignored": func(tx room.Tx) error {
			_, _ = column[int64](t.Context(), tx, `SELECT 1`)
			return nil
		},
	} {
		err := update(t.Context(), r, func(tx room.Tx) error {
			for _, n := range []int{1000, 7} { // which is there
				if _, err := tx.ExecContext(t.Context(), insert, n, fmt.Sprint(n)); err != nil {
					return err
				}
			}
			return then(tx)
		})
		if err == nil {
			t.Errorf("before %s: no error", name)
		}
		want(t, r, []int64{150}, `SELECT count(*) FROM names`)
	}
}

// TestNothingIsCompiled tests that the server does not compile what it is asked.
func TestNothingIsCompiled(t *testing.T) {
	r := mustOpen(t, postgrestest.With(t, postgrestest.URL(t), "jit", "on"))
	const query = `SELECT current_setting('jit')`
	want(t, r, []string{"off"}, query)
	mustUpdate(t, r, func(tx room.Tx) error {
		if set, err := column[string](t.Context(), tx, query); err != nil || set[0] != "off" {
			t.Errorf("jit is %q (%v)", set, err)
		}
		return nil
	})
}

// count adds one to a counter, as programs do that keep what they have read.
func count(ctx context.Context, r *index.Room) error {
	return update(ctx, r, func(tx room.Tx) error {
		var n int64
		if err := tx.QueryRowContext(ctx, `SELECT value FROM counters WHERE name = 'docs'`).Scan(&n); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE counters SET value = ? WHERE name = 'docs'`, n+1)
		return err
	})
}

// Two programs that write at once do not lose what the other has written.
func TestOneWriter(t *testing.T) {
	t.Parallel()
	where := postgrestest.URL(t)
	one, two := mustOpen(t, where), mustOpen(t, where)
	var wg sync.WaitGroup
	for _, r := range []*index.Room{one, one, two, two} {
		wg.Go(func() {
			for range 10 {
				if err := count(t.Context(), r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	want(t, two, []int64{40}, `SELECT value FROM counters WHERE name = ?`, "docs")
	if err := update(t.Context(), one, func(tx room.Tx) error {
		if err := tx.InsertContext(t.Context(), "stale", "session", "", []any{1}); err != nil {
			return err
		}
		return errors.New("changed my mind")
	}); err == nil {
		t.Error("an error is lost")
	}
	want[string](t, one, nil, `SELECT session FROM stale`)
	two.SetPatience(50 * time.Millisecond)
	mustUpdate(t, one, func(room.Tx) error {
		if err := count(t.Context(), two); !errors.Is(err, store.ErrLocked) {
			t.Errorf("another program writes: %v", err)
		}
		return nil
	})
}

func TestLives(t *testing.T) {
	t.Parallel()
	where := postgrestest.URL(t)
	one, two := mustOpen(t, where), mustOpen(t, where)
	if !one.Rebuilt() || one.Rebuilt() || two.Rebuilt() {
		t.Error("who has made the tables?")
	}
	read := func(r *index.Room) error {
		return r.View(t.Context(), true, func(tables room.Tables) error {
			return tables.QueryRowContext(t.Context(), `SELECT value FROM counters WHERE name = 'docs'`).Scan(new(int))
		})
	}
	if err := read(one); !errors.Is(err, room.ErrReplaced) {
		t.Errorf("tables that no one has filled: %v", err)
	}
	fill := func(r *index.Room) {
		mustUpdate(t, r, func(tx room.Tx) error {
			_, err := tx.ExecContext(t.Context(), `INSERT INTO swept (id, epoch, listing, time, sessions) VALUES (1, ?, ?, ?, ?)
				ON CONFLICT (id) DO UPDATE SET time = excluded.time`, "e", "l", 1, 2)
			return errors.Join(err, texts(t.Context(), tx, map[int64]string{1: "secret"}))
		})
	}
	fill(one)
	if err := errors.Join(read(one), read(two)); err != nil {
		t.Errorf("tables that were filled: %v", err)
	}
	// What one empties, the other does not take for the answer, nor writes to.
	err := two.View(t.Context(), true, func(tables room.Tables) error {
		if err := one.Discard(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := two.Update(t.Context(), tables, func(room.Tx) error { return nil }); !errors.Is(err, room.ErrReplaced) {
			t.Errorf("write to other tables: %v", err)
		}
		return nil
	})
	if !errors.Is(err, room.ErrReplaced) || !one.Rebuilt() || two.Rebuilt() {
		t.Errorf("the tables were emptied: %v", err)
	}
	want[int64](t, two, nil, find, room.Match{Query: `"secret"`})
	want[string](t, two, nil, `SELECT term FROM terms`)
	if err := read(two); !errors.Is(err, room.ErrReplaced) {
		t.Errorf("tables that no one has filled since: %v", err)
	}
	_ = two.View(t.Context(), false, func(tables room.Tables) error { two.Filled(tables); return nil })
	if err := read(two); err != nil {
		t.Errorf("tables that are known to be filled: %v", err)
	}
	fill(two)
	// Damage empties the tables, once.
	damaged := func(r *index.Room) error {
		return r.View(t.Context(), true, func(room.Tables) error { return fmt.Errorf("a row: %w", room.ErrDamaged) })
	}
	if err := errors.Join(one.Follow(t.Context()), damaged(two)); !errors.Is(err, room.ErrDamaged) || !two.Rebuilt() {
		t.Error(err)
	}
	fill(two)
	if err := damaged(one); !errors.Is(err, room.ErrDamaged) || one.Rebuilt() {
		t.Error(err)
	}
	want(t, one, []int64{1}, find, room.Match{Query: `"secret"`})
	if err := one.Empty(t.Context()); err != nil {
		t.Error(err)
	}
	want[int64](t, one, nil, find, room.Match{Query: `"secret"`})
	if size, engine, err := two.Status(t.Context()); err != nil || size < 0 || !strings.HasPrefix(engine, "PostgreSQL 1") {
		t.Errorf("%d bytes in %s, %v", size, engine, err)
	}
	if err := one.View(t.Context(), false, func(tables room.Tables) error { return one.Tidy(t.Context(), tables) }); err != nil {
		t.Error(err)
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	where := postgrestest.Empty(t)
	migrate := func(also ...postgres.Also) {
		t.Helper()
		if _, err := postgres.Migrate(t.Context(), where, also...); err != nil {
			t.Fatal(err)
		}
	}
	migrate()
	s, err := postgres.Open(t.Context(), where, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := index.Open(t.Context(), s); !errors.Is(err, index.ErrNotMigrated) {
		t.Errorf("open without tables: %v", err)
	}
	version := postgrestest.Param(t, where, "schema") + ".index_version"
	migrate(index.Migrate)
	r := mustOpen(t, where)
	if err := count(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	migrate(index.Migrate)
	want(t, r, []int64{1}, `SELECT value FROM counters WHERE name = 'docs'`)
	// Another program's tables are left alone.
	postgrestest.Exec(t, postgrestest.Owner(t), `UPDATE `+version+` SET version = version + 1`)
	if _, err := index.Open(t.Context(), s); !errors.Is(err, index.ErrNotMigrated) {
		t.Errorf("open tables of the future: %v", err)
	}
	if err := count(t.Context(), r); !errors.Is(err, index.ErrNotMigrated) {
		t.Errorf("write to tables of the future: %v", err)
	}
	migrate(index.Migrate)
	postgrestest.Exec(t, postgrestest.Owner(t), `UPDATE `+version+` SET version = 1`)
	if err := count(t.Context(), r); !errors.Is(err, index.ErrNotMigrated) {
		t.Errorf("write to tables of the past: %v", err)
	}
	migrate(index.Migrate)
	want(t, mustOpen(t, where), []int64{0}, `SELECT value FROM counters WHERE name = 'docs'`)
}

// attempts are the operations of a room that change something.
func attempts() map[string]func(ctx context.Context, r *index.Room) error {
	in := func(f func(ctx context.Context, tx room.Tx) error) func(ctx context.Context, r *index.Room) error {
		return func(ctx context.Context, r *index.Room) error {
			return update(ctx, r, func(tx room.Tx) error { return f(ctx, tx) })
		}
	}
	return map[string]func(ctx context.Context, r *index.Room) error{
		"update": in(func(ctx context.Context, tx room.Tx) error {
			_, err := tx.ExecContext(ctx, `UPDATE names SET name = 'x'`)
			return err
		}),
		"delete": in(func(ctx context.Context, tx room.Tx) error {
			_, err := tx.ExecContext(ctx, `DELETE FROM names`)
			return err
		}),
		"insert": in(func(ctx context.Context, tx room.Tx) error {
			return tx.InsertContext(ctx, "names", "id, name", "", []any{7, "new"})
		}),
		"replace": in(func(ctx context.Context, tx room.Tx) error {
			return tx.InsertContext(ctx, "names", "id, name", " ON CONFLICT (id) DO UPDATE SET name = excluded.name", []any{1, "newer"})
		}),
		"add":     in(func(ctx context.Context, tx room.Tx) error { return texts(ctx, tx, map[int64]string{50: "new"}) }),
		"drop":    in(func(ctx context.Context, tx room.Tx) error { return tx.DropTexts(ctx, []int64{1}) }),
		"empty":   func(ctx context.Context, r *index.Room) error { return r.Empty(ctx) },
		"discard": func(ctx context.Context, r *index.Room) error { return r.Discard(ctx) },
	}
}

// A tenant has an index of its own, and a role sees and changes only those of its tenants,
// whatever it tries.
func TestTenantsAndRoles(t *testing.T) {
	t.Parallel()
	where := postgrestest.Empty(t)
	if _, err := postgres.Migrate(t.Context(), where); err != nil {
		t.Fatal(err)
	}
	// Three are admitted before there are tables for an index, one later.
	writes, reads, belongsNextDoor := postgrestest.Role(t, where, "one", true), postgrestest.Role(t, where, "one", false), postgrestest.Role(t, where, "two", true)
	if _, err := postgres.Migrate(t.Context(), where, index.Migrate); err != nil {
		t.Fatal(err)
	}
	cameLate := postgrestest.Role(t, where, "one", true)
	as := func(role, tenant string) *index.Room {
		return mustOpen(t, postgrestest.With(t, where, "user", role, "tenant", tenant))
	}
	early := as(reads, "one") // nothing is there yet
	if err := early.View(t.Context(), true, func(room.Tables) error { return nil }); !errors.Is(err, room.ErrReplaced) {
		t.Errorf("a reader reads an index that no one has filled: %v", err)
	}
	writer, other := as(writes, "one"), as(belongsNextDoor, "two")
	fill := func(r *index.Room, word string) {
		mustUpdate(t, r, func(tx room.Tx) error {
			return errors.Join(texts(t.Context(), tx, map[int64]string{1: "both " + word, 2: word}),
				tx.InsertContext(t.Context(), "names", "id, name", "", []any{1, word}))
		})
	}
	fill(writer, "mine")
	fill(other, "theirs")
	whole := func() {
		t.Helper()
		for _, r := range []*index.Room{writer, as(reads, "one"), as(cameLate, "one"), mustOpen(t, postgrestest.With(t, where, "tenant", "one"))} {
			want(t, r, []int64{1}, find, room.Match{Query: `"both"`})
			want(t, r, []int64{2, 1}, find, room.Match{Query: `"mine"`, Newest: 5})
			want[int64](t, r, nil, find, room.Match{Query: `"theirs"`})
			want(t, r, []string{"mine"}, `SELECT name FROM names`)
			want(t, r, []string{"both", "mine"}, `SELECT term FROM terms ORDER BY term`)
			want(t, r, []int64{0}, `SELECT value FROM counters WHERE name = 'docs'`)
		}
		want(t, other, []int64{2, 1}, find, room.Match{Query: `"both" OR "theirs"`})
		want(t, other, []string{"theirs"}, `SELECT name FROM names`)
	}
	whole()
	// Neither who may only read nor who belongs to another tenant changes anything.
	reader := as(reads, "one")
	s, err := postgres.Open(t.Context(), postgrestest.With(t, where, "user", belongsNextDoor, "tenant", "one"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	crossing, err := index.Open(t.Context(), s)
	if err != nil {
		t.Fatalf("open another tenant's index: %v", err)
	}
	for what, try := range attempts() {
		if err := try(t.Context(), reader); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("a reader may %s: %v", what, err)
		}
		if err := try(t.Context(), crossing); err == nil {
			t.Errorf("a neighbour may %s", what)
		}
	}
	whole()
	want[string](t, crossing, nil, `SELECT name FROM names`)
	want[string](t, crossing, nil, `SELECT value FROM counters`)
	if err := crossing.View(t.Context(), false, func(tables room.Tables) error {
		_, err := column[int64](t.Context(), tables, find, room.Match{Query: `"both"`})
		return err
	}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a neighbour searches: %v", err)
	}
	// Nothing that is done for one tenant changes another, even by a role that sees both.
	for what, try := range attempts() {
		if err := try(t.Context(), mustOpen(t, postgrestest.With(t, where, "tenant", "two"))); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, r := range []*index.Room{writer, reader} {
		want(t, r, []int64{2, 1}, find, room.Match{Query: `"mine"`})
		want(t, r, []string{"mine"}, `SELECT name FROM names`)
	}
	usesWords(t, postgrestest.With(t, postgrestest.Owner(t), "user", reads), postgrestest.Param(t, where, "schema"))
}

// usesWords checks that roles that do not own the tables use the index of words, too.
func usesWords(t *testing.T, where, schema string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	var found, used int64
	err = errors.Join(
		tx.QueryRow(t.Context(), `SELECT count(*) FROM `+schema+`.index_found('one', 'mine', 0, 1000, NULL)`).Scan(&found),
		tx.QueryRow(t.Context(), `SELECT pg_stat_get_xact_numscans('`+schema+`.index_words'::regclass)`).Scan(&used))
	if err != nil || found != 2 || used != 1 {
		t.Errorf("found %d texts, with %d scans of the index, %v", found, used, err)
	}
}

// A list counts the subagents of each session. If that read all sessions each time, a list of
// thousands would take minutes.
func TestSubagentsAreCountedWithAnIndex(t *testing.T) {
	t.Parallel()
	// Tables of its own, whose statistics no other test changes: they decide what is planned.
	where := postgrestest.Empty(t)
	if _, err := postgres.Migrate(t.Context(), where, index.Migrate); err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, where)
	for _, count := range []string{
		`SELECT count(*) FROM sessions f WHERE f.parent = s.sid AND f.folded = 1 AND f.part <> 1`,
		`SELECT count(*) FROM sessions l CROSS JOIN sessions f ON f.parent = l.sid AND f.folded = 1 AND f.part <> 1 WHERE l.chain = s.id AND l.chain <> 0`,
	} {
		err := r.View(t.Context(), false, func(tables room.Tables) error {
			plan, err := column[string](t.Context(), tables, `EXPLAIN SELECT (`+count+`) FROM sessions s`)
			if all := strings.Join(plan, "\n"); !strings.Contains(all, "index_folds") {
				t.Errorf("%s\n%s", count, all)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// Behind PgBouncer in transaction mode, each transaction has another connection.
func TestBehindPgBouncer(t *testing.T) {
	t.Parallel()
	host := postgrestest.Bouncer(t)
	r := mustOpen(t, postgrestest.With(t, postgrestest.URL(t), "host", host, "default_query_exec_mode", "exec", "user", "coppice", "sslmode", "disable"))
	for range 3 {
		if err := count(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	mustUpdate(t, r, func(tx room.Tx) error {
		err := tx.InsertContext(t.Context(), "entries", "session, n, id, parent, pos, time, class, context", "", []any{1, 0, []byte("~a"), -1, 0, 5, 0, nil})
		return errors.Join(err, texts(t.Context(), tx, map[int64]string{1: "a b", 2: "b a"}))
	})
	want(t, r, []int64{1}, find, room.Match{Query: `body : "a b"`, Newest: 3})
	want(t, r, []int64{3}, `SELECT value FROM counters WHERE name = ? AND 8 >> CAST(?2 AS int) = ?3`, "docs", 1, 4)
	want(t, r, []string{"a"}, `SELECT term FROM terms WHERE lower(term) = lower(?)`, "A")
	want(t, r, []int64{5}, `SELECT time FROM entries WHERE id = ? AND context IS NULL`, []byte("~a"))
	mustUpdate(t, r, func(tx room.Tx) error { return tx.DropTexts(t.Context(), []int64{1}) })
	want(t, r, []int64{2}, find, room.Match{Query: `"a"`})
	if err := r.Discard(t.Context()); err != nil {
		t.Error(err)
	}
}

// No row is an error of database/sql, and a store that is closed is closed.
func TestErrors(t *testing.T) {
	t.Parallel()
	s, err := postgres.Open(t.Context(), postgrestest.URL(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := index.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	read := func(ctx context.Context) error {
		return r.View(ctx, false, func(tables room.Tables) error {
			return tables.QueryRowContext(ctx, `SELECT value FROM counters WHERE name = 'none'`).Scan(new(int))
		})
	}
	if err := read(t.Context()); !errors.Is(err, sql.ErrNoRows) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := read(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s.Close()
	if err := errors.Join(read(t.Context())); !errors.Is(err, store.ErrClosed) {
		t.Error(err)
	}
}
