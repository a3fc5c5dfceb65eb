package app_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/app"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// forked makes a conversation with two branches after its second entry. The willow is live.
func forked(t *testing.T, h *home.Home) (id string) {
	t.Helper()
	id = talk(t, h, "Garden", "What shall I plant?", "An oak.", "And then?", "Wait a century.")
	branch(t, h, id, pathOf(t, h, id)[1])
	says(t, h, id, session.RoleUser, session.Text("No, something quick."))
	says(t, h, id, session.RoleAssistant, session.Text("A willow."))
	return id
}

func seeTree(t *testing.T, h *home.Home, change ...func(*app.Options)) *driver {
	t.Helper()
	d := drive(t, h, change...)
	d.sees("Garden")
	d.press("t")
	d.sees("A willow.")
	return d
}

// leaf returns where a conversation continues.
func leaf(t *testing.T, h *home.Home, id string) string {
	t.Helper()
	path := pathOf(t, h, id)
	return path[len(path)-1]
}

func TestTreeShowsAllBranches(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	forked(t, h)
	d := seeTree(t, h)
	d.sees("sessions › Garden › tree")
	d.sees("● assistant   An oak.", "├─○ user        And then?", "│ ○ assistant   Wait a century.", "◉ assistant   A willow.  ← leaf", "row 6 of 6")
	d.press("left")
	d.sees("2 branches begin here", "row 2 of 6")
	d.press("right")
	d.sees("row 6 of 6")
	d.press("g", "j", "j", "j", "enter") // into the branch that is not live
	d.sees("Wait a century.", "4 of 4")
	d.press("esc")
	d.sees("← leaf", "row 4 of 6")
}

func TestBranchLabelAndUndo(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := forked(t, h)
	was := leaf(t, h, id)
	d := seeTree(t, h)
	d.press("g", "j", "j", "j", "b")
	d.sees("Wait a century.  ← leaf", "the conversation continues from")
	if path := pathOf(t, h, id); len(path) != 4 || slices.Contains(path, was) {
		t.Errorf("the conversation did not move: %v", path)
	}
	d.press("u")
	d.sees("A willow.  ← leaf", "undone")
	if leaf(t, h, id) != was {
		t.Error("it was not taken back")
	}
	d.press("G", "l")
	d.types("quick one")
	d.press("enter")
	d.sees("[quick one]", "labelled quick one")
	d.press("enter")
	d.sees("assistant", "[quick one]", "A willow.")
	d.press("esc", "u")
	d.loses("[quick one]")
}

func TestForkFromAnEntry(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	forked(t, h)
	d := seeTree(t, h)
	d.press("g", "j", "f")
	d.sees("forked from", "2 of 2", "An oak.")
	count := func() int {
		all, err := h.Sessions.List(t.Context(), home.ListRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return len(all.Sessions)
	}
	if count() != 2 {
		t.Errorf("%d sessions", count())
	}
	d.press("esc", "u")
	d.sees("undone: forked")
	if count() != 1 {
		t.Errorf("%d sessions after it was taken back", count())
	}
}

// TestContinueFromAnEntry looks at what is started.
func TestContinueFromAnEntry(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := forked(t, h)
	var ran [][]string
	d := seeTree(t, h, func(o *app.Options) {
		o.Program = func(args ...string) *exec.Cmd {
			ran = append(ran, args)
			return exec.Command("true")
		}
	})
	d.press("c")
	d.until("a chat", func(string) bool { return len(ran) == 1 })
	if !slices.Equal(ran[0], []string{"chat", id}) {
		t.Errorf("%v", ran)
	}
	d.press("g", "j", "r")
	d.sees("continue in which agent")
	d.types("codex")
	d.press("enter")
	d.until("an agent", func(string) bool { return len(ran) == 2 })
	if got := ran[1]; got[0] != "resume" || got[1] == id || !slices.Equal(got[2:], []string{"--in", "codex"}) {
		t.Errorf("%v", got)
	}
	if path := pathOf(t, h, ran[1][1]); len(path) != 2 {
		t.Errorf("the agent is given %d entries", len(path))
	}
	d.press("g", "c")
	d.until("a chat", func(string) bool { return len(ran) == 3 })
	if leaf(t, h, id) != pathOf(t, h, id)[0] {
		t.Error("the chat does not continue from the entry")
	}
}

func TestTreesOfAnySize(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	forked(t, h)
	d := seeTree(t, h)
	for _, size := range [][2]int{{60, 20}, {80, 24}, {120, 40}, {200, 60}, {20, 5}, {1, 1}, {100, 30}} {
		d.size(size[0], size[1])
		d.fits(size[0], size[1])
		if size[0] >= 120 {
			d.until("a preview", func(screen string) bool { return strings.Count(screen, "A willow.") == 2 })
		}
	}
}
