package index

import (
	"context"
	"database/sql"
	"sync"
)

// maxStatements is how many statements are kept ready.
const maxStatements = 128

// database is a database that keeps its queries prepared: SQLite takes longer to
// understand most of ours than to answer them.
type database struct {
	*sql.DB

	mu    sync.Mutex // guards stmts
	stmts map[string]*sql.Stmt
}

func newDatabase(db *sql.DB) *database {
	return &database{DB: db, stmts: make(map[string]*sql.Stmt)}
}

// QueryContext is that of sql.DB.
func (db *database) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := db.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	if stmt == nil {
		return db.DB.QueryContext(ctx, query, args...)
	}
	return stmt.QueryContext(ctx, args...)
}

// QueryRowContext is that of sql.DB.
func (db *database) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	stmt, err := db.prepared(ctx, query)
	if err != nil || stmt == nil {
		return db.DB.QueryRowContext(ctx, query, args...)
	}
	return stmt.QueryRowContext(ctx, args...)
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
