package app_test

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/app"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// orchard is a home with two conversations, the kitchen first in its list.
func orchard(t *testing.T) (h *home.Home, hazel, kitchen string) {
	t.Helper()
	h = newHome(t)
	hazel = talk(t, h, "Garden", "Which trees can be coppiced?", "Hazel and willow.", "And oak?", "Oak, too.")
	kitchen = talk(t, h, "Kitchen", "How long do eggs boil?", "Seven minutes.")
	return h, hazel, kitchen
}

// wide opens the UI on a screen that has room for two rooms.
func wide(t *testing.T, h *home.Home, change ...func(*app.Options)) *driver {
	t.Helper()
	d := drive(t, h, change...)
	d.size(160, 40)
	return d
}

func TestAConversationIsBesideAWideList(t *testing.T) {
	t.Parallel()
	h, id, _ := orchard(t)
	d := wide(t, h)
	d.sees(">now", "Seven minutes.", "2 of 2")
	d.press("down")
	d.loses("Seven minutes.")
	d.sees("Oak, too.", "4 of 4", "Kitchen")
	d.fits(160, 40)
	says(t, h, id, session.RoleUser, session.Text("And ash?"))
	d.sees("And ash?", "5 of 5") // it is followed there
	d.press("tab", "g")
	d.sees("1 of 5", "-now", "Kitchen", "fold tools") // the list stays, and the keys are those of the conversation
	d.press("esc")
	d.sees("1 of 5", ">now", "q quit") // and so does the conversation, where it was
	d.press("enter", "j")
	d.sees("2 of 5", "-now")
	d.press("tab")
	d.sees("2 of 5", ">now")
	d.size(100, 30)
	d.loses("2 of 5")
	d.press("enter")
	if screen := d.sees("Hazel and willow."); strings.Contains(screen, "Kitchen") {
		t.Errorf("a narrow screen has two rooms:\n%s", screen)
	}
}

// TestAHitIsBesideTheSearch shows the entry that a search found, and goes on looking there.
func TestAHitIsBesideTheSearch(t *testing.T) {
	t.Parallel()
	h, _, _ := orchard(t)
	d := wide(t, h)
	d.sees("Seven minutes.")
	d.press("/")
	d.types("oak")
	d.sees("2 hits", "Oak, too.", " of 4")
	d.press("enter")
	d.sees("-now", "n next")
}

// TestAConversationHasItsOriginBesideIt opens conversations from other rooms than the list.
func TestAConversationHasItsOriginBesideIt(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	forked(t, h)
	d := wide(t, h)
	d.sees("A willow.")
	d.press("x")
	d.sees("What is sent")
	d.press("G", "enter")
	d.sees("What is sent", "4 of 4", "fold tools")
	d.press("esc")
	d.loses("4 of 4")
}

// TestTheConversationFollowsTheTree goes from entry to entry, into a branch that is not live.
func TestTheConversationFollowsTheTree(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	forked(t, h)
	d := wide(t, h)
	d.sees("A willow.")
	d.press("t")
	d.sees("← leaf", "4 of 4", "row 6 of 6")
	d.press("g")
	d.sees("1 of 4", "row 1 of 6")
	d.press("j", "j", "j")
	d.until("the other branch", func(screen string) bool { return strings.Count(screen, "Wait a century.") == 2 })
	d.sees("4 of 4", "row 4 of 6")
	d.press("enter")
	d.sees("-│ ○ assistant", "4 of 4", "fold tools")
	d.press("esc", "G")
	d.until("the live branch", func(screen string) bool { return strings.Count(screen, "A willow.") == 2 })
}

// TestPanesHaveAMouse scrolls the conversation beside the list, and goes there with a click.
func TestPanesHaveAMouse(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := talk(t, h, "Long", "the beginning")
	for i := range 60 {
		says(t, h, id, session.RoleAssistant, session.Text(fmt.Sprintf("answer %d", i)))
	}
	d := wide(t, h)
	d.sees("answer 59", "61 of 61")
	for range 30 {
		d.handle(tea.MouseWheelMsg{X: 120, Y: 10, Button: tea.MouseWheelUp})
	}
	d.loses("answer 59")
	d.sees(">now", "q quit") // the keys are still those of the list
	d.click("answer 3")
	d.sees("-now", "fold tools")
	d.click("today")
	d.sees(">now")
}

// TestAConversationBesideTheListIsRemoved removes it elsewhere.
func TestAConversationBesideTheListIsRemoved(t *testing.T) {
	t.Parallel()
	h, _, kitchen := orchard(t)
	d := wide(t, h)
	d.sees("Seven minutes.")
	if _, err := h.Sessions.Remove(t.Context(), home.RemoveRequest{Session: kitchen}); err != nil {
		t.Fatal(err)
	}
	d.loses("Seven minutes.")
	d.sees("Oak, too.", "1 session")
	d.press("#")
	d.sees("there are no sessions yet")
	d.loses("Oak, too.")
}

// TestAConversationComesBackBesideTheList takes back its removal at once, and follows it again.
func TestAConversationComesBackBesideTheList(t *testing.T) {
	t.Parallel()
	h, _, kitchen := orchard(t)
	d := wide(t, h)
	d.sees("Seven minutes.")
	d.press("enter", "#")
	d.sees("moved to the trash: “Kitchen”")
	d.press("u")
	d.sees("undone: moved to the trash: “Kitchen”; it is in the list again", "2 sessions", "Kitchen")
	d.press("g")
	d.sees("Seven minutes.")
	says(t, h, kitchen, session.RoleUser, session.Text("And rice?"))
	d.sees("And rice?")
}
