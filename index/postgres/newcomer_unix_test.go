//go:build unix

package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/index"
	indexpostgres "github.com/coppice-dev/coppice/index/postgres"
	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/store/postgres"
)

// A tenant comes to tables of which the server knows only what others have there. What it indexes
// costs what it has, although the server expects nothing of it: rows are read in proportion.
func TestNewTenantBesideALargeOne(t *testing.T) {
	t.Parallel()
	where := postgrestest.Empty(t)
	if _, err := postgres.Migrate(t.Context(), where, indexpostgres.Migrate); err != nil {
		t.Fatal(err)
	}
	schema := postgrestest.Param(t, where, "schema")
	for _, statement := range []string{
		`INSERT INTO %s.index_docs SELECT 'large', n, n, n, 0, 0, 1, 0, 0, 0, 9, '' FROM generate_series(1, 30000) n`,
		`INSERT INTO %s.index_names SELECT 'large', n, 'name ' || n FROM generate_series(1, 30000) n`,
		`ANALYZE %s.index_docs`, `ANALYZE %[1]s.index_names`,
	} {
		postgrestest.Exec(t, postgrestest.Owner(t), fmt.Sprintf(statement, schema))
	}
	conn, err := pgx.Connect(t.Context(), postgrestest.Owner(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	read := func() (n int) {
		t.Helper()
		for last := -1; n != last; time.Sleep(time.Second) { // the server counts a moment later
			last = n
			err := conn.QueryRow(t.Context(), `SELECT ((SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE schemaname = $1 AND relname IN ('index_docs', 'index_names'))
				+ (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = $1 AND relname IN ('index_docs', 'index_names')))::int`, schema).Scan(&n)
			if err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	const texts, forks = 60, 64
	st := memory.New(nil)
	s, err := session.Create(t.Context(), st, session.Header{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range texts {
		e := session.Message(session.RoleUser, session.Text(fmt.Sprint("text ", i)))
		e.Timestamp = time.Date(2026, 3, 14, 12, 0, i/20, 0, time.UTC)
		e.ID = fmt.Sprint("e", i)
		if leaf := s.LeafID(); leaf != "" {
			e.ParentID = &leaf
		}
		if err := s.Graft(e); err != nil {
			t.Fatal(err)
		}
	}
	before := read()
	for range 4 { // each time the texts that are there share their times with those that come
		for range forks / 4 {
			forked, err := s.Fork(t.Context(), st, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer forked.Close()
		}
		db, err := postgres.Open(t.Context(), postgrestest.With(t, where, "tenant", "new"), nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := indexpostgres.Open(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		ix := index.New(st, r, nil)
		if _, err := ix.CatchUp(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		ix.Close()
		db.Close()
	}
	if n := read() - before; n > 8*texts*forks {
		t.Errorf("to index %d texts, %d rows are read", texts*forks, n)
	} else {
		t.Log(n, "rows were read")
	}
}
