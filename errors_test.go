package coppice_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/coppice-dev/coppice"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// TestKindsOfModels: a script can tell why a model did not answer, and none of the reasons
// is a mistake on the command line.
func TestKindsOfModels(t *testing.T) {
	for kind, want := range map[error]coppice.Kind{
		provider.ErrDenied:      coppice.KindDenied,
		provider.ErrLimited:     coppice.KindLimited,
		provider.ErrOverflow:    coppice.KindOverflow,
		provider.ErrUnavailable: coppice.KindUnavailable,
		provider.ErrBroken:      coppice.KindUnavailable,
		session.ErrInvalid:      coppice.KindRefused,
	} {
		err := fmt.Errorf("asking: %w", errors.Join(&provider.Error{Kind: kind, Provider: "p", Hint: "wait"}, session.ErrNothingToCompact))
		if got := coppice.Describe(err); got.Kind != want || got.Hint != "wait" {
			t.Errorf("%v: %+v, want %s", kind, got, want)
		}
	}
}
