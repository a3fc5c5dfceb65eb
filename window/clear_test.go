package window_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// gardening has, in this order: a large result, a protected one, a message with
// a small and a large result, one that was edited, an unanswered call, and a
// recent large result.
func gardening(t *testing.T) (*session.Session, map[string]string) {
	t.Helper()
	s := newSession(t)
	ids := make(map[string]string)
	call := func(id, tool string) { say(t, s, session.RoleAssistant, session.ToolUse(id, tool, nil)) }
	large := strings.Repeat("x", 3000)
	say(t, s, session.RoleUser, session.Text("Look around."))
	call("c1", "read")
	first := session.ToolResult("c1", large, true)
	first.ToolResult.Extra = session.Fields{{Name: "kept", Value: []byte("true")}}
	ids["large"] = say(t, s, session.RoleTool, first)
	call("c2", "memory")
	ids["protected"] = say(t, s, session.RoleTool, session.ToolResult("c2", large, false))
	say(t, s, session.RoleAssistant, session.ToolUse("c3", "ls", nil), session.ToolUse("c4", "read", nil))
	ids["both"] = say(t, s, session.RoleTool, session.ToolResult("c3", "a.txt", false), session.ToolResult("c4", large, false))
	call("c5", "read")
	ids["edited"] = say(t, s, session.RoleTool, session.ToolResult("c5", large, false))
	if _, err := s.AppendEntry(session.ContextEdit(ids["edited"], session.ToolResult("c5", large[:2000], false))); err != nil {
		t.Fatal(err)
	}
	call("c6", "never")
	say(t, s, session.RoleUser, session.Text("Go on."))
	call("c7", "read")
	ids["recent"] = say(t, s, session.RoleTool, session.ToolResult("c7", large, false))
	return s, ids
}

var clearing = window.ClearOptions{Counter: letters{}, KeepTokens: 4000, MinTokens: 1000, AtLeast: 2000, Protect: []string{"memory"}}

func TestClear(t *testing.T) {
	t.Parallel()
	s, ids := gardening(t)
	before := contextOf(t, s)
	whole := snapshot(t, before.Entries)

	plan, err := window.PlanClear(before, clearing)
	if err != nil || len(plan) != 2 || plan[0].EntryID != ids["large"] || plan[1].EntryID != ids["both"] || plan[0].EditID != "" {
		t.Fatalf("plan %+v, error %v", plan, err)
	}
	if leaf := s.LeafID(); leaf != before.Leaf {
		t.Fatal("planning wrote something")
	}
	cleared, err := window.Clear(s, clearing)
	if err != nil || len(cleared) != 2 {
		t.Fatalf("cleared %+v, error %v", cleared, err)
	}
	after := contextOf(t, s)
	results := make(map[string]*session.ToolResultContent)
	for _, e := range after.Entries {
		for _, b := range e.Message.Content {
			if b.ToolResult != nil {
				results[b.ToolResult.ToolUseID] = b.ToolResult
			}
		}
	}
	if got := results["c1"]; got.Content != "[result of read, about 3006 tokens, cleared; call it again if needed]" || !got.IsError || len(got.Extra) != 1 {
		t.Errorf("the large result became %+v", got)
	}
	if results["c3"].Content != "a.txt" || len(results["c4"].Content) > 100 {
		t.Errorf("of both, the small one is %q, the large one has %d bytes", results["c3"].Content, len(results["c4"].Content))
	}
	for _, id := range []string{"c2", "c5", "c7"} {
		if len(results[id].Content) < 2000 {
			t.Errorf("the result of %s was cleared", id)
		}
	}
	gained := 0
	for _, c := range cleared {
		gained += c.Tokens
	}
	if size := len(textOf(before.Entries)) - len(textOf(after.Entries)); size != gained {
		t.Errorf("gained %d, the context is smaller by %d", gained, size)
	}

	// Again there is nothing to do; and it can be taken back.
	if again, err := window.Clear(s, clearing); err != nil || again != nil {
		t.Errorf("a second time: %+v, error %v", again, err)
	}
	if err := window.Restore(s, cleared); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(whole, snapshot(t, contextOf(t, s).Entries)) {
		t.Error("the context is not what it was")
	}
}

// Little gain is not worth a cold cache.
func TestClearInBatches(t *testing.T) {
	t.Parallel()
	s, _ := gardening(t)
	leaf := s.LeafID()
	o := clearing
	o.AtLeast = 10_000
	if cleared, err := window.Clear(s, o); err != nil || cleared != nil || s.LeafID() != leaf {
		t.Errorf("cleared %+v, error %v", cleared, err)
	}
	if cleared, err := window.Clear(s, window.ClearOptions{}); err != nil || cleared != nil {
		t.Errorf("with the defaults: cleared %+v, error %v", cleared, err)
	}
}

func TestClearRefuses(t *testing.T) {
	t.Parallel()
	s, _ := gardening(t)
	if _, err := window.Clear(s, window.ClearOptions{KeepTokens: -1}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("error is %v", err)
	}
	if err := window.Restore(s, []window.Cleared{{EntryID: "x"}}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("error is %v", err)
	}
	if err := window.Restore(s, nil); err != nil {
		t.Errorf("error is %v", err)
	}
	cleared, err := window.Clear(s, clearing)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := window.Clear(s, clearing); !errors.Is(err, session.ErrClosed) {
		t.Errorf("error is %v", err)
	}
	if err := window.Restore(s, cleared); !errors.Is(err, session.ErrClosed) {
		t.Errorf("error is %v", err)
	}
}

// A result whose call nobody knows, and one that stands apart from its message
// because it came late.
func TestClearOddResults(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 3000)
	b := &builder{}
	b.message(session.RoleTool, session.ToolResult("c0", large, false))
	b.message(session.RoleTool, session.ToolResult("c1", large, false))
	b.message(session.RoleTool, session.ToolResult("c2", large, false))
	b.entries[2].ID = b.entries[1].ID
	b.entries = append(b.entries, session.Entry{Type: session.TypeCompaction, ID: "s", Compaction: &session.CompactionEntry{Summary: "s"}})
	o := clearing
	o.KeepTokens = 1
	plan, err := window.PlanClear(b.context(), o)
	if err != nil || len(plan) != 1 || plan[0].EntryID != b.entries[0].ID {
		t.Errorf("plan %+v, error %v", plan, err)
	}
}
