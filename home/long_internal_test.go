package home

import (
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// longConversation returns a home with a conversation of many turns, and a store that counts what
// is read of it.
func longConversation(t *testing.T) (*Home, *session.Session, *readStore) {
	t.Helper()
	h, err := Open(t.Context(), t.TempDir(), &Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	s, err := session.Create(t.Context(), h.store, session.Header{ID: "s"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	entries := make([]session.Entry, 5000)
	for i := range entries {
		role := []session.MessageRole{session.RoleUser, session.RoleAssistant}[i%2]
		entries[i] = session.Message(role, session.Text("a message"))
	}
	entries[2] = session.Message(session.RoleTool, session.ToolResult("c", strings.Repeat("much output ", 1<<16), false)) // in a blob
	if _, err := s.AppendAll(entries...); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Sessions.Get(t.Context(), SessionRequest{Session: "s"}); err != nil { // the index is up to date now
		t.Fatal(err)
	}
	counted := &readStore{Store: h.store}
	h.store = counted
	return h, s, counted
}

// Two branches that part near the end are compared without reading what they share.
func TestCompareReadsWhatIsNotShared(t *testing.T) {
	t.Parallel()
	h, s, counted := longConversation(t)
	fork := s.LeafID()
	add := func(text string) string {
		id, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text(text)})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	a := add("left")
	if err := s.Branch(fork); err != nil {
		t.Fatal(err)
	}
	b := add("right")
	for n := range 3 {
		counted.lines = 0
		got, err := h.Entries.Compare(t.Context(), CompareRequest{Session: "s", A: a, B: b})
		if err != nil || got.Ancestor != fork || got.Shared != 5000 || len(got.OnlyA) != 1 || len(got.OnlyB) != 1 || got.OnlyB[0].ID != b {
			t.Fatalf("%+v, %v", got, err)
		}
		if n > 0 && counted.lines > 100 || counted.blobs > 0 { // first it looks for where they part
			t.Errorf("it read %d lines and %d blobs", counted.lines, counted.blobs)
		}
	}
}

// The status of a long conversation is read from its end: no content of what came before.
func TestStatusReadsTheEnd(t *testing.T) {
	t.Parallel()
	h, s, counted := longConversation(t)
	for n := range 3 {
		counted.lines = 0
		got, err := h.Turns.Status(t.Context(), SessionRequest{Session: "s"})
		if err != nil || got.Unfinished != (n == 2) || len(got.Pending) > 0 || len(got.Queued) > 0 {
			t.Fatalf("%+v, %v", got, err)
		}
		// First it looks for what is queued, and each time whether another session continues this one.
		if n > 0 && counted.lines > 5100 || counted.blobs > 0 {
			t.Errorf("it read %d lines and %d blobs", counted.lines, counted.blobs)
		}
		if n == 1 {
			if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("and now?")}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
