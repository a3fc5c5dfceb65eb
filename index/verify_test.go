package index_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	f := newFileFixture(t)
	s := f.create(session.Header{ID: "s"})
	for range 200 {
		f.append(s, session.RoleUser, session.Text("some words to fill a few pages of the index with"))
	}
	ix := f.open(t)
	path := ix.Path()
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	if err := index.Verify(context.Background(), filepath.Join(t.TempDir(), "none.db")); err != nil {
		t.Errorf("an index that does not exist: %v", err)
	}
	if err := index.Verify(context.Background(), path); err != nil {
		t.Errorf("a good index: %v", err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, bad := range map[string][]byte{
		"not a database": []byte("this is not a database, however long one looks at it ........................................................."),
		"a lost page":    append(append(bytes.Clone(good[:8192]), make([]byte, 4096)...), good[12288:]...),
	} {
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := index.Verify(context.Background(), path); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, bad) {
			t.Errorf("%s: the file was changed, %v", what, err)
		}
	}
}

// TestVerifyAfterACrash looks at an index that a crash left with a journal that is
// still to be rolled back.
func TestVerifyAfterACrash(t *testing.T) {
	t.Parallel()
	from, to := filepath.Join(t.TempDir(), "index.db"), filepath.Join(t.TempDir(), "index.db")
	db, err := sql.Open("sqlite", from)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, do := range []string{
		"CREATE TABLE t (x)",
		"INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 200) SELECT randomblob(1000) FROM n",
		"PRAGMA cache_size = 5", // so that pages are written before the commit
		"BEGIN IMMEDIATE",
		"UPDATE t SET x = randomblob(1000)",
	} {
		if _, err := db.Exec(do); err != nil {
			t.Fatalf("%s: %v", do, err)
		}
	}
	for _, suffix := range []string{"", "-journal"} {
		data, err := os.ReadFile(from + suffix)
		if err == nil {
			err = os.WriteFile(to+suffix, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := index.Verify(t.Context(), to); err != nil {
		t.Errorf("an interrupted change is no fault: %v", err)
	}
}

// Rows of a segment that does not exist are damage: to those who look for it, and to
// the next segment that gets its number.
func TestPagesOfNoSegmentAreDamage(t *testing.T) {
	t.Parallel()
	for what, query := range map[string]string{
		"what leads to pages": `INSERT INTO fts_idx (segid, term, pgno) VALUES (2, x'', 2)`,
		"a page":              `INSERT INTO fts_data (id, block) VALUES (2 << 37 | 1, x'00000004')`,
	} {
		t.Run(what, func(t *testing.T) {
			f := newFileFixture(t)
			s := f.say("before")
			ix := f.open(t)
			if err := index.Verify(t.Context(), ix.Path()); err != nil {
				t.Fatal(err)
			}
			db, err := sql.Open("sqlite", ix.Path())
			if err == nil {
				_, err = db.Exec(query)
			}
			if err = errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
			if err := index.Verify(t.Context(), ix.Path()); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("Verify: %v", err)
			}
			f.append(s, session.RoleUser, session.Text("after"))
			mustCatchUp(t, ix)
			if hits := search(t, ix, index.SearchOptions{Query: "before OR after"}); len(hits) != 2 {
				t.Errorf("%d hits", len(hits))
			}
			if what, err := ix.Integrity(); what != "ok" || err != nil {
				t.Errorf("%s, %v", what, err)
			}
			if err := index.Verify(t.Context(), ix.Path()); err != nil {
				t.Errorf("after it: %v", err)
			}
		})
	}
}
