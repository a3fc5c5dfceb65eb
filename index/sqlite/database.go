package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
)

// identity says which files a database consists of. The last two are nil if no process
// had it open.
type identity [3]fs.FileInfo

// identify returns the files that have the database's names now.
func identify(path string) (id identity, err error) {
	for i := range id {
		if id[i], err = os.Lstat(path + fileSuffixes[i]); err != nil {
			return id, fmt.Errorf("%w: %w", errReplaced, err)
		}
	}
	return id, nil
}

// identifyAlone returns the database, if no other file is beside it.
func identifyAlone(path string) (id identity, err error) {
	if id[0], err = os.Lstat(path); err != nil {
		return id, err
	}
	if !id.holds(path) {
		return id, errReplaced
	}
	return id, nil
}

// alone reports whether the database is the only file.
func (id *identity) alone() bool { return id[1] == nil }

// holds reports whether the files still have their names, and a database that is alone is
// as it was.
func (id *identity) holds(path string) bool {
	for i, was := range id {
		now, err := os.Lstat(path + fileSuffixes[i])
		switch {
		case was == nil && errors.Is(err, fs.ErrNotExist):
		case was == nil || err != nil || !os.SameFile(was, now):
			return false
		case i == 0 && id.alone() && (now.Size() != was.Size() || !now.ModTime().Equal(was.ModTime())):
			return false
		}
	}
	return true
}

// maxStatements is how many statements are kept ready.
const maxStatements = 128

// database is a database that keeps its queries prepared: SQLite takes longer to
// understand most of ours than to answer them.
type database struct {
	*sql.DB
	connector *connector
	id        identity // which files it is: see files.go
	closed    atomic.Bool
	// behind means that it replaced another database and no CatchUp has filled it since. It
	// may have only part of what the other one had, so it is not read.
	behind atomic.Bool

	mu    sync.Mutex // guards stmts
	stmts map[string]*sql.Stmt
}

// maxIdle is how many connections are kept. The last must never be closed: the files keep
// their numbers only as long as we have them open.
const maxIdle = 16

func newDatabase(c *connector) *database {
	db := sql.OpenDB(c)
	db.SetMaxIdleConns(maxIdle)
	return &database{DB: db, connector: c, stmts: make(map[string]*sql.Stmt)}
}

// identify records which files the database consists of, after a first read. The first must
// be the file that was there before.
func (db *database) identify(before fs.FileInfo) error {
	id, err := identify(db.connector.path)
	if err == nil && !os.SameFile(before, id[0]) {
		err = errReplaced
	}
	if err != nil {
		return err
	}
	db.setIdentity(id)
	return nil
}

func (db *database) setIdentity(id identity) {
	db.id = id
	db.connector.id.Store(&id)
}

// current reports whether the files still have their names.
func (db *database) current() bool { return !db.closed.Load() && db.id.holds(db.connector.path) }

// Close closes the connections. Queries that still use the database count as failed: see
// current.
func (db *database) Close() error {
	db.closed.Store(true)
	return db.DB.Close()
}

// empty moves all of the -wal into the database, and reports whether it could: a
// reader elsewhere may still need it.
func (db *database) empty(ctx context.Context) bool {
	conn, err := db.Conn(ctx)
	if err != nil {
		return false
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `PRAGMA busy_timeout = 0`); err != nil {
		return false
	}
	var busy, frames, moved int
	err = conn.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &moved)
	return err == nil && busy == 0
}

// changes returns how many changes the database has had.
func (db *database) changes(ctx context.Context) (n int64, err error) {
	err = db.DB.QueryRowContext(ctx, `SELECT value FROM counters WHERE name = 'changes'`).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		err = errStructure
	}
	return n, err
}

// isComplete reports whether a CatchUp has completed since the database was created.
func (db *database) isComplete(ctx context.Context) bool {
	swept := false
	err := db.DB.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM swept)`).Scan(&swept)
	return err == nil && swept
}

// QueryContext is sql.DB's, with prepared statements.
func (db *database) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := db.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	if stmt == nil {
		return db.DB.QueryContext(ctx, query, plain(args)...)
	}
	return stmt.QueryContext(ctx, plain(args)...)
}

// QueryRowContext is sql.DB's, with prepared statements.
func (db *database) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	stmt, err := db.prepared(ctx, query)
	if err != nil || stmt == nil {
		return db.DB.QueryRowContext(ctx, query, plain(args)...)
	}
	return stmt.QueryRowContext(ctx, plain(args)...)
}

// prepared returns a statement for a query, or nil if there are too many.
func (db *database) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if stmt, ok := db.stmts[query]; ok {
		return stmt, nil
	}
	if len(db.stmts) == maxStatements {
		return nil, nil
	}
	stmt, err := db.PrepareContext(ctx, query)
	if err == nil {
		db.stmts[query] = stmt
	}
	return stmt, err
}
