package render_test

import (
	"testing"

	"github.com/coppice-dev/coppice/render"
)

// An id of ours is as good as whole when half of it is there; what others made is not.
func TestShortID(t *testing.T) {
	for id, want := range map[string]string{
		"0197ab12-3456-7abc-8def-0123456789ab": "0197ab12-3456-7abc",
		"0197ab12-3456-4abc-8def-0123456789ab": "0197ab12-3456-4abc-8def-0123456789ab",
		"5357f8ac-0f14-8d98-9c29-53c11466b940": "5357f8ac",
		"telegram-7":                           "telegram-7",
		"":                                     "",
	} {
		if got := render.ShortID(id); got != want {
			t.Errorf("%q became %q", id, got)
		}
	}
}
