package store

import (
	"context"
	"iter"
	"time"
)

// Trashed is a log that was removed and can be restored.
type Trashed struct {
	ID      string // names this removal: the log's name and the time
	Name    string // the log's name
	Removed time.Time
	Size    int64
}

// Trash is the logs that were removed, until they are deleted for good.
type Trash interface {
	// List returns what is in the trash, the latest removal first.
	List(ctx context.Context) ([]Trashed, error)
	// Add puts a log into the trash that was removed from another store, under the ID that its
	// removal has there: all of the lines or, if it fails, nothing. It returns ErrExist if the
	// trash has that removal, and ErrInvalid if id cannot be one.
	Add(ctx context.Context, id string, lines iter.Seq2[[]byte, error]) error
	// Take moves a log of the store to the trash that was removed from another store, under
	// the ID that its removal has there. Like RemoveAt it returns ErrConflict if the log does
	// not end at a position. It returns ErrExist if the trash has that removal, and ErrInvalid
	// if id cannot be one.
	Take(ctx context.Context, id string, end Pos) error
	// Restore brings a removed log back under its name. It returns ErrExist if there is a log
	// of that name again, ErrNotExist if the trash has no such removal, and ErrInvalid if id
	// cannot be one.
	Restore(ctx context.Context, id string) error
	// Empty deletes for good the logs that were removed before a moment, and returns
	// them. Like Restore it first notes what leaves the trash: see RemovalsOf.
	Empty(ctx context.Context, before time.Time) ([]Trashed, error)
	// Read returns what is in the trash as a store to read from, which must
	// be closed: a removal's ID is the name of its log.
	Read() (Store, error)
}
