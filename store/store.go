// Package store keeps logs: named, append-only sequences of lines.
//
// A store knows bytes and positions, and nothing about what the lines mean; package
// session gives them meaning. That keeps a store small, and one public suite, package
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

// Store is a set of named logs, and the blobs their lines refer to. All methods
// may be called concurrently. Names must pass CheckName.
type Store interface {
	// Create makes a log that holds exactly the given lines: all of them or, if
	// it fails or the machine does, no log at all. Each line is copied or
	// written before the next is asked for. It returns ErrExist if there is a
	// log of that name.
	Create(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (Log, error)
	// Open returns the log of that name, or ErrNotExist. Opening writes nothing.
	Open(ctx context.Context, name string) (Log, error)
	// List yields every log, in no particular order. A log that cannot be
	// described is yielded with its name and an error; the others follow.
	List(ctx context.Context) iter.Seq2[Stat, error]
	// Remove takes the log out of the store, or returns ErrNotExist. Appends and
	// watches on open handles get ErrNotExist from then on; once another log of that
	// name exists, they may get ErrReplaced instead.
	Remove(ctx context.Context, name string) error
	// Blobs returns the store's blobs.
	Blobs() Blobs
	// Close releases the store. Logs opened from it are closed too. Everything
	// gets ErrClosed afterwards, except that closing again does nothing.
	Close() error
}

// Log is one open log. All methods may be called concurrently.
type Log interface {
	// Append writes the lines after the position at, which must be the log's
	// end, and returns the new end. They are written together: at worst a reader sees a
	// prefix of them, and a crash may leave a prefix of an append that never returned.
	// Lines must not contain a newline. The log does not keep them: their memory is the
	// caller's again on return.
	Append(ctx context.Context, at Pos, lines ...[]byte) (Pos, error)
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
	// however lazily the store was told to sync. It costs little when nothing is
	// pending. A context that is done ends the waiting, not the work. After ErrUnknown
	// the handle takes no more appends, as after a failed append; open a new handle and
	// Flush it to settle what the log holds.
	Flush(ctx context.Context) error
	// Close waits until the appends are as durable as the store's settings require, and
	// releases the handle: see Store.Close.
	Close() error
}

// Starter is an optional interface of a Log that can take the next append while an
// earlier one is still on its way to the disk, so that appends in quick succession
// share one sync.
type Starter interface {
	// Start writes the lines as Append does and returns the new end without
	// waiting for them to be durable; commit waits, and gives Append's error.
	// The caller must call commit, once, if err is nil.
	Start(ctx context.Context, at Pos, lines ...[]byte) (end Pos, commit func() error, err error)
}

// Start begins an append through the log's Starter, or else appends.
func Start(ctx context.Context, log Log, at Pos, lines ...[]byte) (Pos, func() error, error) {
	if s, ok := log.(Starter); ok {
		return s.Start(ctx, at, lines...)
	}
	end, err := log.Append(ctx, at, lines...)
	return end, func() error { return nil }, err
}

// Whole reports whether a last line without a line end is a complete entry. Its writer
// may have been killed before the line end, may be about to write it, or may be an
// editor that writes none. A complete JSON object cannot be the beginning of a longer
// line, so readers accept it: its Next is where the following line will begin, and the
// next append writes the missing line end first. Everything else after the last line
// end is still being written, or torn. A lost disk block reads as NULs, so a line with
// one is torn; so is a line over the store's limit, which cannot be read anyway.
func Whole(line []byte) bool {
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
	return len(line) > 1 && line[0] == '{' && line[len(line)-1] == '}' && bytes.IndexByte(line, 0) < 0 && json.Valid(line)
}

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
