package store

import (
	"context"
	"io/fs"
	"iter"
)

// FaultKind names something that is not in order about the way a log is kept.
type FaultKind string

// The kinds of faults. Which of them a store can have depends on what it keeps
// its logs in.
const (
	FaultPermissions FaultKind = "permissions"          // others than the owner can get at a file
	FaultLeftover    FaultKind = "left-over archive"    // an archive beside the plain file, which counts
	FaultUnsynced    FaultKind = "failed sync"          // the disk refused to confirm a write
	FaultIgnored     FaultKind = "ignored file"         // it looks like a log and cannot be one
	FaultTemporary   FaultKind = "stale temporary file" // a writer left it when it was stopped
	FaultLock        FaultKind = "stale lock"           // the lock of a log that does not exist
)

// Fault is one thing that is not in order about the way logs are kept, as
// opposed to what the lines of a log say.
type Fault struct {
	Kind FaultKind
	Name string // the log concerned, or ""
	Path string // the file
	Size int64  // of a stale file
	// Mode is what a file's permissions are, and Fit the most that they may be.
	Mode, Fit fs.FileMode
	// Err is why a file is ignored.
	Err error
}

// Inspector is an optional interface of a Store that keeps its logs in something
// that can be at fault by itself, such as files.
type Inspector interface {
	// InspectLog yields the faults of the files that one log is kept in. It
	// changes nothing.
	InspectLog(ctx context.Context, name string) iter.Seq2[Fault, error]
	// InspectRest yields the faults of everything that does not belong to a
	// single log. It changes nothing.
	InspectRest(ctx context.Context) iter.Seq2[Fault, error]
	// Mend puts a fault right that one of the others yielded: it narrows
	// permissions, and deletes stale files unless somebody uses them by now. For
	// any other kind it returns errors.ErrUnsupported.
	Mend(ctx context.Context, f Fault) error
}

// Unreferenced is a blob that nothing refers to.
type Unreferenced struct {
	Ref  Ref
	Path string // its file, "" where the store has none
	Size int64
}

// Auditor is an optional interface of a Store that can tell which of its blobs
// nothing refers to. To delete them, see Collector.
type Auditor interface {
	// Unreferenced returns the blobs that nothing in the store refers to. What
	// cannot be read may refer to anything, and is an error.
	Unreferenced(ctx context.Context) ([]Unreferenced, error)
}
