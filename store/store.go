// Package store keeps logs: named, append-only sequences of lines.
//
// A store knows bytes and positions, and nothing about what the lines mean; package session
// gives them meaning. Package store/file keeps a store in a directory (begin with file.Open),
// store/memory in memory, and store/remote on another machine. One public suite, package
// storetest, decides whether an implementation is right.
//
// An append is a compare-and-swap on the log's end and has three outcomes:
//
//	done      the lines are durable (to the degree the store was configured for)
//	conflict  ErrConflict: another writer appended; nothing of ours was written
//	          (ErrReplaced: the log was rewritten; open it again)
//	unknown   ErrUnknown: it may or may not have happened; read back and see
//
// So two writers can never silently interleave, and a retry can never double an
// entry whose id the caller can look for. If a store syncs lazily, Log.Flush waits for
// the disk.
package store

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"time"
)

// Pos is a place between two lines of a log. Zero is before the first line;
// greater is later. Apart from that a Pos means something only to the log it
// came from: compare it, keep it, do not compute with it.
type Pos int64

// Line is one line of a log, without its line end.
type Line struct {
	// Data is the line's bytes. It is valid only until the next step of the iteration:
	// copy what you keep. Until then you may change it.
	Data []byte
	// Pos is where the line begins and Next where the following one does.
	Pos, Next Pos
	// Cut is true when the line is longer than the store's limit, and Data
	// holds only its beginning.
	Cut bool
}

// Stat describes a log without opening it.
type Stat struct {
	Name     string
	Size     int64     // bytes the log takes up in the store
	Modified time.Time // of the last append
	Archived bool      // the log is kept compressed; reading it is transparent
}

