package store

import (
	"fmt"
	"io/fs"
	"strings"
)

// The errors of this package, grouped by the moment at which they occur. Test
// for them with errors.Is; a *Error around them carries the facts.
var (
	// ErrInvalid: the caller's argument cannot be used (a name, a position, a
	// line). It also matches fs.ErrInvalid.
	ErrInvalid error = &sentinel{"invalid argument", fs.ErrInvalid}
	// ErrTooLarge: something is over a limit of the store: an entry, a session, or
	// how many there are. A *LimitError says which. Nothing was written.
	ErrTooLarge error = &sentinel{"too large", nil}

	// ErrNotExist: there is no log or blob of that name. It also matches
	// fs.ErrNotExist.
	ErrNotExist error = &sentinel{"does not exist", fs.ErrNotExist}
	// ErrExist: a log of that name exists already. It also matches fs.ErrExist.
	ErrExist error = &sentinel{"already exists", fs.ErrExist}
	// ErrCorrupt: the store has bytes that none of our writers could have left, and
	// that cannot be skipped.
	ErrCorrupt error = &sentinel{"corrupt", nil}

	// ErrConflict: the log no longer ends where the caller expected. Nothing was
	// written; read the new lines and decide.
	ErrConflict error = &sentinel{"conflict: the log has moved on", nil}
	// ErrReplaced: the log was rewritten since it was opened (redacted, repaired,
	// restored), or another log has its name. Nothing was written; positions in
	// the old one mean nothing in the new. Open it again.
	ErrReplaced error = &sentinel{"replaced since it was opened", nil}
	// ErrLocked: another writer held the log longer than we wait. Nothing was written.
	ErrLocked error = &sentinel{"locked by another writer", nil}
	// ErrUnknown: an append may or may not have happened. Reopen the log and
	// look for the entry before trying again.
	ErrUnknown error = &sentinel{"outcome unknown", nil}

	// ErrUnavailable: the store cannot be reached, such as one on another machine. Nothing
	// was written; try again later.
	ErrUnavailable error = &sentinel{"unavailable", nil}

	// ErrUnauthorized: the store is on another machine, which wants a token, or another one. It
	// also matches fs.ErrPermission.
	ErrUnauthorized error = &sentinel{"unauthorized", fs.ErrPermission}

	// ErrClosed: the store or log was closed. It also matches fs.ErrClosed.
	ErrClosed error = &sentinel{"closed", fs.ErrClosed}
)

// sentinel is an error that also matches its standard-library cousin.
type sentinel struct {
	text string
	also error
}

func (s *sentinel) Error() string        { return s.text }
func (s *sentinel) Is(target error) bool { return s.also != nil && target == s.also }

// Error says what was being done, to which log, where, and why it did not work.
type Error struct {
	Op     string // what was being done: "append", "open", …
	Name   string // the log's name, "" when no log is concerned
	Path   string // the file, "" where the store has none
	Offset int64  // the position in the log; meaningful only when At is true
	At     bool   // whether Offset is known
	Kind   error  // one of the sentinels above, or nil
	Err    error  // the cause, or nil
	Hint   string // what the reader may do about it, or ""
}

func (e *Error) Error() string {
	var b strings.Builder
	kind := e.Kind
	if what, looked := strings.CutPrefix(e.Op, "find "); looked && kind == ErrNotExist {
		b.WriteString("no such " + what + ":")
		kind = nil
	} else {
		b.WriteString(e.Op)
	}
	switch {
	case e.Path != "":
		fmt.Fprintf(&b, " %s", e.Path)
	case e.Name != "":
		fmt.Fprintf(&b, " %q", e.Name)
	}
	if e.At {
		fmt.Fprintf(&b, " at byte %d", e.Offset)
	}
	if kind != nil {
		fmt.Fprintf(&b, ": %v", kind)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.cause())
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, " (%s)", e.Hint)
	}
	return b.String()
}

// cause is Err without the path, if the message already has it.
func (e *Error) cause() error {
	if path, ok := e.Err.(*fs.PathError); ok && path.Path == e.Path {
		return path.Err
	}
	return e.Err
}

// Unwrap lets errors.Is and errors.As see both the kind and the cause.
func (e *Error) Unwrap() []error {
	errs := make([]error, 0, 2)
	if e.Kind != nil {
		errs = append(errs, e.Kind)
	}
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	return errs
}
