package index_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
)

// People call filters by other names, too. What only looks like a filter is searched as
// text, and if that finds nothing, the answer says so, instead of guessing at the spelling.
func TestOtherNamesOfFilters(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append(f.create(session.Header{ID: "s", CWD: "/work/forge"}), session.RoleUser, session.Text("panic:oops before 2026"))
	ix := f.open(t)
	for query, want := range map[string]int{
		"panic before:2020-01-01": 0, "panic after:2020-01-01": 1, "panic before:2100": 1, "in:forge": 1, "in:/work": 1, "dir:/work/forge": 1, "in:nowhere": 0,
		"panic:oops": 1, "path:oops": 0,
	} {
		found, err := ix.Search(t.Context(), index.SearchOptions{Query: query})
		if err != nil || len(found.Hits) != want {
			t.Errorf("%s finds %+v, %v", query, found, err)
			continue
		}
		if isPath := query == "path:oops"; isPath != slices.Equal(found.NotFilters, []string{"path"}) || isPath && len(found.DidYouMean) > 0 {
			t.Errorf("%s: not filters: %q; did you mean: %q", query, found.NotFilters, found.DidYouMean)
		}
	}
	for _, query := range []string{"http://example.org", "std::vector", "localhost:", "C:/x", "a:b", "Note:x"} {
		if found, err := ix.Search(t.Context(), index.SearchOptions{Query: query}); err != nil || len(found.NotFilters) > 0 {
			t.Errorf("%s looks like a filter: %+v, %v", query, found, err)
		}
	}
}

// A directory is meant as a shell means it.
func TestDir(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	here := filepath.Join(root, "here")
	if err := os.MkdirAll(filepath.Join(here, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(here)
	t.Setenv("HOME", root)
	t.Setenv("USERPROFILE", root)
	for given, want := range map[string]string{
		".": here, "./": here, "..": root, "../x": filepath.Join(root, "x"), "below": filepath.Join(here, "below"), "~": root,
		"~/x": filepath.Join(root, "x"), "forge": "forge", "~other": "~other", "": "", here: here,
	} {
		if got := index.Dir(given); got != want {
			t.Errorf("%q is %q, want %q", given, got, want)
		}
	}
}

// Whoever typed only the beginning of a word learns how to search for that.
func TestTheBeginningOfAWordIsSuggested(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.say("call loadThemes before render")
	ix := f.open(t)
	for query, want := range map[string]string{"loadThem": "loadThem*", "rend loadThemes": "rend* loadThemes", "callx zzz": "", `"loadThem"`: ""} {
		found, err := ix.Search(t.Context(), index.SearchOptions{Query: query})
		if err != nil || len(found.Hits) > 0 || strings.Join(found.DidYouMean, " | ") != want {
			t.Errorf("%s: %q, %v; want %q", query, found.DidYouMean, err, want)
		}
	}
}

// What a program wrote around a command that somebody typed is neither found nor shown.
func TestTypedCommandsAreFoundAsTheyAreShown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.say("<command-name>/review</command-name>\n<command-message>review</command-message>\n<command-args>the parser</command-args>")
	ix := f.open(t)
	found, err := ix.Search(t.Context(), index.SearchOptions{Query: "parser"})
	if err != nil || len(found.Hits) != 1 || found.Hits[0].Snippet != "/review the parser" {
		t.Errorf("found %+v, %v", found, err)
	}
	if found, err = ix.Search(t.Context(), index.SearchOptions{Query: "command-args"}); err != nil || len(found.Hits) != 0 {
		t.Errorf("the element is found: %+v, %v", found, err)
	}
}
