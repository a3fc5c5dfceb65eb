package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// Verify looks for damage in the index at a path without changing anything, and returns an
// error that matches store.ErrCorrupt if there is any. An index that is missing or of another
// version is fine: it will be rebuilt.
func Verify(ctx context.Context, path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, suffix := range fileSuffixes {
		if err := vfs.CheckRegular(path + suffix); err != nil {
			return &store.Error{Op: "verify index", Path: path, Err: err}
		}
	}
	err := verify(ctx, path)
	switch {
	case isDamage(err):
		return &store.Error{Op: "verify index", Path: path, Kind: store.ErrCorrupt, Err: err}
	case err != nil && !isInterrupted(err):
		return &store.Error{Op: "verify index", Path: path, Err: err}
	}
	return nil
}

// errFaults means that SQLite's own check found faults in the file.
var errFaults = errors.New("the file has faults")

func verify(ctx context.Context, path string) error {
	var version int
	err := readOnly(path, "", func(db *sql.DB) error {
		return db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version)
	})
	if err != nil || version != schemaVersion { // other versions may have no checksums
		return err
	}
	if err := registerChecked(); err != nil {
		return err
	}
	return readOnly(path, "&vfs="+checkedVFS, func(db *sql.DB) error {
		var result string
		if err := db.QueryRowContext(ctx, `PRAGMA integrity_check`).Scan(&result); err != nil {
			return err
		}
		if result != "ok" {
			return fmt.Errorf("%w: %s", errFaults, result)
		}
		return verifySegments(ctx, db)
	})
}

// readOnly calls f with a database that it cannot change.
func readOnly(path, options string, f func(db *sql.DB) error) error {
	uri := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: "mode=ro&_pragma=busy_timeout(5000)" + options}
	db, err := sql.Open("sqlite", uri.String())
	if err != nil {
		return err
	}
	defer db.Close()
	return f(db)
}

// verifySegments looks for pages of segments that are not in the list of segments. SQLite
// does not mind them, but the next segment may get their number.
func verifySegments(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil) // others may be writing: all must be of one moment
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var data []byte
	if err := tx.QueryRowContext(ctx, `SELECT block FROM fts_data WHERE id = ?`, structureRow).Scan(&data); err != nil {
		return err
	}
	s, err := decodeStructure(data)
	if err != nil {
		return err
	}
	// A segment's deletions are on pages with its number plus 1 << 16.
	rows, err := tx.QueryContext(ctx, `SELECT segid FROM fts_idx UNION SELECT (id >> ?) & 0xffff FROM fts_data WHERE id > ?`, segmentShift, structureRow)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var n uint64
		if err := rows.Scan(&n); err != nil {
			return err
		}
		if !s.has(n) {
			return fmt.Errorf("%w: there are pages of segment %d, which it does not list", errStructure, n)
		}
	}
	return rows.Err()
}

// isInterrupted reports whether a crash interrupted a change and left the journal to undo it.
// The next write undoes it; until then the file alone proves nothing.
func isInterrupted(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_READONLY
}
