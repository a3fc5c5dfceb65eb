//go:build unix

package upkeep_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
	"github.com/coppice-dev/coppice/upkeep"
)

// What a writer has left in a database is deleted when nobody can be writing it any more.
func TestRemoveUnfinishedInDatabase(t *testing.T) {
	where := postgrestest.URL(t)
	st, err := postgres.Open(t.Context(), where, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	want := func(dryRun bool, n int) {
		t.Helper()
		done, err := upkeep.RemoveStale(t.Context(), st, dryRun)
		if err != nil || len(done) != n {
			t.Errorf("removed %+v, %v; want %d", done, err, n)
		}
	}
	line := append(bytes.Repeat([]byte("x"), 5<<20), '}')
	log, err := st.Create(t.Context(), "a", func(yield func([]byte, error) bool) {
		if yield(line, nil) {
			want(false, 0) // its writer is this test
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	b := st.Batch() // which is never finished
	if err := b.Add(t.Context(), "b", store.Lines(line)); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), postgrestest.Owner(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `UPDATE shared.drafts SET touched = now() - interval '1 day'`); err != nil {
		t.Fatal(err)
	}
	want(true, 1)
	want(false, 1)
	want(false, 0)
	b.Discard()
}
