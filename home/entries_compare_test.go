package home_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// TestCompareByToolsAndFiles compares two attempts at the same thing.
func TestCompareByToolsAndFiles(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id := must[*home.CreateResult](t)(h.Sessions.Create(t.Context(), home.CreateRequest{})).Session
	says := func(parent, role string, content ...session.Content) string {
		m := &session.MessageEntry{Role: role, Content: content}
		if role == session.RoleAssistant {
			m.Usage = &session.Usage{Output: 10, CostMicroUSD: 500}
		}
		return must[*home.AppendResult](t)(h.Entries.Append(t.Context(), home.AppendRequest{Session: id, Parent: parent, Message: m})).Entry
	}
	call := func(id, tool, key, value string) session.Content {
		return session.ToolUse(id, tool, map[string]any{key: value, "old_string": "a", "new_string": "b"})
	}
	root := says("", session.RoleUser, session.Text("Mend it"))
	says("", session.RoleAssistant, session.Text("I look"), call("1", "Bash", "command", "go test"), call("2", "Edit", "file_path", "a.go"))
	says("", session.RoleTool, session.ToolResult("1", "Exit code 1\nFAIL\nx", true))
	says("", session.RoleTool, session.ToolResult("2", "", false))
	a := says("", session.RoleAssistant, session.Text("Mended."))
	says(root, session.RoleAssistant, call("3", "Bash", "command", "go test"))
	says("", session.RoleTool, session.ToolResult("3", "ok", false))
	b := says("", session.RoleAssistant, session.Text("Nothing is wrong."))

	got := must[*home.CompareResult](t)(h.Entries.Compare(t.Context(), home.CompareRequest{Session: id, A: a, B: b, Brief: true}))
	if got.Ancestor != root || len(got.OnlyA) > 0 || len(got.OnlyB) > 0 {
		t.Errorf("%+v", got)
	}
	side := got.SideA
	if fmt.Sprint(side.Tools) != "[{Bash 1} {Edit 1}]" || side.Calls != 2 || side.Errors != 1 || side.Tokens != 20 || side.CostMicroUSD != 1000 ||
		len(side.Files) != 1 || side.Files[0].Path != "a.go" || side.Answer != "Mended." || side.AnswerEntry != a {
		t.Errorf("the first: %+v", side)
	}
	if side := got.SideB; side.Calls != 1 || side.Errors != 0 || len(side.Files) > 0 || side.Answer != "Nothing is wrong." {
		t.Errorf("the second: %+v", side)
	}
	var steps []string
	for _, s := range got.Steps {
		text := func(s *home.PathStep) string {
			if s == nil {
				return "-"
			}
			return strings.TrimRight(s.Kind+" "+s.Gist+" "+s.Outcome, " ")
		}
		steps = append(steps, fmt.Sprint(text(s.A), " | ", text(s.B), " | ", s.Same))
	}
	want := []string{
		"answer I look | - | false",
		"call Bash go test new_string=b old_string=a exit 1 · FAIL … | call Bash go test new_string=b old_string=a ok | true",
		"call Edit a.go +1 −1 done | answer Nothing is wrong. | false",
		"answer Mended. | - | false",
	}
	if strings.Join(steps, "\n") != strings.Join(want, "\n") {
		t.Errorf("steps:\n%s\nwant:\n%s", strings.Join(steps, "\n"), strings.Join(want, "\n"))
	}
	whole := must[*home.CompareResult](t)(h.Entries.Compare(t.Context(), home.CompareRequest{Session: id, A: a, B: b}))
	if len(whole.OnlyA) != 4 || whole.Steps != nil || whole.SideA.Entries != 4 {
		t.Errorf("not brief: %+v", whole)
	}
}