// Store is a set of named logs, and what belongs to them: the blobs that their lines
// refer to, the logs that were removed, and notes. All methods may be called
// concurrently. Names must pass CheckName: with any other, every method that takes one
// returns ErrInvalid.
//
// This is all that programs need. What only some stores have is a capability, found with
// As: Directory, Archiver and Mender. A store that adds something to another one embeds
// it, so that it keeps the whole contract: see Wrapper. A store on another machine leaves
// the trash, the parts and collecting blobs to those who look after it there: it returns
// errors.ErrUnsupported.
type Store interface {
	// Create makes a log that holds exactly the given lines: all of them or, if
	// it fails or the machine does, no log at all. Each line is copied or
	// written before the next is asked for. It returns ErrExist if there is a
	// log of that name.
	Create(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (Log, error)
	// CreateCopy is Create of lines that come from another log, of this store or of
	// another. The copy appears only if that log was not rewritten since it was opened (see Log.Pin),
	// else the error is ErrReplaced or ErrNotExist: a redaction may have removed something
	// that must not come back through an old handle. Checking before the copy is not
	// enough, because the log may be rewritten while it is copied. So the log is pinned
	// from after the last line until the copy has its name. A later rewrite of the log
	// finds the copy.
	CreateCopy(ctx context.Context, name string, lines iter.Seq2[[]byte, error], of Log) (Log, error)
	// Batch returns an empty batch, with which many logs are created for less than each
	// of them costs alone. The caller ends it with Commit or Discard.
	Batch() Batch
	// Open returns the log of that name, or ErrNotExist. Opening writes nothing.
	Open(ctx context.Context, name string) (Log, error)
	// Stat describes the log of that name, or returns ErrNotExist.
	Stat(ctx context.Context, name string) (Stat, error)
	// List yields every log, in no particular order. A log that cannot be
	// described is yielded with its name and an error; the others follow.
	List(ctx context.Context) iter.Seq2[Stat, error]
	// Remove moves the log to the trash, or returns ErrNotExist. Appends and
	// watches on handles that are open get ErrNotExist from then on; once another
	// log of that name is created, they may get ErrReplaced instead.
	Remove(ctx context.Context, name string) error
	// RemoveAt is Remove if the log ends at a position, and returns ErrConflict
	// if it does not: then nothing is removed.
	RemoveAt(ctx context.Context, name string, end Pos) error
	// Trash returns the logs that were removed.
	Trash() Trash
	// Blobs returns the store's blobs.
	Blobs() Blobs
	// Notes returns the notes of a room, a name for those of one part of a program. ""
	// is a room, too. With a room that does not pass CheckRoom, every method of the notes
	// returns ErrInvalid.
	Notes(room string) Notes
	// Parts returns everything that the store keeps, part by part.
	Parts() Parts
	// Changes returns which logs may have changed since a reader, such as an index, gave back
	// their marks. If the store does not know, or not for this reader, there is no Epoch.
	Changes(ctx context.Context, reader string) (Changes, error)
	// Settle removes a reader's marks on the logs named, if each is still as seen describes it
	// and is not being changed; nil means that the log does not exist. Otherwise, or with an
	// error, the mark stays.
	Settle(ctx context.Context, reader string, seen map[string]*Stat) error
	// Limits returns the limits of the store.
	Limits() Limits
	// Where says where the store is, for people: a directory, or a URL.
	Where() string
	// Close releases the store. Logs opened from it are closed too. Everything
	// gets ErrClosed afterwards, except that closing again does nothing.
	Close() error
}

// Log is one open log. All methods may be called concurrently.
//
// A position is one that the log gave out: zero, a line's Pos or Next, or an end. Reading
// from a negative one is ErrInvalid. Reading from beyond the end, or from the middle of a
// line, is ErrInvalid or ErrConflict, except that beyond the end Forward may also yield
// nothing, and Backward begin at the end. An append anywhere but at the end is
// ErrConflict, or ErrInvalid where there can be no end.
//
// An iteration ends, or yields an error as its last value. It may be ranged over again. If the
// log is removed, rewritten or closed during an iteration, it yields the rest of the lines as
// they were, or an error: never other lines, and never fewer without an error.
type Log interface {
	// Append writes the lines after the position at, which must be the log's
	// end, and returns the new end. They are written together: at worst a reader sees a
	// prefix of them, and a crash may leave a prefix of an append that never returned.
	// Lines must not contain a newline. The log does not keep them: their memory is the
	// caller's again on return.
	Append(ctx context.Context, at Pos, lines ...[]byte) (Pos, error)
	// Start writes the lines as Append does and returns the new end without
	// waiting for them to be durable; commit waits, and gives Append's error. The
	// caller must call commit, once, if err is nil. So the next append can begin while
	// this one is on its way to the disk, and both may share one sync.
	Start(ctx context.Context, at Pos, lines ...[]byte) (end Pos, commit func() error, err error)
	// Forward yields the lines from a position to the end, wherever that is when the
	// iteration gets there. A last line without a line end is included if it is Whole;
	// otherwise it is not there yet. Reading takes no lock and writes nothing.
	Forward(ctx context.Context, from Pos) iter.Seq2[Line, error]
	// Backward yields the lines before a position, the latest first.
	Backward(ctx context.Context, from Pos) iter.Seq2[Line, error]
	// Watch is Forward that, at the end, waits for more, until ctx is done (it
	// then ends without an error), or the log is removed, replaced or closed
	// (ErrNotExist, ErrReplaced, ErrClosed).
	Watch(ctx context.Context, from Pos) iter.Seq2[Line, error]
	// End returns the position after the last line that Forward yields.
	End(ctx context.Context) (Pos, error)
	// Flush is a barrier: when it returns nil, everything that was appended
	// through this handle before the call, the lines that it was created with,
	// and every blob put into the store before the call, survive a power cut,
	// however lazily the store syncs. It costs little when nothing is
	// pending. A context that is done ends the waiting, not the work. After ErrUnknown
	// the handle takes no more appends, as after a failed append; open a new handle and
	// Flush it to settle what the log holds.
	Flush(ctx context.Context) error
	// Current returns ErrReplaced if the log was rewritten since it was opened. It is
	// cheap, and its answer may be out of date at once.
	Current() error
	// Pin checks that the log is still the one that was opened, and keeps it unchanged
	// until release is called: until then no process appends to it, rewrites it or
	// removes it. It returns ErrReplaced if it was rewritten and ErrNotExist if it was
	// removed.
	Pin(ctx context.Context) (release func(), err error)
	// Close waits until the appends are as durable as the store's settings require, and
	// releases the handle: see Store.Close.
	Close() error
}

// Whole reports whether a last line that lacks its line end is an entry all the
// same. Its writer may have been killed before the line end, be about to write it,
// or be an editor that leaves none. A complete JSON object cannot be the beginning
// of a longer line. A NUL is what a lost block of a disk reads as, so a line with one
// is not whole; nor is a line over the store's limit, which no one reads.
func Whole(line []byte) bool {
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
	return len(line) > 1 && line[0] == '{' && line[len(line)-1] == '}' && bytes.IndexByte(line, 0) < 0 && json.Valid(line)
}

// IsLine reports whether the bytes after the last line end are a line all the same. If
// so, readers take it in: its Next is where the following line will begin, and the next
// append writes the missing line end first. A whole entry is one. So are bytes with a NUL
// among them: no writer writes a NUL, so they were lost and never become an entry. A reader
// that took them for a line on its way would hide that something is missing. Everything else
// after the last line end is on its way, or torn.
func IsLine(tail []byte) bool { return bytes.IndexByte(tail, 0) >= 0 || Whole(tail) }

// Lines yields the given lines, for Create.
func Lines(lines ...[]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, line := range lines {
			if !yield(line, nil) {
				return
			}
		}
	}
}
