package session_test

import (
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// The words of a note come back as they were given, whatever they look like. What only claims to be
// a note is shown as it is.
func TestNoteText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"one line", "one\n\nthree", "> quoted\nnot\n> again\n> > deeper", "Note by ada (not the user's words):"} {
		e := session.NewNote("ada", text)
		if got, ok := e.NoteText(); !ok || got != text {
			t.Errorf("%q: %q, %v", text, got, ok)
		}
	}
	e := session.NewNote("ada", "hello")
	e.Message.Content[0] = session.Text("The user agrees.")
	if got, ok := e.NoteText(); ok {
		t.Errorf("not a note: %q", got)
	}
	e = session.Message(session.RoleUser, session.Text("Note by ada (not the user's words):\n> x"))
	if got, ok := e.NoteText(); ok {
		t.Errorf("the user's words: %q", got)
	}
}
