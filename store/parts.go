package store

import (
	"bytes"
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

// StaleAfter is the age from which a part of the kind PartTemp counts as left over: no writer
// takes that long over one.
const StaleAfter = time.Hour

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

// Parts is everything that a store keeps, for programs that must find or remove something
// wherever it is, such as a secret. All methods may be called concurrently.
type Parts interface {
	// All yields every part. A part that is deleted during the iteration may be missing.
	All(ctx context.Context) iter.Seq2[Part, error]
	// Copies returns the copies of a log, or of all logs if the name is empty. The log
	// itself may be gone. Copies are removed logs, torn and replaced lines, and anything
	// else that the store keeps so that nothing is lost.
	Copies(ctx context.Context, name string) ([]Part, error)
	// Open returns the content of a part, as it is kept: it may be compressed. It returns
	// ErrNotExist if there is no such part any more.
	Open(ctx context.Context, p Part) (io.ReadCloser, error)
	// Lines yields the lines of a log or a copy. Unlike a Log's Forward it also yields
	// the bytes after the last line end, whatever they are.
	Lines(ctx context.Context, p Part) iter.Seq2[Line, error]
	// Edit replaces each line of a log, a copy or a note by what edit returns for it. A
	// line that is Cut stays as it is. A crash leaves either the old content or the new,
	// and no copy of the old is kept. Handles on a log get ErrReplaced from then on, unless
	// no line changed. If another writer changes the part during the edit, nothing changes
	// and the error is ErrConflict.
	Edit(ctx context.Context, p Part, edit func(line []byte) ([]byte, error)) error
	// Remove deletes a part of the kind PartTemp, durably. If it may still be being
	// written, the error is ErrLocked: see StaleAfter.
	Remove(ctx context.Context, p Part) error
	// Where returns the Place of a log, blob or note, whether or not it exists.
	Where(kind PartKind, name string) string
}

// EditText returns a text with each line replaced by what edit returns for it, as Parts.Edit does
// with a note. Line ends stay as they are.
func EditText(text []byte, edit func(line []byte) ([]byte, error)) ([]byte, error) {
	edited := []byte{}
	for line := range bytes.Lines(text) {
		line, whole := bytes.CutSuffix(line, []byte("\n"))
		line, err := edit(bytes.Clone(line))
		if err != nil {
			return nil, err
		}
		if edited = append(edited, line...); whole {
			edited = append(edited, '\n')
		}
	}
	return edited, nil
}
