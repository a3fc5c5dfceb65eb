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

// Words of sessions that are gone do not crowd out one that is there.
func TestSuggestionsBehindGoneWords(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	gone := []string{f.say("swordfisa").ID(), f.say("swordfisb").ID(), f.say("swordfisc").ID()}
	f.say("swordfish")
	ix := f.open(t)
	if _, err := ix.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, id := range gone {
		if err := f.st.Remove(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ix.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	res, err := ix.Search(t.Context(), index.SearchOptions{Query: "swordfisz"})
	if err != nil || !slices.Equal(res.DidYouMean, []string{"swordfish"}) {
		t.Errorf("%q, %v", res.DidYouMean, err)
	}
}
