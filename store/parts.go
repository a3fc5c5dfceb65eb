package store

import (
	"context"
	"io"
	"iter"
	"time"
)

// PartKind says what a part of a store is.
type PartKind string

// The kinds of parts.
const (
	PartLog   PartKind = "log"   // a log
	PartCopy  PartKind = "copy"  // lines of a log that are not in it, or no longer: see Parts.Copies
	PartBlob  PartKind = "blob"  // content that lines refer to
	PartNote  PartKind = "note"  // a note, or another small document
	PartTemp  PartKind = "temp"  // what a writer has not finished, or left when it was stopped
	PartIndex PartKind = "index" // made from the logs, and can be made again
	PartOther PartKind = "other" // has nothing of a log: a lock, a mark
)

// Part is one thing that a store keeps.
type Part struct {
	Kind PartKind
	// Name is the name of a log, of the log that a copy is of, of a blob (its Ref), or of
	// a note, after its room and a slash if that is not "". Else it is "".
	Name string
	// Place says where it is, for people: a path where the store has files. No other
	// part has the same.
	Place    string
	Size     int64 // in bytes, as it is kept
	Modified time.Time
}

// Parts is everything that a store keeps, for programs that must find, read or take out
// something wherever it is: a secret, most of all. All methods may be called concurrently.
type Parts interface {
	// All yields every part. What vanishes meanwhile may be among them or not.
	All(ctx context.Context) iter.Seq2[Part, error]
	// Copies returns the copies of a log, which need not exist any more; of all logs if
	// the name is empty. These are removed logs, what was torn off or replaced, and
	// whatever else the store keeps so that nothing is lost.
	Copies(ctx context.Context, name string) ([]Part, error)
	// Open returns the content of a part, as it is kept: it may be compressed. It returns
	// ErrNotExist if there is no such part any more.
	Open(ctx context.Context, p Part) (io.ReadCloser, error)
	// Lines yields the lines of a log or a copy. Unlike a Log's Forward it also yields
	// what comes after the last line end, whatever it is.
	Lines(ctx context.Context, p Part) iter.Seq2[Line, error]
	// Edit replaces each line of a log, a copy or a note by what edit returns for it. Of a
	// line that is Cut, nothing changes. A crash leaves the old content or the new, and
	// nothing of the old is kept. Handles on a log get ErrReplaced from then on, unless
	// all of their lines are as they were. If somebody changes the part meanwhile, the
	// error is ErrConflict, and nothing changes.
	Edit(ctx context.Context, p Part, edit func(line []byte) ([]byte, error)) error
	// Remove deletes a part of the kind PartTemp, durably. If somebody may be writing it,
	// the error is ErrLocked.
	Remove(ctx context.Context, p Part) error
	// Where returns the Place of the log, blob or note of a name, also if there is none.
	Where(kind PartKind, name string) string
}
