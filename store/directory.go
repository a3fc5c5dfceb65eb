package store

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"time"
)

// Directory is a capability: the store keeps its logs as files in a directory, which
// Store.Where returns. People and other programs may get at them.
type Directory interface {
	// Path returns where the log of that name is or would be.
	Path(name string) string
	// IndexPath returns where an index of the store belongs, if one may write there.
	// The store itself does not need one.
	IndexPath() string
}

// Archiver is a capability: the store can keep a log compressed.
type Archiver interface {
	// Archive compresses a log. It is read as before; the first append brings
	// the plain form back.
	Archive(ctx context.Context, name string) error
	// Unarchive brings the plain form of a log back.
	Unarchive(ctx context.Context, name string) error
}

// Mender is a capability: the store keeps its logs in something that others can damage,
// such as files, so that it may have to be inspected, repaired and restored.
type Mender interface {
	// InspectLog yields the faults of the files of one log. It changes nothing.
	InspectLog(ctx context.Context, name string) iter.Seq2[Fault, error]
	// InspectRest yields the faults of everything that does not belong to a
	// single log. It changes nothing.
	InspectRest(ctx context.Context) iter.Seq2[Fault, error]
	// Mend corrects a fault that one of the others yielded: it narrows permissions, and
	// deletes stale files unless they are in use by now. For any other kind it returns
	// errors.ErrUnsupported.
	Mend(ctx context.Context, f Fault) error
	// OpenRaw returns the bytes of a log, or ErrNotExist.
	OpenRaw(ctx context.Context, name string) (Raw, error)
	// HasBackup reports whether there is a backup of a log, and where.
	HasBackup(name string) (path string, ok bool)
	// RestoreBackup replaces a log by its backup, and keeps the log as it was. It
	// returns ErrNotExist if there is no backup, and ErrCorrupt if the backup is
	// no better.
	RestoreBackup(ctx context.Context, name string) error
	// Quarantined returns bytes that were taken out of logs, and logs that were replaced, the
	// latest first.
	Quarantined(ctx context.Context) ([]Quarantined, error)
	// Readmit turns a quarantined item into a log again, under its old name, and returns
	// that name. It returns ErrExist if there is a log of that name, ErrNotExist if
	// there is nothing with that ID, and ErrInvalid for a piece of a log.
	Readmit(ctx context.Context, id string) (name string, err error)
}

// FaultKind names a problem with the way a log is kept.
type FaultKind string

// The kinds of faults. Which of them a store can have depends on what it keeps
// its logs in.
const (
	FaultPermissions FaultKind = "permissions"          // users other than the owner can access a file
	FaultLeftover    FaultKind = "left-over archive"    // an archive beside the plain file; the plain file counts
	FaultUnsynced    FaultKind = "failed sync"          // the disk refused to confirm a write
	FaultIgnored     FaultKind = "ignored file"         // it looks like a log but cannot be one
	FaultTemporary   FaultKind = "stale temporary file" // left by a writer that was stopped
	FaultLock        FaultKind = "stale lock"           // the lock of a log that does not exist
)

// Fault is one problem with the way logs are kept, as opposed to what their lines say.
type Fault struct {
	Kind FaultKind
	Name string // the log concerned, or ""
	Path string // the file
	Size int64  // of a stale file
	// Mode is a file's permissions, and Fit the widest that they may be.
	Mode, Fit fs.FileMode
	// Err is why a file is ignored.
	Err error
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

// RawLine is a line of a Raw.
type RawLine struct {
	Line
	// Torn: it is the last one and has no line end. Next is then where the bytes
	// end.
	Torn bool
}

// Piece is a part of a log's new content: bytes of the old content, as they
// are, or a line.
type Piece struct {
	// Line is a line without its line end. Nil means From and To.
	Line []byte
	// From and To say which part of the old content is taken over.
	From, To Pos
}

// Raw is the bytes of a log as they are at one moment, for a repair:
// unlike a Log it also has what is after the last whole line. It must be
// closed.
type Raw interface {
	io.ReaderAt
	io.Closer
	// Size is how many bytes there are.
	Size() int64
	// Lines yields the lines. As with a Log, the data of each is valid until the next step,
	// and a line over the limit has only its beginning.
	Lines(ctx context.Context) iter.Seq2[RawLine, error]
	// Rewrite replaces the content of the log by the given pieces, if the log is
	// still as it was when the Raw was opened; if not, nothing changes and the
	// error matches ErrConflict. The content before is kept, and Rewrite returns
	// where. A crash leaves the old content or the new.
	Rewrite(ctx context.Context, pieces iter.Seq2[Piece, error]) (kept string, err error)
	// Replace is Rewrite that keeps nothing of the content before: it is for
	// content that must not be kept.
	Replace(ctx context.Context, pieces iter.Seq2[Piece, error]) error
}
