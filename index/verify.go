package index

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

// Verify looks for damage in the index at a path without changing anything, and
// returns an error that matches store.ErrCorrupt if there is any. An index that
// does not exist is in order: it will be made. So is one of another version.
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

// errFaults: SQLite finds something wrong with the file.
var errFaults = errors.New("the file has faults")

func verify(ctx context.Context, path string) error {
	var version int
	err := readOnly(path, "", func(db *sql.DB) error {
		return db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version)
	})
	if err != nil || version != schemaVersion { // those of other versions may have no checksums
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

// verifySegments looks for pages of segments that the list of segments does not have.
// SQLite finds nothing wrong with them, but the next segment may get their number.
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
	// What was deleted from a segment is noted on pages that have 1 << 16 more than its number.
	rows, err := tx.QueryContext(ctx, `SELECT segid FROM fts_idx UNION SELECT (id >> ?) & 0xffff FROM fts_data WHERE id > ?`, segmentShift, structureRow)
	if err != nil {
		return err
	}
	numbers, err := scanColumn[int64](rows)
	for _, n := range numbers {
		if !s.has(uint64(n)) {
			return fmt.Errorf("%w: there are pages of the segment %d, which is not in it", errStructure, n)
		}
	}
	return err
}

// isInterrupted reports whether a crash left a change half made, with the journal that
// undoes it. The next write undoes it; until then the file alone says nothing.
func isInterrupted(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_READONLY
}
