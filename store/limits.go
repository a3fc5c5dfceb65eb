package store

import (
	"bytes"
	"fmt"
)

// Limits are the bounds that a store was given. Zero means none.
type Limits struct {
	// Entry is the maximum length of a line in bytes. Package session also counts the
	// blobs that the line refers to: it counts what a reader gets.
	Entry int64
	// Log is the maximum size of a log in bytes; in package session, again, with the
	// blobs that its lines refer to.
	Log int64
	// Logs is how many logs there may be.
	Logs int
}

// DefaultMaxEntry is the limit of a line if none is given.
const DefaultMaxEntry = 64 << 20

// Limit names one of the limits, as the settings of the program do.
type Limit string

// The limits.
const (
	MaxEntry    Limit = "max_entry"
	MaxSession  Limit = "max_session"
	MaxSessions Limit = "max_sessions"
)

// LimitError is the cause of an ErrTooLarge: it says what would have exceeded a limit.
// Nothing was written.
type LimitError struct {
	Limit     Limit
	Size, Max int64 // bytes, or a number of logs; Size is 0 if it was not measured
}

func (e *LimitError) Error() string {
	if e.Size == 0 {
		return fmt.Sprintf("it is over the limit of %d (%s)", e.Max, e.Limit)
	}
	what := "the entry has %d bytes, the limit is %d (%s)"
	switch e.Limit {
	case MaxSession:
		what = "the session would have %d bytes, the limit is %d (%s)"
	case MaxSessions:
		what = "there would be %d sessions, the limit is %d (%s)"
	}
	return fmt.Sprintf(what, e.Size, e.Max, e.Limit)
}

// Is makes a LimitError match ErrTooLarge, whatever is around it.
func (e *LimitError) Is(target error) bool { return target == ErrTooLarge }

// Check returns nil, or a *Error around a *LimitError if size is over a limit of
// max, where that is not zero.
func (l Limit) Check(op, name string, size, max int64) error {
	if max <= 0 || size <= max {
		return nil
	}
	hint := "shorten it, or raise the limit"
	switch l {
	case MaxSession:
		hint = "go on in a new session, or raise the limit"
	case MaxSessions:
		hint = "remove or move away sessions, or raise the limit"
	}
	return &Error{Op: op, Name: name, Kind: ErrTooLarge, Err: &LimitError{Limit: l, Size: size, Max: max}, Hint: hint}
}

// CheckLine returns nil, or why a store refuses a line: it is longer than max, where that is not
// zero, or could not be read back as one line.
func CheckLine(op, name string, line []byte, max int64) error {
	if err := MaxEntry.Check(op, name, int64(len(line)), max); err != nil {
		return err
	}
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		return &Error{Op: op, Name: name, Kind: ErrInvalid, Err: fmt.Errorf("the line has a newline at byte %d", i)}
	}
	return nil
}
