package app_test

import (
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

func TestTrashRestoreAndEmpty(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := talk(t, h, "Old oak", "Hello")
	talk(t, h, "Young willow", "Hello")
	d := drive(t, h)
	d.sees("Old oak", "Young willow")
	d.press("d")
	d.sees("The trash is empty.")
	d.press("r")
	d.sees("restore: the trash is empty")
	d.press("esc", "s")
	d.sees("pinned “")
	d.press("delete")
	d.sees("is pinned; s unpins it")
	d.press("u")
	d.sees("undone: pinned")
	if _, err := h.Sessions.Remove(t.Context(), home.RemoveRequest{Session: id}); err != nil {
		t.Fatal(err)
	}
	d.press("d")
	d.sees("Old oak", "1 session, ")
	d.press("enter")
	d.sees("restored “Old oak”", "The trash is empty.")
	isThere := func() bool {
		_, err := h.Sessions.Get(t.Context(), home.SessionRequest{Session: id})
		return err == nil
	}
	if !isThere() {
		t.Error("it was not restored")
	}
	d.press("u")
	d.sees("undone: restored “Old oak”", "1 session, ")
	if isThere() {
		t.Error("it was not taken back")
	}
	d.press("E")
	d.sees("delete 1 session, ", "for good?")
	if _, err := h.Sessions.Remove(t.Context(), home.RemoveRequest{Session: talk(t, h, "Late elm", "Hello")}); err != nil {
		t.Fatal(err)
	}
	d.press("y")
	d.sees("deleted 1 session", "Late elm") // nobody was asked about that one
	d.loses("Old oak")
}

// TestSessionRemovedElsewhere removes the session of a room as another program would.
func TestSessionRemovedElsewhere(t *testing.T) {
	t.Parallel()
	for _, open := range []struct{ key, sees string }{{"enter", "An oak."}, {"t", "← leaf"}} {
		t.Run(open.key, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			id := talk(t, h, "Garden", "What shall I plant?", "An oak.")
			d := drive(t, h)
			d.sees("Garden")
			d.press(open.key)
			d.sees(open.sees)
			if _, err := h.Sessions.Remove(t.Context(), home.RemoveRequest{Session: id}); err != nil {
				t.Fatal(err)
			}
			d.sees("This session was removed by another program.", "It is in the trash: Enter restores it.")
			d.press("enter")
			d.sees("restored", "An oak.", "2 of 2")
			if _, err := h.Sessions.Remove(t.Context(), home.RemoveRequest{Session: id}); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Upkeep.EmptyTrash(t.Context(), home.EmptyTrashRequest{All: true}); err != nil {
				t.Fatal(err)
			}
			d.sees("Garden › gone", "This session was removed by another program.", "It is not in the trash.")
			d.press("enter")
			d.sees("restore: it is not in the trash")
			d.press("esc")
			d.sees("there are no sessions yet")
		})
	}
}

// TestSessionRewrittenElsewhere redacts a session while it is shown, and goes on with it.
func TestSessionRewrittenElsewhere(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := talk(t, h, "Garden", "A porphyry bench.", "An oak.")
	d := drive(t, h)
	d.sees("Garden")
	d.press("enter")
	d.sees("A porphyry bench.", "An oak.")
	if _, err := h.Upkeep.Redact(t.Context(), home.RedactRequest{Sessions: []string{id}, Apply: true, Value: "porphyry"}); err != nil {
		t.Fatal(err)
	}
	d.loses("porphyry")
	says(t, h, id, session.RoleUser, session.Text("And a willow?"))
	d.sees("And a willow?")
}
