package session_test

import (
	"errors"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// A tool result that is replaced by plain text stays the answer to its call.
func TestEditOfAToolResultByText(t *testing.T) {
	s, err := session.New(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ids, err := s.AppendAll(
		message(session.RoleUser, session.Text("list")),
		message(session.RoleAssistant, session.ToolUse("c1", "ls", nil)),
		message(session.RoleTool, session.ToolResult("c1", "a very long list", true)),
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendEntry(session.ContextEdit(ids[2], session.Text("three files"))); err != nil {
		t.Fatal(err)
	}
	c, err := s.Context(session.ContextOptions{})
	if err != nil || len(c.Entries) != 3 || len(c.Problems) > 0 {
		t.Fatalf("%d entries, problems %v, %v", len(c.Entries), c.Problems, err)
	}
	result := c.Entries[2].Message.Content[0].ToolResult
	if result == nil || result.ToolUseID != "c1" || result.Content != "three files" || !result.IsError {
		t.Errorf("the result became %+v", result)
	}
}

// Only the user's word ends a turn in which a call waits for its result: a
// notice of the system or of an extension must not let a compaction in between.
func TestOnlyTheUserEndsATurn(t *testing.T) {
	s, err := session.New(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ids, err := s.AppendAll(
		message(session.RoleUser, session.Text("build it")),
		message(session.RoleAssistant, session.ToolUse("c1", "make", nil)),
		message(session.RoleSystem, session.Text("the battery is low")),
	)
	if err != nil {
		t.Fatal(err)
	}
	var cut *session.CutError
	if _, err := s.AppendCompaction("…", ids[2], 0); !errors.As(err, &cut) {
		t.Errorf("a compaction between a call and its result: %v", err)
	}
	if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("never mind")}); err != nil {
		t.Fatal(err)
	}
	after := s.LeafID()
	if _, err := s.AppendCompaction("…", after, 0); !errors.As(err, &cut) {
		t.Errorf("the user spoke while the tool ran, and a compaction could cut off its result: %v", err)
	}
	if _, err := s.AppendMessage(session.RoleAssistant, []session.Content{session.Text("very well")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendCompaction("…", after, 0); err != nil {
		t.Errorf("after the model went on without the result: %v", err)
	}
}

func message(role session.MessageRole, content ...session.Content) session.Entry {
	return session.Message(role, content...)
}
