package terminal_test

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render/terminal"
	"github.com/coppice-dev/coppice/session"
)

// TestAnEntryByItself draws a message with its calls in every way of folding.
func TestAnEntryByItself(t *testing.T) {
	t.Parallel()
	e := session.Message("assistant",
		session.Thinking("Hm.\nWhere is it?", ""), session.Text("I look."),
		session.ToolUse("c1", "Bash", map[string]any{"command": "go test"}),
		session.ToolUse("c2", "Edit", map[string]any{"file_path": "a.go", "old_string": "x", "new_string": "y"}),
		session.ToolUse("c3", "Read", map[string]any{"file_path": "b.go"}))
	e.ID, e.Timestamp = "e1", time.Date(2026, 1, 2, 15, 4, 0, 0, time.UTC)
	answers := map[string]*session.ToolResultContent{
		"c1": session.ToolResult("c1", "1\n2\n3\n4\n5\n6\n7\n8\n9", true).ToolResult,
		"c2": session.ToolResult("c2", "done", false).ToolResult,
	}
	for name, o := range map[string]terminal.EntryOptions{
		"folded":    {Tools: terminal.Folded, Thinking: terminal.Folded, Label: "here"},
		"continued": {Tools: terminal.Folded, Thinking: terminal.Folded, Continues: true, Subagents: []string{"other"}},
		"shortened": {Thinking: terminal.Folded},
		"whole":     {Tools: terminal.Whole, Thinking: terminal.Whole},
	} {
		o.Answer = func(call string) *session.ToolResultContent { return answers[call] }
		rows := terminal.Entry(terminal.Style{Width: 50}, &e, o)
		golden(t, "entry-"+name+".txt", strings.Join(rows, "\n")+"\n")
		for _, row := range rows {
			if ansi.StringWidth(row) > 50 {
				t.Errorf("%s: %q is too long", name, row)
			}
		}
	}
}
