package format_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/sqlitefile"
)

// Whatever a database holds, reading it ends, and gives no more than its size
// allows.
func FuzzSQLiteFileDatabase(f *testing.F) {
	for _, statements := range [][]string{
		{`PRAGMA page_size = 512`, sqlitefileSchema, `INSERT INTO notes VALUES('a', 1, 2.5, x'00ff', '2026-01-02', 'text')`, `CREATE INDEX i ON notes(id)`},
		{
			`PRAGMA page_size = 512`, `PRAGMA encoding = 'UTF-16'`, `CREATE TABLE notes(id TEXT)`,
			`WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 300) INSERT INTO notes SELECT i FROM c`,
		},
		{`PRAGMA page_size = 512`, `CREATE TABLE notes(id TEXT, b BLOB)`, `INSERT INTO notes VALUES('a', zeroblob(3000))`},
	} {
		data, err := os.ReadFile(makeDB(f, statements...))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, 0, byte(0))
		f.Add(data, 105, byte(7))
	}
	path := filepath.Join(f.TempDir(), "fuzz.db")
	f.Fuzz(func(t *testing.T, data []byte, at int, flip byte) {
		if len(data) > 0 && at >= 0 {
			data[at%len(data)] ^= flip
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := transcript.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		storetest.Bounded(t, 128<<20+int64(len(data))*500, func() {
			db, err := sqlitefile.Open(t.Context(), file)
			if err != nil {
				return
			}
			defer db.Close()
			for _, order := range [][]string{nil, {"id"}} {
				size := 0
				for row, err := range db.Rows(t.Context(), "notes", "", "", order...) {
					if err != nil {
						break
					}
					size += len(row)
				}
				if limit := 16<<20 + 200*len(data); size > limit {
					t.Errorf("%d bytes came out of %d", size, len(data))
				}
			}
		})
	})
}
