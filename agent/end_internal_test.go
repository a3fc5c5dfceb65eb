package agent

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// The end of a conversation says the same as all of it about what is left to do, whatever was said.
func TestTheEndSaysWhatTheWholeContextSays(t *testing.T) {
	t.Parallel()
	short := 0
	r := soak.Rand(t)
	for n := range 400 {
		s, err := session.Create(t.Context(), memory.New(nil), session.Header{ID: "s"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 + r.IntN(24) {
			e := anyEntry(r, s)
			if _, err := s.AppendEntry(e); err != nil && e.Compaction == nil { // not every place can be cut
				t.Fatal(err)
			}
		}
		a, err := New(s, Options{Model: &offline.Model{}})
		if err != nil {
			t.Fatal(err)
		}
		end, err := a.keeper.end()
		if err != nil {
			t.Fatal(err)
		}
		whole, err := a.keeper.whole()
		if err != nil {
			t.Fatal(err)
		}
		if len(end) < len(whole) {
			short++
		}
		if diff := cmp.Diff(callsIn(whole), callsIn(end)); diff != "" {
			t.Errorf("%d: calls (-whole +end):\n%s", n, diff)
		}
		last, err := a.keeper.lastMessage()
		if want := lastMessageIn(whole); err != nil || (last == nil) != (want == nil) || last != nil && last.ID != want.ID {
			t.Errorf("%d: the last message is %+v, %v; want %+v", n, last, err, want)
		}
	}
	if short < 50 {
		t.Errorf("only %d of the ends were shorter", short)
	}
}

func callsIn(entries []session.Entry) (calls []string) {
	for _, p := range pendingIn("s", entries) {
		calls = append(calls, fmt.Sprint(p.Entry, p.ID, p.superseded))
	}
	return calls
}

// anyEntry is something that may come next in a conversation, however odd.
func anyEntry(r *rand.Rand, s *session.Session) session.Entry {
	id := func() string { return fmt.Sprint("c", r.IntN(4)) }
	switch r.IntN(16) {
	case 0, 1, 2:
		return session.Message(session.RoleUser, session.Text("do it"))
	case 3, 4:
		return session.Message(session.RoleAssistant, session.Text("done"))
	case 5, 6, 7:
		e := session.Message(session.RoleAssistant, session.ToolUse(id(), "read", map[string]any{"path": "a"}))
		if r.IntN(2) == 0 {
			e.Message.ResponseID = fmt.Sprint("r", r.IntN(2))
		}
		return e
	case 8, 9, 10, 11:
		return session.Message(session.RoleTool, session.ToolResult(id(), "ok", false))
	case 12:
		return session.Message(session.RoleSystem, session.Text("be brief"))
	case 13:
		return session.Name("a name")
	case 14:
		return session.Message(session.RoleBashExecution, session.Text("ls"))
	}
	if r.IntN(3) > 0 {
		return session.Tags("a")
	}
	return session.Entry{Type: session.TypeCompaction, Compaction: &session.CompactionEntry{Summary: "before", FirstKeptEntryID: s.LeafID()}}
}
