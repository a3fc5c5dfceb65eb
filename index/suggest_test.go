package index_test

import (
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/index"
)

func TestNearestIsWhatSomebodyMeant(t *testing.T) {
	t.Parallel()
	known := []string{"ls", "show", "search", "stats", "tag", "trash", "archive", "unarchive", "Bash"}
	for given, want := range map[string][]string{
		"shwo":    {"show"},
		"sl":      {"ls"},
		"serach":  {"search"},
		"arch":    {"archive"}, // its beginning
		"bash":    {"Bash"},
		"TRASH":   {"trash", "Bash"},
		"nothing": nil,
		"":        nil,
		"x":       nil,
	} {
		if got := index.Nearest(given, known); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}
