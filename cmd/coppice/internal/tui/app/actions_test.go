package app_test

import (
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
)

// TestMarksOfSessionsThatAreGone forgets the mark of a session that another program removes.
func TestMarksOfSessionsThatAreGone(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	talk(t, h, "First", "hello")
	id := talk(t, h, "Second", "hello")
	d := drive(t, h)
	d.sees("First", "Second")
	d.press("m")
	d.sees("1 marked")
	if _, err := h.Sessions.Remove(t.Context(), home.RemoveRequest{Session: id}); err != nil {
		t.Fatal(err)
	}
	d.loses("marked")
	d.press("#") // the trash, without a key for it
	d.sees("moved to the trash: “First”")
}

// TestUndoLeavesTheRoomOfWhatItRemoves takes back a fork in the room of the fork.
func TestUndoLeavesTheRoomOfWhatItRemoves(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	talk(t, h, "Garden", "Which trees?", "Hazel.")
	d := drive(t, h)
	d.sees("Garden")
	d.press("enter")
	d.sees("Garden", "Hazel.")
	d.press("g", "f")
	d.sees("this is the copy", "Garden › Garden")
	d.press("u")
	screen := d.sees("undone: forked")
	if strings.Contains(screen, "Garden › Garden") || !strings.Contains(screen, "sessions › Garden") {
		t.Errorf("it is not where it came from:\n%s", screen)
	}
	d.press("delete")
	d.sees("moved to the trash: “Garden”", "there are no sessions yet")
}

// TestErrorsSayTheirHintOnce shows an error that has a hint.
func TestErrorsSayTheirHintOnce(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := talk(t, h, "Garden", "Which trees?", "Hazel.")
	d := drive(t, h)
	d.sees("Garden")
	if _, err := h.Sessions.Remove(t.Context(), home.RemoveRequest{Session: id}); err != nil {
		t.Fatal(err)
	}
	d.press("s")
	screen := d.sees("it is in the trash")
	if strings.Count(screen, "restore") != 1 {
		t.Errorf("the hint is not there once:\n%s", screen)
	}
}

func TestHelpNamesKeys(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	talk(t, h, "Garden", "Which trees?", "Hazel.")
	d := drive(t, h)
	d.sees("Garden")
	d.press("$", "?")
	d.sees("Shift-Tab", "Ctrl-B")
}
