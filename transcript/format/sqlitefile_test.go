package format_test

import (
	"database/sql"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/sqlitefile"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// makeDB returns a database that was made by some statements. It stays open for
// writing until the test ends, as that of a running program does.
func makeDB(t testing.TB, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a b.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return path
}

const sqlitefileSchema = `CREATE TABLE notes(id TEXT, n INTEGER, x REAL, b BLOB, at TIMESTAMP, rest TEXT)`

func rows(t *testing.T, path, where, value string, order ...string) []string {
	t.Helper()
	db, err := sqlitefile.Open(t.Context(), transcripttest.Open(t, path))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var list []string
	for row, err := range db.Rows(t.Context(), "notes", where, value, order...) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(row))
	}
	return list
}

func TestSQLiteFileRows(t *testing.T) {
	t.Parallel()
	path := makeDB(t, `PRAGMA journal_mode=WAL`, sqlitefileSchema,
		`INSERT INTO notes VALUES('b "q"', 2, 0.5, x'0102', '2026-01-02 03:04:05', NULL)`,
		`INSERT INTO notes VALUES('a', 1, 2, NULL, NULL, '{"k":1}')`)
	want := []string{
		`{"id":"a","n":1,"x":2,"b":null,"at":null,"rest":"{\"k\":1}"}`,
		`{"id":"b \"q\"","n":2,"x":0.5,"b":"AQI=","at":"2026-01-02T03:04:05Z","rest":null}`,
	}
	got := rows(t, path, "", "", "missing", "n")
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("rows are %q, want %q", got, want)
	}
	if got := rows(t, path, "id", "a"); len(got) != 1 {
		t.Errorf("one id has the rows %q", got)
	}
	if got := rows(t, path, "missing", "a"); len(got) != 0 {
		t.Errorf("a column that is not there has the rows %q", got)
	}
}

func TestSQLiteFileHas(t *testing.T) {
	t.Parallel()
	f := transcripttest.Open(t, makeDB(t, sqlitefileSchema))
	if !sqlitefile.Has(f, "notes", "notes.n") || sqlitefile.Has(f, "notes.z") || sqlitefile.Has(f, "other") {
		t.Error("tables and columns are told wrong")
	}
	if sqlitefile.Has(transcript.FileOf("/x/notes.db", []byte("SQLite format 3\x00 and nothing else")), "notes") {
		t.Error("a file that does not exist is a database")
	}
}

// TestSQLiteFileNothingIsWritten: reading leaves the database and all that lies beside it as it was,
// whether a program has it open, closed it, or was killed.
func TestSQLiteFileNothingIsWritten(t *testing.T) {
	t.Parallel()
	insert := `INSERT INTO notes(id) VALUES('a')`
	for name, open := range map[string]string{
		"journal":       makeDB(t, sqlitefileSchema, insert),
		"WAL":           makeDB(t, `PRAGMA journal_mode=WAL`, sqlitefileSchema, insert),
		"truncated WAL": makeDB(t, `PRAGMA journal_mode=WAL`, sqlitefileSchema, insert, `PRAGMA wal_checkpoint(TRUNCATE)`),
	} {
		for left, suffixes := range map[string][]string{
			"open": nil, "copied with all": {"", "-wal", "-shm"}, "copied without shared memory": {"", "-wal"},
		} {
			path := open
			if suffixes != nil {
				path = filepath.Join(t.TempDir(), "copy.db")
			}
			for _, suffix := range suffixes {
				data, err := os.ReadFile(open + suffix)
				if err == nil {
					err = os.WriteFile(path+suffix, data, 0o600)
				}
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			}
			before := contents(t, filepath.Dir(path))
			delete(before, filepath.Base(open)+"-shm") // the writer is in this process, and we use its memory
			if got := rows(t, path, "", ""); len(got) != 1 {
				t.Errorf("%s, %s: rows are %q", name, left, got)
			}
			after := contents(t, filepath.Dir(path))
			delete(after, filepath.Base(open)+"-shm")
			if !maps.Equal(before, after) {
				t.Errorf("%s, %s: the directory has changed: it has %q, had %q", name, left, slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
			}
		}
	}
	path := transcripttest.Database(t, "closed.db", `PRAGMA journal_mode=WAL`, sqlitefileSchema, insert)
	before := contents(t, filepath.Dir(path))
	if got := rows(t, path, "", ""); len(got) != 1 {
		t.Errorf("closed: rows are %q", got)
	}
	if after := contents(t, filepath.Dir(path)); !maps.Equal(before, after) {
		t.Errorf("closed: the directory has %q, had %q", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
	}
}

// contents returns the files of a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, e := range list {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(data)
	}
	return files
}

func TestSQLiteFileDamage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(path, []byte("SQLite format 3\x00garbage that is no database at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlitefile.Open(t.Context(), transcripttest.Open(t, path)); !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("garbage gives %v, want ErrCorrupt", err)
	}
	if _, err := sqlitefile.Open(t.Context(), transcript.FileOf("-", nil)); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("standard input gives %v, want ErrInvalid", err)
	}
	if sqlitefile.JSON([]byte(`"{"`)) != nil || string(sqlitefile.JSON([]byte(`"[1]"`))) != "[1]" {
		t.Error("JSON in a column is read wrong")
	}
}

// TestSQLiteFileReadsACopy: a database that cannot be read in place, here because its
// shared memory cannot be had, is read from a copy, of which nothing stays.
func TestSQLiteFileReadsACopy(t *testing.T) {
	scratch := t.TempDir()
	t.Setenv("TMPDIR", scratch)
	t.Setenv("TMP", scratch)
	path := filepath.Join(t.TempDir(), "wal.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{`PRAGMA journal_mode=WAL`, sqlitefileSchema, `INSERT INTO notes(id) VALUES('a')`} {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(db.Close(), os.Mkdir(path+"-shm", 0o700)); err != nil {
		t.Fatal(err)
	}
	if got := rows(t, path, "", ""); len(got) != 1 {
		t.Errorf("rows are %q", got)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) != 0 {
		t.Errorf("the copy stays: %v (%v)", left, err)
	}
}

// TestSQLiteFileDamagedTable: a table that is broken is an error, and not an empty table.
func TestSQLiteFileDamagedTable(t *testing.T) {
	t.Parallel()
	path := transcripttest.Database(t, "x.db", sqlitefileSchema, `INSERT INTO notes(id, rest) VALUES('a', hex(zeroblob(20000)))`)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i < len(data); i++ {
		data[i] = 0xff
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sqlitefile.Open(t.Context(), transcripttest.Open(t, path))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var failed error
	for _, err := range db.Rows(t.Context(), "notes", "", "") {
		failed = err
	}
	if !errors.Is(failed, session.ErrCorrupt) {
		t.Errorf("a broken table gives %v, want ErrCorrupt", failed)
	}
}
