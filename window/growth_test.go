package window_test

import (
	"fmt"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// Each of these takes milliseconds where a step costs what it adds. Where a step
// looks at all that was there before it, the test's time limit says so.

func said(i int, role session.MessageRole, blocks ...session.Content) session.Entry {
	return session.Entry{ID: fmt.Sprint(i), Type: session.TypeMessage, Message: &session.MessageEntry{Role: role, Content: blocks}}
}

func grownPlan(t *testing.T, entries []session.Entry, o window.Options) *window.Planner {
	t.Helper()
	p, err := window.NewPlanner(o)
	if err != nil {
		t.Fatal(err)
	}
	p.Add(entries...)
	return p
}

func calls(n int) (calls []session.Content) {
	for i := range n {
		calls = append(calls, session.ToolUse(fmt.Sprint(i), "run", nil))
	}
	return calls
}

// A message makes many calls, and each result finds the window full. The window
// holds what it can, or says that it holds too little.
func TestGroupThatOutgrowsTheWindow(t *testing.T) {
	t.Parallel()
	const n = 3000
	entries := []session.Entry{said(0, session.RoleAssistant, calls(n)...)}
	for i := range n {
		entries = append(entries, said(i+1, session.RoleTool, session.ToolResult(fmt.Sprint(i), "this is what the tool found out", false)))
	}
	if _, err := grownPlan(t, entries, window.Options{Budget: window.Budget{Tokens: 2000}}).View(); err == nil {
		t.Error("calls that are more than the window fit into it")
	}
	const room = n*25 + 2000 // calls and empty results fit, and some of the texts
	p := grownPlan(t, entries, window.Options{Budget: window.Budget{Tokens: room}})
	view, err := p.View()
	if err != nil {
		t.Fatal(err)
	}
	if len(view.Entries) != n+1 || view.Report.Tokens > room {
		t.Errorf("%d entries of %d tokens, want %d of at most %d", len(view.Entries), view.Report.Tokens, n+1, room)
	}
}

// Messages that answer calls of several turns make one group of all of them.
func TestTurnsThatBelongTogether(t *testing.T) {
	t.Parallel()
	const n = 20_000
	var entries []session.Entry
	for i := range n {
		entries = append(entries, said(i, session.RoleAssistant, session.ToolUse(fmt.Sprint("a", i), "run", nil), session.ToolUse(fmt.Sprint("b", i), "run", nil)))
	}
	for i := n - 1; i > 0; i-- {
		entries = append(entries, said(2*n-i, session.RoleTool, session.ToolResult(fmt.Sprint("a", i), "x", false), session.ToolResult(fmt.Sprint("b", i-1), "x", false)))
	}
	view, err := grownPlan(t, entries, window.Options{}).View()
	if err != nil || len(view.Entries) != len(entries) {
		t.Errorf("%d entries; %v", len(view.Entries), err)
	}
}

func TestManyImagesInOneMessage(t *testing.T) {
	t.Parallel()
	const n = 3000
	image := session.Image("image/png", "iVBORw0KGgo=")
	images := make([]session.Content, n)
	for i := range images {
		images[i] = image
	}
	parts := session.ToolResult("0", "", false)
	parts.ToolResult.Parts = images
	entries := []session.Entry{said(0, session.RoleUser, images...), said(1, session.RoleAssistant, calls(1)...), said(2, session.RoleTool, parts)}
	view, err := grownPlan(t, entries, window.Options{}).View()
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for _, o := range view.Report.Omissions {
		if o.Kind == window.ImageLeftOut && o.Reference != "" && o.Tokens > 0 {
			left++
		}
	}
	if left != 2*n-1 {
		t.Errorf("%d images were left out, want all but one: %d", left, 2*n-1)
	}
}
