package session_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// When an earlier session of a chain gets another entry, the entries of later ones get other numbers.
// A shape from before that still reads its own entries, and says that not only its end has changed.
func TestShapeOfAChainThatIsJoinedAgain(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"two", strings.Repeat("x", 136)} {
		st := chainOf(t, []string{"u:a/one"}, []string{"m:m/mark", "u:b/two", "u:c/two", "u:d/two"})
		s := openChain(t, st, "s0")
		old := mustGet(s.Shape())(t)
		first := closeWith(t, mustGet(session.Open(t.Context(), st, "s0", nil))(t))
		late := session.Message(session.RoleUser, session.Text(text))
		late.ID = "e"
		mustGet(first.AppendEntry(late))(t)
		mustGet(s.Refresh())(t)
		now := mustGet(s.Shape())(t)
		if now.Grew(old) && !slices.Equal(now.IDs()[:old.Len()], old.IDs()) {
			t.Errorf("%v is said to be %v with new entries at its end", now.IDs(), old.IDs())
		}
		for i, id := range old.IDs() {
			if p, err := old.Peek([]int32{int32(i)}, nil); err != nil || p[0].ID != id {
				t.Errorf("a look at %s: %v, %v", id, p, err)
			}
			for e, err := range old.Entries([]int32{int32(i)}) {
				if err != nil || e.ID != id {
					t.Errorf("%s is read as %q: %v", id, e.ID, err)
				}
			}
		}
	}
}
