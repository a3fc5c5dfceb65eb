// Package indextest decides whether a room.Room keeps an index as package index needs it. An
// implementation runs the whole suite from one test:
//
//	func TestRoom(t *testing.T) {
//		indextest.Run(t, func(t *testing.T) indextest.Place {
//			path := filepath.Join(t.TempDir(), "tables")
//			return func(ctx context.Context) (room.Room, error) { return myroom.Open(ctx, path) }
//		})
//	}
//
// Run it with the race detector: a part of the suite is about several programs at once. The suite
// asks what users ask, on sessions that it writes itself. What another process does to a room, a
// crash or a full disk, it does not test.
package indextest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/index/room"
)

// Place opens the room in one place. Each call is another program that opens it.
type Place func(ctx context.Context) (room.Room, error)

// Run checks the rooms that a place returns. It calls at for a new, empty place in each subtest.
func Run(t *testing.T, at func(t *testing.T) Place) {
	t.Run("Answers", func(t *testing.T) { runAnswers(t, at(t)) })
	for _, c := range lifeChecks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, newSessionStore(t), at(t))
		})
	}
}

// runAnswers asks an index of one world everything: one that caught up after each session, and,
// as another program, one that was rebuilt.
func runAnswers(t *testing.T, place Place) {
	t.Parallel()
	d := newSessionStore(t)
	ix := d.open(t, place)
	w := newWorld(d, func() { d.catchUp(t, ix) })
	d.catchUp(t, ix)
	t.Run("Grown", func(t *testing.T) { askAll(t, w, ix) })
	other := d.open(t, place)
	if report, err := other.Rebuild(t.Context(), nil); err != nil || !report.Rebuilt {
		t.Fatalf("rebuild: %+v, %v", report, err)
	}
	t.Run("Rebuilt", func(t *testing.T) { askAll(t, w, other) })
	t.Run("RebuiltByAnother", func(t *testing.T) { checkRows(t, w, ix) })
}

func askAll(t *testing.T, w *world, ix *index.Index) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, w *world, ix *index.Index)
	}{
		{"Orders", checkOrders},
		{"ListFilters", checkListFilters},
		{"Cursors", checkCursors},
		{"Rows", checkRows},
		{"Find", checkFind},
		{"Names", checkNames},
		{"Chains", checkChains},
		{"Tags", checkTags},
		{"FilterValues", checkFilterValues},
		{"UnknownFilters", checkUnknownFilters},
		{"Search", checkSearch},
		{"SearchOrder", checkSearchOrder},
		{"Suggestions", checkSuggestions},
		{"Queries", checkQueries},
		{"Stats", checkStats},
		{"Topics", checkTopics},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, w, ix) })
	}
}

// must returns a function that fails the test if an error comes with a value.
func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// want compares an answer.
func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// sorted returns words in order, each once, as one text.
func sorted(words []string) string {
	words = slices.Clone(words)
	slices.Sort(words)
	return strings.Join(slices.Compact(words), " ")
}
