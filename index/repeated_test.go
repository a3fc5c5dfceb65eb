package index_test

import (
	"testing"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
)

// TestRepeatedByCompaction: a message that a compaction repeats is sent again, but
// nobody said it again. It is counted and found once.
func TestRepeatedByCompaction(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := f.say("paint the lighthouse")
	f.append(s, session.RoleAssistant, session.ToolUse("c", "brush", nil))
	f.append(s, session.RoleTool, session.ToolResult("c", "done", false))
	if _, err := s.AppendCompaction("painted", "", 0); err != nil {
		t.Fatal(err)
	}
	again := &session.MessageEntry{
		Role: session.RoleUser, Content: []session.Content{session.Text("paint the lighthouse")},
		Metadata: map[string]any{"injected": session.RepeatedByCompaction},
	}
	if _, err := s.AppendAll(session.Entry{Type: session.TypeMessage, Message: again}); err != nil {
		t.Fatal(err)
	}
	f.append(s, session.RoleAssistant, session.Text("All white."))

	ix := f.open(t)
	info := must[index.Session](t)(ix.Get(t.Context(), s.ID()))
	if info.Messages != 4 {
		t.Errorf("the list has %d messages, want 4", info.Messages)
	}
	if a := must[*index.Activity](t)(ix.Activity(t.Context(), index.StatsOptions{})); a.Messages != 4 {
		t.Errorf("the statistics have %d messages, want 4", a.Messages)
	}
	if hits := search(t, ix, index.SearchOptions{Query: "lighthouse"}); len(hits) != 1 {
		t.Errorf("the prompt was found %d times, want once", len(hits))
	}
}
