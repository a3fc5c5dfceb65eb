package cli

import (
	"errors"
	"strings"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
)

// The exit codes.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitPartial     = 3
	exitNotFound    = 10
	exitLocked      = 11
	exitCorrupt     = 12
	exitConflict    = 13
	exitInterrupted = 130
)

// usageError is the fault of whoever typed the command.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// errPartial says that some of several things were done. What was not is said
// before.
var errPartial = errors.New("not everything was done")

// exitCode is the one table from errors to exit codes.
func exitCode(err error) int {
	var usage usageError
	var query *index.QueryError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errPartial):
		return exitPartial
	case errors.As(err, &usage), errors.As(err, &query), isCobraUsage(err):
		return exitUsage
	case errors.Is(err, session.ErrConflict), errors.Is(err, session.ErrReplaced):
		return exitConflict
	case errors.Is(err, session.ErrLocked):
		return exitLocked
	case errors.Is(err, session.ErrCorrupt):
		return exitCorrupt
	case errors.Is(err, session.ErrNotExist):
		return exitNotFound
	case errors.Is(err, session.ErrInvalid):
		return exitUsage
	}
	return exitError
}

// isCobraUsage recognises the complaints of the flag parser, which have no type.
func isCobraUsage(err error) bool {
	text := err.Error()
	for _, begin := range []string{
		"unknown command", "unknown flag", "unknown shorthand", "flag needs an argument", "invalid argument",
		"accepts ", "requires at least", "requires at most", "required flag", "if any flags in the group", "at least one of the flags",
	} {
		if strings.HasPrefix(text, begin) {
			return true
		}
	}
	return false
}
