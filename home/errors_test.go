package home_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// TestKindsOfModels: a script can tell why a model did not answer, and none of the reasons
// is a mistake on the command line.
func TestKindsOfModels(t *testing.T) {
	t.Parallel()
	for kind, want := range map[error]home.Kind{
		provider.ErrDenied:      home.KindDenied,
		provider.ErrLimited:     home.KindLimited,
		provider.ErrOverflow:    home.KindOverflow,
		provider.ErrUnavailable: home.KindUnavailable,
		provider.ErrBroken:      home.KindUnavailable,
		session.ErrInvalid:      home.KindRefused,
	} {
		err := fmt.Errorf("asking: %w", errors.Join(&provider.Error{Kind: kind, Provider: "p", Hint: "wait"}, session.ErrNothingToCompact))
		if got := home.Describe(err); got.Kind != want || got.Hint != "wait" {
			t.Errorf("%v: %+v, want %s", kind, got, want)
		}
	}
}

// What the system refuses comes with what to do about it, wherever it was met.
func TestHintsOfTheSystem(t *testing.T) {
	t.Parallel()
	for cause, want := range map[error]string{
		syscall.EMFILE: "ulimit", syscall.ENFILE: "ulimit", syscall.ENOLCK: "cannot lock", syscall.ENOTSUP: "cannot lock",
	} {
		err := &session.Error{Op: "open index", Path: "p", Err: fmt.Errorf("x: %w", &fs.PathError{Op: "lock", Path: "p", Err: cause})}
		if got := home.Describe(err); !strings.Contains(got.Hint, want) {
			t.Errorf("%v: the hint is %q", cause, got.Hint)
		}
	}
}
