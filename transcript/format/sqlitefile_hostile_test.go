package format_test

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/internal/sqlitefile"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// readHostile reads a table as an import does, and returns the rows and the error.
// It fails the test if that takes memory out of proportion.
func readHostile(t *testing.T, path, table string, order ...string) (n int, first string, err error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	defer func() {
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
			t.Errorf("reading it allocated %d MiB", used>>20)
		}
	}()
	db, err := sqlitefile.Open(t.Context(), transcripttest.Open(t, path))
	if err != nil {
		return 0, "", err
	}
	defer db.Close()
	for row, err := range db.Rows(t.Context(), table, "", "", order...) {
		if err != nil {
			return n, first, err
		}
		if n++; n == 1 {
			first = string(row)
		}
	}
	return n, first, nil
}

// What a database computes is not read: it can be out of all proportion.
func TestSQLiteFileOnlyWhatIsStoredIsRead(t *testing.T) {
	endless := `WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT i AS id FROM c`
	for name, test := range map[string]struct {
		statements []string
		rows       int
		first      string
	}{
		"virtual column": {[]string{
			`CREATE TABLE notes(id TEXT, big BLOB GENERATED ALWAYS AS (zeroblob(900000000)) VIRTUAL)`, `INSERT INTO notes(id) VALUES('a')`,
		}, 1, `{"id":"a"}`},
		"text column": {[]string{
			`CREATE TABLE notes(id TEXT)`, `INSERT INTO notes(id) VALUES('a')`, `ALTER TABLE notes ADD COLUMN big TEXT AS (hex(zeroblob(400000000)))`,
		}, 1, `{"id":"a"}`},
		"slow column": {[]string{
			`CREATE TABLE notes(id TEXT, big AS (printf('%.*c', 45000, 'a') LIKE '%a%a%a%a%a%a%a%a%a%a%b'))`, `INSERT INTO notes(id) VALUES('a')`,
		}, 1, `{"id":"a"}`},
		"endless view": {[]string{`CREATE VIEW notes AS ` + endless}, 0, ""},
		"large view":   {[]string{`CREATE VIEW notes AS SELECT zeroblob(900000000) AS id`}, 0, ""},
		"virtual table": {[]string{
			`CREATE VIRTUAL TABLE notes USING fts5(id)`, `INSERT INTO notes VALUES('a')`,
		}, 0, ""},
		"trigger": {[]string{
			`CREATE TABLE notes(id TEXT)`, `INSERT INTO notes VALUES('a')`,
			`CREATE TRIGGER t AFTER INSERT ON notes BEGIN INSERT INTO notes ` + endless + `; END`,
		}, 1, `{"id":"a"}`},
		"computed index": {[]string{
			`CREATE TABLE notes(id TEXT)`, `INSERT INTO notes VALUES('a')`,
			`CREATE INDEX i ON notes(hex(zeroblob(1000)), id)`,
		}, 1, `{"id":"a"}`},
	} {
		t.Run(name, func(t *testing.T) {
			path := makeDB(t, test.statements...)
			n, first, err := readHostile(t, path, "notes", "id", "big")
			if err != nil || n != test.rows || first != test.first {
				t.Errorf("%d rows, %s, %v", n, first, err)
			}
			if got := sqlitefile.Has(transcripttest.Open(t, path), "notes"); got != (test.rows > 0) {
				t.Errorf("Has says %v", got)
			}
		})
	}
}

// A table whose branches all lead to one page has rows without end, nearly. It is
// refused by what the file can hold.
func TestSQLiteFileTableWithoutEnd(t *testing.T) {
	path := makeDB(t, `PRAGMA page_size = 512`, `CREATE TABLE notes(id TEXT)`,
		`WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 20000) INSERT INTO notes SELECT i FROM c`)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	var root int
	if err := db.QueryRow(`SELECT rootpage FROM sqlite_schema WHERE name = 'notes'`).Scan(&root); err != nil {
		t.Fatal(err)
	}
	db.Close()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := func(n int) []byte { return data[(n-1)*512 : n*512] }
	cells := func(p []byte) int { return int(binary.BigEndian.Uint16(p[3:])) }
	cell := func(p []byte, i int) []byte { return p[binary.BigEndian.Uint16(p[12+2*i:]):] }
	lead := func(p []byte, to int) { // all branches of an interior page
		for i := range cells(p) {
			binary.BigEndian.PutUint32(cell(p, i), uint32(to))
		}
		binary.BigEndian.PutUint32(p[8:], uint32(to))
	}
	middle := int(binary.BigEndian.Uint32(cell(page(root), 0)))
	if page(root)[0] != 5 || page(middle)[0] != 5 {
		t.Fatal("the table has too few levels")
	}
	lead(page(middle), int(binary.BigEndian.Uint32(cell(page(middle), 0))))
	copy(page(root), page(middle))
	lead(page(root), middle)
	hostile := path + "2"
	if err := os.WriteFile(hostile, data, 0o600); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for _, order := range [][]string{nil, {"id"}} {
		if n, _, err := readHostile(t, hostile, "notes", order...); !errors.Is(err, session.ErrTooLarge) || n > 0 {
			t.Errorf("order %v: %d rows, %v", order, n, err)
		}
	}
	t.Logf("%d bytes took %v", len(data), time.Since(start))
}

// A thousand conversations of one name do not read the same rows a thousand times.
func TestSQLiteFileSameRowsAgainAndAgain(t *testing.T) {
	t.Parallel()
	path := makeDB(t, `CREATE TABLE notes(id TEXT)`,
		`WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 2000) INSERT INTO notes SELECT 'a' FROM c`)
	db, err := sqlitefile.Open(t.Context(), transcripttest.Open(t, path))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	total := 0
	for pass := range 2000 {
		for _, err := range db.Rows(t.Context(), "notes", "id", "a") {
			if errors.Is(err, session.ErrTooLarge) {
				if pass < 10 {
					t.Errorf("refused at pass %d", pass)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			total++
		}
	}
	t.Errorf("%d rows were read", total)
}

// A file that is honestly large for what it holds is read: the limits are by what
// it could hold.
func TestSQLiteFileHonestDatabase(t *testing.T) {
	t.Parallel()
	path := makeDB(t, `CREATE TABLE notes(id TEXT, big TEXT, blob BLOB)`,
		`WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 50) INSERT INTO notes SELECT i, hex(randomblob(20000)), randomblob(20000) FROM c`,
		`CREATE TABLE tiny(i INTEGER PRIMARY KEY)`,
		`WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 10000) INSERT INTO tiny SELECT i FROM c`)
	for table, want := range map[string]int{"notes": 50, "tiny": 10000} {
		db, err := sqlitefile.Open(t.Context(), transcripttest.Open(t, path))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, err := range db.Rows(t.Context(), table, "", "", "id") {
			if err != nil {
				t.Fatal(fmt.Errorf("%s: %w", table, err))
			}
			n++
		}
		if n != want {
			t.Errorf("%s: %d rows", table, n)
		}
		db.Close()
	}
}
