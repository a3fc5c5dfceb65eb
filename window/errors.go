package window

import (
	"fmt"

	"github.com/coppice-dev/coppice/session"
)

// OverflowError means that what must be sent does not fit the window. It matches
// session.ErrTooLarge.
type OverflowError struct {
	// Category is System if the instructions alone are too large. Otherwise it is that of the
	// newest group, which is never left out and cannot be shortened any further.
	Category Category
	// EntryID is the largest entry among those that do not fit.
	EntryID string
	// Need is the size of the entries that must be sent, Budget the room for them.
	Need, Budget int
	Unit         Unit
}

// Unit is what a budget is measured in.
type Unit string

// The units.
const (
	Tokens Unit = "tokens"
	Bytes  Unit = "bytes"
)

// Over returns by how much the budget is exceeded.
func (e *OverflowError) Over() int { return e.Need - e.Budget }

func (e *OverflowError) Error() string {
	what := "the newest messages have"
	if e.Category == System {
		what = "the SYSTEM messages alone have"
	}
	return fmt.Sprintf("%s %d %s, %d more than the %d of the window (largest: entry %q)",
		what, e.Need, e.Unit, e.Over(), e.Budget, e.EntryID)
}

func (e *OverflowError) Unwrap() error { return session.ErrTooLarge }
