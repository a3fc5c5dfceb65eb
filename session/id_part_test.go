package session_test

import (
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// What tells ids of one minute apart is the part that is random.
func TestRandomPart(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"01a1bd98-2213-740d-8a5e-9c4fb71e03d2": "9c4fb71e03d2",
		"01a1bd98-2213-440d-8a5e-9c4fb71e03d2": "01a1bd98-2213-440d-8a5e-9c4fb71e03d2",
		"nightly":                              "nightly",
		"":                                     "",
	} {
		if got := session.RandomPart(id); got != want {
			t.Errorf("the random part of %q is %q, want %q", id, got, want)
		}
	}
}
