//go:build unix

package postgres_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/coppice-dev/coppice/index"
	room "github.com/coppice-dev/coppice/index/postgres"
	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
)

// Who may only read, as on a standby, uses the index that others have filled, and learns when it
// lacks something.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	where := postgrestest.URL(t)
	open := func(where string) (*postgres.Store, *index.Index) {
		t.Helper()
		s, err := postgres.Open(t.Context(), where, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		r, err := room.Open(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		ix := index.New(s, r, nil)
		t.Cleanup(func() { ix.Close() })
		return s, ix
	}
	create := func(s store.Store, name string) {
		t.Helper()
		made, err := session.Create(t.Context(), s, session.Header{ID: name}, nil)
		if err == nil {
			_, err = made.AppendMessage(session.RoleUser, []session.Content{session.Text("zebra")})
		}
		if err = errors.Join(err, made.Close()); err != nil {
			t.Fatal(err)
		}
	}
	writing, full := open(where)
	_, read := open(postgrestest.With(t, where, "default_transaction_read_only", "on"))
	create(writing, "first")
	if _, err := read.CatchUp(t.Context(), nil); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("before anybody has filled the index: %v", err)
	}
	if _, err := full.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := read.CatchUp(t.Context(), nil); err != nil {
		t.Errorf("when the index has all: %v", err)
	}
	if found, err := read.Search(t.Context(), index.SearchOptions{Query: "zebra"}); err != nil || len(found.Hits) != 1 {
		t.Errorf("found %+v, %v", found, err)
	}
	create(writing, "second")
	if _, err := read.CatchUp(t.Context(), nil); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("when the index lacks a session: %v", err)
	}
}
