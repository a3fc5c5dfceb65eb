package session_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

func TestTagsAndPins(t *testing.T) {
	s, err := session.New(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if tags, err := s.Tags(); err != nil || tags != nil {
		t.Fatalf("a new session has tags %q, %v", tags, err)
	}
	for _, tags := range [][]string{{"go", "bug", "go", " "}, {"later"}} {
		if _, err := s.SetTags(tags...); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.SetTags("go", "bug", "go"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetPinned(true); err != nil {
		t.Fatal(err)
	}
	again, err := session.Load(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if tags, err := again.Tags(); err != nil || !slices.Equal(tags, []string{"bug", "go"}) {
		t.Errorf("tags %q, %v", tags, err)
	}
	if pinned, err := again.Pinned(); err != nil || !pinned {
		t.Errorf("pinned %v, %v", pinned, err)
	}
}

// Who labels a session from another program must not make the agent that works
// in it fail.
func TestRemarksAreNoConflict(t *testing.T) {
	agent, err := session.New(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	first, err := agent.AppendMessage(session.RoleUser, []session.Content{session.Text("hello")})
	if err != nil {
		t.Fatal(err)
	}
	other, err := session.Load(agent.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.SetLabel(first, "begin"); err != nil {
		t.Fatal(err)
	}
	if _, err := other.AppendSessionInfo("greeting"); err != nil {
		t.Fatal(err)
	}
	second, err := agent.AppendMessage(session.RoleAssistant, []session.Content{session.Text("hi")})
	if err != nil {
		t.Fatalf("a label got in the way: %v", err)
	}
	e, err := agent.Entry(second)
	if err != nil || *e.ParentID != first {
		t.Errorf("the answer follows %v, %v; want %s", e.ParentID, err, first)
	}
	again, err := session.Load(agent.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.LeafID() != second {
		t.Errorf("leaf %s, want %s", again.LeafID(), second)
	}
	if label, _ := again.Label(first); label != "begin" {
		t.Errorf("label %q", label)
	}

	// But a message of another writer is a conflict.
	if _, err := other.AppendMessage(session.RoleUser, []session.Content{session.Text("me too")}); !errors.Is(err, session.ErrConflict) {
		t.Errorf("a message in between: %v", err)
	}
}
