package store

import (
	"context"
	"io/fs"
	"iter"
)

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

// Inspector is an optional interface of a Store that keeps its logs in something that
// can have faults of its own, such as files.
type Inspector interface {
	// InspectLog yields the faults of the files that one log is kept in. It
	// changes nothing.
	InspectLog(ctx context.Context, name string) iter.Seq2[Fault, error]
	// InspectRest yields the faults of everything that does not belong to a
	// single log. It changes nothing.
	InspectRest(ctx context.Context) iter.Seq2[Fault, error]
	// Mend repairs a fault that one of the other methods yielded: it narrows
	// permissions, and deletes stale files unless they are in use again. For any other
	// kind it returns errors.ErrUnsupported.
	Mend(ctx context.Context, f Fault) error
}

// Unreferenced is a blob that nothing refers to.
type Unreferenced struct {
	Ref  Ref
	Path string // its file, "" where the store has none
	Size int64
}

// Auditor is an optional interface of a Store that can find the blobs that nothing
// refers to. To delete them, see Collector.
type Auditor interface {
	// Unreferenced returns the blobs that nothing in the store refers to. A log that
	// cannot be read may refer to any blob, so it is an error.
	Unreferenced(ctx context.Context) ([]Unreferenced, error)
}
