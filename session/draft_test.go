package session_test

import (
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// TestDrafts: the drafts that a path ends with are one text, and readers see them as a
// message until the model's message is there.
func TestDrafts(t *testing.T) {
	t.Parallel()
	s, err := session.Create(t.Context(), memory.New(nil), session.Header{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	must := func(id string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	draft := func(text string) {
		t.Helper()
		if err := s.Append(session.NewDraft(text)); err != nil {
			t.Fatal(err)
		}
	}
	say := func(role session.MessageRole, text string) string {
		return must(s.AppendMessage(role, []session.Content{session.Text(text)}))
	}
	wants := func(text, askedAt string, lines ...string) {
		t.Helper()
		got, at, err := session.DraftAt(s, s.LeafID())
		if got != text || at != askedAt || err != nil {
			t.Errorf("the draft is %q after %s, %v; want %q after %s", got, at, err, text, askedAt)
		}
		path, err := s.Forward("")
		if err != nil {
			t.Fatal(err)
		}
		var shown []string
		for _, e := range session.ShowUnsaid(path) {
			if e.Message != nil {
				shown = append(shown, e.Message.StopReason+": "+session.TextOf(e.Message.Content))
			}
		}
		if len(shown) != len(lines) {
			t.Fatalf("shown is %q, want %q", shown, lines)
		}
		for i := range lines {
			if shown[i] != lines[i] {
				t.Errorf("shown is %q, want %q", shown[i], lines[i])
			}
		}
	}
	wants("", "")
	asked := say(session.RoleUser, "one")
	wants("", asked, ": one")
	draft("half ")
	draft("an answer")
	must(s.AppendEntry(session.Tags("x")))
	wants("half an answer", asked, ": one", "draft: half an answer")
	again := say(session.RoleUser, "two")
	wants("", again, ": one", "draft: half an answer", ": two")
	draft("a whole ")
	whole := say(session.RoleAssistant, "a whole answer")
	wants("", whole, ": one", "draft: half an answer", ": two", ": a whole answer")
}
