package store

import (
	"context"
	"time"
)

// Trashed is a log that was removed and can be restored.
type Trashed struct {
	ID      string // names this removal: the log's name and the time
	Name    string // the log's name
	Removed time.Time
	Size    int64
}

// Trash is an optional interface of a Store that keeps what is removed until
// its trash is emptied.
type Trash interface {
	// Trash returns what is in the trash, the latest removal first.
	Trash(ctx context.Context) ([]Trashed, error)
	// Restore brings a removed log back under its name. It returns ErrExist if
	// there is a log of that name again, and ErrNotExist if the trash has no such
	// removal.
	Restore(ctx context.Context, id string) error
	// EmptyTrash deletes for good what was removed before a moment, and returns
	// what it deleted.
	EmptyTrash(ctx context.Context, before time.Time) ([]Trashed, error)
	// ReadTrash returns what is in the trash as a store to read from, which must
	// be closed: a removal's ID is the name of its log.
	ReadTrash() (Store, error)
}

// Quarantined is something that a store took out of a log, or a log that another one
// replaced.
type Quarantined struct {
	ID     string // names it
	Name   string // the log's name
	Path   string // the file
	Time   time.Time
	Size   int64
	Torn   bool  // it is a piece of a log, not a whole one
	Offset int64 // where in the log the piece was
}

// Quarantine is an optional interface of a Store that keeps pieces that it took out of
// its logs, and logs that were replaced.
type Quarantine interface {
	// Quarantined returns what is there, the latest first.
	Quarantined(ctx context.Context) ([]Quarantined, error)
	// Readmit turns what was kept into a log again, under its old name, and returns
	// that name. It returns ErrExist if there is a log of that name, ErrNotExist if
	// there is nothing with that ID, and ErrInvalid for a piece of a log.
	Readmit(ctx context.Context, id string) (name string, err error)
}

// Archiver is an optional interface of a Store that can keep a log compressed.
type Archiver interface {
	// Archive compresses a log. It is read as before; the first append brings
	// the plain form back.
	Archive(ctx context.Context, name string) error
	// Unarchive brings the plain form of a log back.
	Unarchive(ctx context.Context, name string) error
}
