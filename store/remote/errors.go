package remote

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/coppice-dev/coppice/store"
)

// errGone means that the server does not know the handle or the lease, or no longer does.
var errGone = errors.New("the server has forgotten it")

// names are the errors that cross the wire, each by its name.
var names = []struct {
	name string
	err  error
	kind bool // it is the kind of a store.Error, not its cause
}{
	{"unknown", store.ErrUnknown, true}, // before what may have caused it
	{"invalid", store.ErrInvalid, true},
	{"too_large", store.ErrTooLarge, true},
	{"not_exist", store.ErrNotExist, true},
	{"exist", store.ErrExist, true},
	{"corrupt", store.ErrCorrupt, true},
	{"conflict", store.ErrConflict, true},
	{"replaced", store.ErrReplaced, true},
	{"locked", store.ErrLocked, true},
	{"closed", store.ErrClosed, true},
	{"gone", errGone, false},
	{"canceled", context.Canceled, false},
	{"deadline", context.DeadlineExceeded, false},
	{"unsupported", errors.ErrUnsupported, false},
	{"permission", fs.ErrPermission, false},
	{"no_space", syscall.ENOSPC, false},
	{"read_only", syscall.EROFS, false},
}

// failure is an error on the wire: what a store.Error says, without paths.
type failure struct {
	Op     string            `json:"op,omitempty"`
	Name   string            `json:"name,omitempty"`
	Offset *int64            `json:"offset,omitempty"`
	Is     []string          `json:"is,omitempty"` // see names
	Cause  string            `json:"cause,omitempty"`
	Hint   string            `json:"hint,omitempty"`
	Limit  *store.LimitError `json:"limit,omitempty"`
}

// describe turns an error of a store into a failure, without the store's paths.
func describe(err error, op, where string) *failure {
	f := &failure{Op: op}
	for _, n := range names {
		if errors.Is(err, n.err) {
			f.Is = append(f.Is, n.name)
		}
	}
	cause := err
	if e, ok := errors.AsType[*store.Error](err); ok {
		f.Op, f.Name, f.Hint, cause = e.Op, e.Name, e.Hint, e.Err
		if e.At {
			f.Offset = &e.Offset
		}
	}
	if limit, ok := errors.AsType[*store.LimitError](err); ok {
		f.Limit = limit
	} else {
		f.Cause = causeOf(cause)
	}
	if !isPlain(f.Cause, where) {
		f.Cause = ""
	}
	if !isPlain(f.Hint, where) {
		f.Hint = ""
	}
	return f
}

// causeOf returns the cause without paths: other machines must not see them.
func causeOf(err error) string {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err.Error()
	}
	if e, ok := errors.AsType[*store.Error](err); ok { // a nested error may have a path
		if e.Err != nil {
			return causeOf(e.Err)
		}
		return e.Kind.Error()
	}
	for _, n := range names {
		if err == n.err {
			return "" // the name says it all
		}
	}
	return err.Error()
}

// err returns the error that a failure describes.
func (f *failure) err() error {
	e := &store.Error{Op: f.Op, Name: f.Name, Hint: f.Hint}
	if e.Op == "" {
		e.Op = "use the store"
	}
	if f.Offset != nil {
		e.Offset, e.At = *f.Offset, true
	}
	c := &cause{text: f.Cause}
	for _, n := range names {
		switch {
		case !slices.Contains(f.Is, n.name):
		case n.kind && e.Kind == nil:
			e.Kind = n.err
		default:
			c.is = append(c.is, n.err)
		}
	}
	switch {
	case f.Limit != nil:
		e.Err = f.Limit
	case c.text != "" || len(c.is) > 0:
		e.Err = c
	case e.Kind == nil:
		e.Err = errors.New("the server does not say why")
	}
	return e
}

// cause is the cause of an error on another machine.
type cause struct {
	text string
	is   []error
}

func (c *cause) Error() string {
	if c.text == "" {
		return c.is[0].Error()
	}
	return c.text
}

func (c *cause) Unwrap() []error { return c.is }
