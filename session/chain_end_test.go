package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// rawChain makes a store of two sessions, of which s1 continues s0, from lines: each is a kind, an
// id, a parent ("" is none, "?" none named), and what a message says, or any other payload.
func rawChain(t *testing.T, s0, s1 [][4]string) *memory.Store {
	t.Helper()
	st := memory.New(nil)
	for n, entries := range [][][4]string{s0, s1} {
		header := fmt.Sprintf(`{"type":"session","id":"s%d","version":1,"timestamp":"2026-01-01T00:00:00.000Z"}`, n)
		if n == 1 {
			header = `{"type":"session","id":"s1","version":1,"parent_session":"s0","relation":"continuation","timestamp":"2026-01-01T00:00:00.000Z"}`
		}
		lines := [][]byte{[]byte(header)}
		for _, e := range entries {
			parent, payload := `"parent_id":"`+e[2]+`",`, e[3]
			switch e[2] {
			case "":
				parent = `"parent_id":null,`
			case "?":
				parent = ""
			}
			if e[0] == "message" {
				payload = `{"role":"user","content":"` + e[3] + `"}`
			}
			lines = append(lines, fmt.Appendf(nil, `{"type":%q,"id":%q,%s"timestamp":"2026-01-01T00:00:01.000Z",%q:%s}`, e[0], e[1], parent, e[0], payload))
		}
		mustDo(t, mustGet(st.Create(t.Context(), fmt.Sprintf("s%d", n), store.Lines(lines...)))(t).Close())
	}
	return st
}

// The apparent end of a chain is not always its end.
func TestChainsWhoseEndMisleads(t *testing.T) {
	t.Parallel()
	id := func(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }
	marker := func(id, parent string) [4]string {
		return [4]string{"continues", id, parent, `{"session":"s0","original":"s0"}`}
	}
	record := func(parent string) [4]string {
		return [4]string{"custom", id(100), parent, `{"custom_type":"coppice.continued_to","data":{"session":"s1","of":"s0"}}`}
	}
	long := strings.Repeat("long ", 4000)
	for name, c := range map[string]struct {
		s0, s1 [][4]string
		want   string
	}{
		"the first line again at the end of the session before": {
			[][4]string{{"message", id(1), "", "a"}, {"message", id(2), id(1), "b"}, {"message", id(3), id(2), "c"}, record(id(3)), {"message", id(1), "", "a"}},
			[][4]string{{"message", id(1), "", "a"}, marker(id(4), id(1)), {"message", id(5), id(4), long}, {"message", id(6), id(5), "d"}},
			"a b c " + long + " d",
		},
		"a branch back to a copy": {
			[][4]string{{"message", id(1), "", "a"}, {"message", id(2), "", "b"}, {"message", id(3), id(1), "c"}, {"message", id(4), id(2), "d"}, record(id(4))},
			[][4]string{{"message", id(3), "", "c"}, marker(id(5), id(3)), {"message", id(6), id(5), long}, {"leaf", id(7), id(3), `{"from_id":"` + id(6) + `"}`}, {"message", id(8), id(3), "e"}},
			"a c e",
		},
		"a line without a parent in the beginning": {
			[][4]string{{"message", id(1), "", "a"}, {"message", id(2), id(1), "b"}, record(id(2))},
			[][4]string{{"message", id(1), "", "a"}, {"message", id(3), "?", "moved"}, marker(id(4), id(1)), {"message", id(5), id(4), "c"}},
			"a b c",
		},
	} {
		s := openChain(t, rawChain(t, c.s0, c.s1), "s0")
		before := contextTexts(t, s)
		mustGet(s.Shape())(t) // which reads all of it
		if after := pathTexts(t, s); before != c.want || after != c.want {
			t.Errorf("%s: the context is %.80q, and by all of the log %.80q, want %.80q", name, before, after, c.want)
		}
		for e, err := range s.Entries() {
			mustDo(t, err)
			if e.ParentID == nil && e.ID != id(1) && e.ID != id(2) {
				t.Errorf("%s: entry %s is a root", name, e.ID)
			}
		}
	}
}

// Not every program writes each copy as the child of the one before.
func TestCopiesBesideEachOther(t *testing.T) {
	t.Parallel()
	st := rawChain(t, [][4]string{{"message", "x", "", "one"}, {"custom", "r", "x", `{"custom_type":"coppice.continued_to","data":{"session":"s1","of":"s0"}}`}}, [][4]string{
		{"message", "a", "", "be kind"},
		{"custom", "n", "a", `{"custom_type":"note","data":{}}`},
		{"message", "b", "a", "be brief"},
		{"continues", "m", "b", `{"session":"s0","original":"s0"}`},
		{"message", "c", "m", "two"},
	})
	if got := pathTexts(t, openChain(t, st, "s0")); got != "one be kind be brief two" {
		t.Errorf("the path is %q", got)
	}
}

// A session that was named and has nothing to do with a chain is not followed.
func TestAChainFollowsOnlyWhatContinuesIt(t *testing.T) {
	t.Parallel()
	st := chainOf(t, []string{"u:a/one"}, []string{"m:m/mark", "u:b/two"})
	other := closeWith(t, mustGet(session.Create(t.Context(), st, session.Header{ID: "other"}, nil))(t))
	mustGet(other.AppendMessage(session.RoleUser, []session.Content{session.Text("no")}))(t)
	s := openChain(t, st, "s0")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	last := closeWith(t, mustGet(session.Open(t.Context(), st, "s1", nil))(t))
	mustGet(last.AppendCustomEntry(session.CustomContinuedTo, map[string]any{"session": "other", "of": "s1"}))(t)
	end := mustGet(last.AppendMessage(session.RoleUser, []session.Content{session.Text("end")}))(t)
	for e, err := range s.Follow(ctx) {
		mustDo(t, err)
		if e.Message != nil && session.TextOf(e.Message.Content) == "no" {
			t.Error("the other session is followed")
		}
		if e.ID == end {
			break
		}
	}
}
