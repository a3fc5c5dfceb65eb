package window_test

import (
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// gardening has, in this order: two large results, a message with
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
	call("c2", "read")
	ids["second"] = say(t, s, session.RoleTool, session.ToolResult("c2", large, false))
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

func TestShortenResults(t *testing.T) {
	t.Parallel()
	s, ids := gardening(t)
	before := contextOf(t, s)
	size := func(c *session.Context) (n int) {
		for i := range c.Entries {
			for _, b := range c.Entries[i].Message.Content {
				if b.ToolResult != nil {
					n += len(b.ToolResult.Content)
				}
			}
		}
		return n
	}
	edits := window.ShortenResults(before, 6000)
	if _, err := s.AppendAll(edits...); err != nil {
		t.Fatal(err)
	}
	after := contextOf(t, s)
	if gained := size(before) - size(after); gained < 6000 || gained > 9000 {
		t.Errorf("%d bytes shorter, want about 6000", gained)
	}
	for name, id := range ids {
		if after.Edited[id] == "" || after.Edited[id] == before.Edited[id] {
			t.Errorf("the %s result is as it was", name)
		}
	}
	for i := range after.Entries {
		for _, b := range after.Entries[i].Message.Content {
			if b.ToolResult != nil && b.ToolResult.ToolUseID == "c3" && b.ToolResult.Content != "a.txt" {
				t.Errorf("a short result became %q", b.ToolResult.Content)
			}
			if b.ToolResult != nil && b.ToolResult.ToolUseID == "c1" && (len(b.ToolResult.Extra) == 0 || !strings.Contains(b.ToolResult.Content, "left out")) {
				t.Errorf("a long result became %+v", b.ToolResult)
			}
		}
	}
	for range 3 { // it never becomes nothing, and there is an end to it
		if edits = window.ShortenResults(contextOf(t, s), 1<<20); len(edits) > 0 {
			if _, err := s.AppendAll(edits...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if end := contextOf(t, s); len(edits) > 0 || size(end) < 1000 {
		t.Errorf("%d edits are left, and %d bytes", len(edits), size(end))
	}
}
