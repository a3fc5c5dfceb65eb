package app_test

import (
	"testing"

	"github.com/coppice-dev/coppice/session"
)

func TestCompareTwoBranches(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := talk(t, h, "Garden", "What shall I plant?", "An oak.")
	start := pathOf(t, h, id)[1]
	says(t, h, id, session.RoleUser, session.Text("Do it."))
	says(t, h, id, session.RoleAssistant, session.ToolUse("1", "Bash", map[string]any{"command": "dig"}))
	says(t, h, id, session.RoleTool, session.ToolResult("1", "the spade broke", true))
	branch(t, h, id, start)
	says(t, h, id, session.RoleUser, session.Text("Do it."))
	says(t, h, id, session.RoleAssistant, session.ToolUse("2", "Write", map[string]any{"file_path": "plan.md", "content": "x"}))
	says(t, h, id, session.RoleTool, session.ToolResult("2", "", false))
	says(t, h, id, session.RoleAssistant, session.Text("A willow."))
	d := seeTree(t, h)
	d.press("=")
	d.sees("compare: Space marks the entry to compare with")
	d.press("g", "j", "j", "j", "j", "space", "G", "=")
	d.sees("they share 3 entries", "Bash 1", "Write 1", "plan.md (1 change)", "✗ Bash dig – the spade broke", "→ Write plan.md", "❯ Do it.", "A willow.")
	for _, size := range [][2]int{{60, 20}, {80, 24}, {120, 40}, {200, 60}, {20, 5}, {1, 1}, {100, 30}} {
		d.size(size[0], size[1])
		d.fits(size[0], size[1])
	}
	d.press("enter")
	d.sees("→ Bash dig", "4 of 5")
	d.press("esc", "tab", "enter")
	d.sees("→ Write plan.md", "4 of 6")
	d.press("esc", "p")
	d.sees("An oak.", "2 of ")
}
