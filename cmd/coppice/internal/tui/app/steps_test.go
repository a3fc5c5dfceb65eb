package app_test

import (
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
)

// TestTheLogUndoesAChosenStep undoes a step that was not the last one, and says why another cannot be
// undone yet.
func TestTheLogUndoesAChosenStep(t *testing.T) {
	t.Parallel()
	h, id, _ := orchard(t)
	d := drive(t, h)
	d.sees("Garden", "Kitchen")
	d.press("L")
	d.sees("Nothing was done yet.")
	d.press("enter")
	d.sees("undo this one: nothing was done yet")
	d.press("esc", "down")
	for _, name := range []string{"Orchard", "Forest"} {
		d.press("R")
		d.sees("rename to ")
		d.until("the name", func(screen string) bool { return !strings.Contains(screen, "rename to \n") })
		d.press("ctrl+u")
		d.types(name)
		d.press("enter")
		d.sees("to “" + name + "”")
	}
	d.press("s")
	d.sees("pinned “Forest”")
	d.press("L")
	screen := d.sees("renamed “Garden” to “Orchard”  – undo “renamed “Orchard” to “Forest”” first", "pinned “Forest”")
	if strings.Index(screen, "pinned") > strings.Index(screen, "Garden") {
		t.Errorf("the latest is not the first:\n%s", screen)
	}
	d.press("G", "enter")
	d.sees("undo this one: undo “renamed “Orchard” to “Forest”” first")
	d.press("k", "enter")
	d.sees("undone: the name “Forest”; it is called “Orchard” again", "undone: renamed “Orchard” to “Forest”")
	title := func() string {
		t.Helper()
		info, err := h.Sessions.Get(t.Context(), home.SessionRequest{Session: id})
		if err != nil {
			t.Fatal(err)
		}
		return info.Title
	}
	if title() != "Orchard" {
		t.Error(title())
	}
	d.press("enter")
	d.sees("undo this one: it was undone")
	d.press("G", "enter")
	d.sees("it is called “Garden” again")
	d.press("u") // what is left
	d.sees("undone: pinned “Forest”")
	d.press("u")
	d.sees("undo: nothing was done here that can be undone")
}

// TestTheLogSaysWhatCannotBeUndone lists that, too.
func TestTheLogSaysWhatCannotBeUndone(t *testing.T) {
	t.Parallel()
	h, _, _ := orchard(t)
	d := drive(t, h)
	d.sees("Garden", "Kitchen")
	d.press("#")
	d.sees("moved to the trash: “Kitchen”")
	d.press("d")
	d.sees("1 session, ")
	d.press("E", "y")
	d.until("an answer", func(screen string) bool {
		if strings.Contains(screen, "for good?") {
			d.press("y")
		}
		return strings.Contains(screen, "deleted 1 session")
	})
	d.press("u") // the trash does not have it any more
	d.sees("no such session in the trash")
	d.press("esc", "L")
	d.sees("deleted 1 session  – they are gone for good", "moved to the trash: “Kitchen”  – it was tried: ")
}

// TestUndoSaysWhatHoldsNow takes back what moved the end of a conversation.
func TestUndoSaysWhatHoldsNow(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := forked(t, h)
	was := leaf(t, h, id)
	d := seeTree(t, h)
	d.press("g", "b")
	screen := d.sees("moved: the conversation continues from ")
	to := strings.Fields(screen[strings.Index(screen, "continues from ")+len("continues from "):])[0]
	d.press("u")
	d.sees("undone: the move to "+to+"; the conversation continues from ", " again", "A willow.  ← leaf")
	if leaf(t, h, id) != was {
		t.Error("it was not taken back")
	}
	d.press("L")
	d.sees("undone: moved: the conversation continues from " + to)
}
