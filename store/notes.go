package store

import (
	"context"
	"time"
)

// PendingNote is the note, in the room "", of a redaction that has begun. It names the blobs
// to delete, so it is the one note whose references keep no blob.
const PendingNote = "redact.pending"

// RedactedNote is the note, in the room "", with the digests of redacted secrets.
const RedactedNote = "redacted.json"

// Notes are small documents beside the logs: what a part of a program has to remember
// about the store. Each is there whole or not at all, whatever happens to the machine.
// Their names must pass CheckName. All methods may be called concurrently.
type Notes interface {
	// Read returns a note, or ErrNotExist.
	Read(ctx context.Context, name string) ([]byte, error)
	// List returns the notes of the room, sorted by name.
	List(ctx context.Context) ([]Note, error)
	// Write makes or replaces a note. It is as durable as an append when Write
	// returns.
	Write(ctx context.Context, name string, data []byte) error
	// WriteHint is Write for what can be found out again: after a power cut the note
	// may be gone, old or damaged.
	WriteHint(ctx context.Context, name string, data []byte) error
	// Change replaces a note by what change returns for its content, which is nil if there is
	// none. No Change of another process gets lost: if there was one in between, change is
	// called again, with the new content. If change returns an error, Change returns it, and
	// the note stays as it is.
	Change(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error
	// Remove deletes a note, durably. It is not an error if there is none.
	Remove(ctx context.Context, name string) error
}

// Note is a note in a listing.
type Note struct {
	Name     string
	Size     int64
	Modified time.Time
}
