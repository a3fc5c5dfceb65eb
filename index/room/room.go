// Package room defines what an index needs from the database that keeps its tables. Package
// index/sqlite has a room in a file, index/postgres one in a PostgreSQL database.
//
// # Statements
//
// Statements are written once, for SQLite; another room translates them. So they keep to what
// can be translated word by word:
//
//   - Parameters are ? or ?1. A list is json_each(?), of numbers or strings.
//   - Functions and numbers are those of both: coalesce and not ifnull, 255 and not 0xff, CASE and not
//     max(a, b). A shift is by a constant, or by CAST(? AS int).
//   - A number is not a condition: WHERE 1 = 1, SET folded = CASE WHEN … THEN 1 ELSE 0 END.
//   - A subquery in FROM has a name. GROUP BY lists every selected column.
//   - INSERT has ON CONFLICT with its columns, not OR IGNORE or OR REPLACE, and VALUES or
//     SELECT right after its columns.
//   - An UPDATE or a DELETE ends with its WHERE.
//   - The full-text table is fts; its rowid is the document's, and fts MATCH ? takes a Match.
package room

import (
	"context"
	"database/sql"
	"errors"
)

// Version is the version of the tables. A room with any other is rebuilt. Raise it whenever
// the tables, the tokens or the meaning of a column change.
const Version = 29

var (
	// ErrDamaged means that the tables cannot be used as they are. The room has emptied them
	// already, or empties them when a function that it calls returns the error.
	ErrDamaged = errors.New("the index is damaged")
	// ErrReplaced means that others have replaced the tables, or that they have to be filled
	// first. What was read of them is worthless.
	ErrReplaced = errors.New("the index was deleted while it was in use")
)

// Room keeps the tables of one index. All methods may be called concurrently.
type Room interface {
	// Where says where the tables are, for people.
	Where() string
	// Reader is the name by which the store knows the index: see store.Store.Changes.
	Reader() string
	// View calls f with the tables. If f or the room finds damage, the error matches
	// ErrDamaged and the tables are empty afterwards; if others have replaced them meanwhile, it
	// matches ErrReplaced. Unless filled is false, tables that no one has filled yet count as
	// replaced.
	View(ctx context.Context, filled bool, f func(Tables) error) error
	// Filled says that the tables have all that the store has.
	Filled(Tables)
	// Follow opens the tables again if others have replaced them.
	Follow(ctx context.Context) error
	// Update calls f in a transaction on the tables, during which no other program writes.
	Update(ctx context.Context, t Tables, f func(Tx) error) error
	// Rebuilt reports whether the tables were rebuilt since the last call.
	Rebuilt() bool
	// Empty replaces the tables by empty ones.
	Empty(ctx context.Context) error
	// Discard deletes the tables. The next use creates them again.
	Discard(ctx context.Context) error
	// Forgets reports whether what is removed from the tables leaves no trace in them.
	Forgets() bool
	// Tidy frees the space that a large write took.
	Tidy(ctx context.Context, t Tables) error
	// Status returns how many bytes the tables take, and what keeps them.
	Status(ctx context.Context) (size int64, engine string, err error)
	// Explain says in the words of the store what an error of the room means.
	Explain(err error) error
	// Close releases the room.
	Close() error
}

// Querier asks the tables.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Tables are the tables of an index, to read.
type Tables interface {
	Querier
}

// Tx is a transaction that writes.
type Tx interface {
	Querier
	// ExecContext writes. It may wait until something is asked or the transaction ends, and only
	// then fail; asking the result for the number of rows is asking.
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	// InsertContext inserts rows into a table. The arguments are the values of the rows, row by
	// row; tail is what follows them in the statement, such as ON CONFLICT.
	InsertContext(ctx context.Context, table, columns, tail string, args []any) error
	// AddTexts adds documents to the full-text table. They are sorted by id, and none of the
	// ids is in the table yet. It may work in the background: the documents and the words must
	// not change until the caller has called the returned function, which completes the work
	// or, if it is given an error, abandons it and returns that error.
	AddTexts(ctx context.Context, texts []Text, words []string) func(error) error
	// DropTexts removes documents from the full-text table.
	DropTexts(ctx context.Context, ids []int64) error
}

// Text is a document of the full-text table: tokens, by their places in a list of words.
type Text struct {
	ID int64
	// Body has the tokens in the order of the text; phrases are looked for there. Whole and
	// Facets have others.
	Body, Whole, Facets []uint32
}

// Match is a full-text query, in the language of FTS5: tokens and phrases in quotation marks,
// of which a phrase has the column before it (body : "…"), with AND, OR, NOT and parentheses.
type Match struct {
	Query string
	// From and To are the ids that matter, both included; if To is 0, all after From do. Newest
	// is how many of the newest suffice, or 0. The statement has the same conditions; a room may
	// use these to look at less.
	From, To int64
	Newest   int
	// Few says that hardly more than Newest match: so a room need not look for the newest
	// first. Otherwise, a room that has to look into each text for a phrase may look into the newest
	// only, always into so many. Then it sets Partly, unless that is nil.
	Few    bool
	Partly *bool
}
