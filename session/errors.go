package session

import (
	"errors"
	"fmt"

	"github.com/coppice-dev/coppice/store"
)

// The errors of this package, to be tested with errors.Is. They are the store's:
// see there for what each means.
var (
	ErrInvalid  = store.ErrInvalid
	ErrTooLarge = store.ErrTooLarge
	ErrNotExist = store.ErrNotExist
	ErrExist    = store.ErrExist
	ErrCorrupt  = store.ErrCorrupt
	ErrConflict = store.ErrConflict
	ErrReplaced = store.ErrReplaced
	ErrLocked   = store.ErrLocked
	ErrUnknown  = store.ErrUnknown
	ErrClosed   = store.ErrClosed
)

// MustReopen reports whether an error means that its session can no longer be used: it was
// closed, another process rewrote it, or it is not known whether an append took place. Open
// the session again; in the last case, look for the entry before you append it again.
func MustReopen(err error) bool {
	return errors.Is(err, ErrUnknown) || errors.Is(err, ErrClosed) || errors.Is(err, ErrReplaced)
}

// Error says what was being done (Op), to which session (Name, Path), where (Offset, if At is
// true), and why it did not work: Kind is one of the errors above or nil, Err the cause or
// nil, and Hint what one can do about it or "".
type Error = store.Error

// ConflictError is the error of an append that met another writer. Nothing was
// written. The session has read what the other wrote, and its leaf is where it
// was: appending again grows a branch; Refresh continues from the other's leaf.
type ConflictError struct {
	Leaf   string // our leaf
	Theirs string // the other writer's leaf
	Err    error  // matches ErrConflict
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: our leaf is entry %q, the other writer's is %q (append again to grow a branch, or Refresh to continue from theirs)", e.Err, e.Leaf, e.Theirs)
}

func (e *ConflictError) Unwrap() error { return e.Err }

// CutError says why a compaction may not begin where it was asked to. It
// matches ErrInvalid.
type CutError struct {
	EntryID string // the entry that was to be the first kept one; empty if none was to be kept
	Reason  string
}

func (e *CutError) Error() string {
	if e.EntryID == "" {
		return "cannot compact all of it: " + e.Reason
	}
	return fmt.Sprintf("cannot cut before entry %q: %s", e.EntryID, e.Reason)
}

func (e *CutError) Unwrap() error { return ErrInvalid }

// ProblemKind names a fault in a session.
type ProblemKind string

// The faults that a session can have and still be read.
const (
	ProblemHeader      ProblemKind = "header"                   // missing, not first, or repeated
	ProblemDamaged     ProblemKind = "damaged line"             // a line that is not an entry
	ProblemDuplicate   ProblemKind = "duplicate id"             // two entries of one id
	ProblemSelfParent  ProblemKind = "self parent"              // an entry that names itself as its parent
	ProblemCycle       ProblemKind = "parent cycle"             // entries that are each other's ancestors
	ProblemDangling    ProblemKind = "missing parent"           // an entry whose parent is not there
	ProblemRoots       ProblemKind = "several roots"            // more than one beginning
	ProblemFirstKept   ProblemKind = "unknown first kept entry" // a compaction that would hide everything
	ProblemTarget      ProblemKind = "unknown target"           // a label, edit, revert or merge of nothing
	ProblemRepeated    ProblemKind = "repeated entry"           // a merge of what is there already
	ProblemOrphan      ProblemKind = "orphan tool result"       // an answer without its call, or a second one
	ProblemInterrupted ProblemKind = "interrupted tool call"    // a call without an answer
	ProblemBlob        ProblemKind = "missing blob"             // content that is not in the store
	ProblemTail        ProblemKind = "torn end"                 // bytes after the last whole line
)

// Problem is one fault of a session. It is an error, which matches ErrCorrupt,
// ErrNotExist or ErrInvalid, as its kind says, and its cause.
type Problem struct {
	Kind    ProblemKind
	EntryID string    // the entry concerned, or ""
	Pos     store.Pos // where its line begins
	Session string    // of a chain: the one that has the line, or "" if that is not known
	Detail  string
	Blob    store.Ref // the content that cannot be read, for ProblemBlob
	Err     error     // the cause, or nil if there is none but the log itself
}

// Error says what String does.
func (p Problem) Error() string { return p.String() }

// Unwrap returns the sentinel of the problem's kind, and the cause.
func (p Problem) Unwrap() []error {
	errs := []error{p.Kind.sentinel()}
	if p.Err != nil {
		errs = append(errs, p.Err)
	}
	return errs
}

// sentinel returns the error that problems of a kind match: the log is damaged, it
// refers to what is not there, or it says what cannot be.
func (k ProblemKind) sentinel() error {
	switch k {
	case ProblemDangling, ProblemFirstKept, ProblemTarget, ProblemBlob:
		return ErrNotExist
	case ProblemRepeated, ProblemOrphan, ProblemInterrupted:
		return ErrInvalid
	}
	return ErrCorrupt
}

// key returns what is the same for problems that are the same. Errors are equal only if
// they are identical, and the code that builds a context does not know the positions of
// its entries.
func (p Problem) key() Problem {
	p.Err, p.Pos = nil, 0
	return p
}

func (p Problem) String() string {
	s := string(p.Kind)
	if p.EntryID != "" {
		s += fmt.Sprintf(" (entry %s)", p.EntryID)
	}
	if p.Pos > 0 { // a context does not know the positions of its entries
		s += fmt.Sprintf(" at byte %d", p.Pos)
	}
	if p.Session != "" {
		s += " of session " + p.Session
	}
	return s + ": " + p.Detail
}
