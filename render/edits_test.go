package render_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

func call(t *testing.T, name, input string) *session.ToolUseContent {
	t.Helper()
	c := &session.ToolUseContent{Name: name}
	if err := json.Unmarshal([]byte(input), &c.Input); err != nil {
		t.Fatal(err)
	}
	return c
}

// written is edits as a test can compare them.
func written(edits []render.Edit) string {
	var b strings.Builder
	for _, e := range edits {
		fmt.Fprintf(&b, "%s %s", e.Op, e.Path)
		if e.To != "" {
			fmt.Fprintf(&b, " to %s", e.To)
		}
		if e.All {
			b.WriteString(" everywhere")
		}
		b.WriteByte('\n')
		for _, h := range e.Hunks {
			fmt.Fprintf(&b, "@@ %s\n", h.Heading)
			for _, line := range h.Lines {
				fmt.Fprintf(&b, "%c%s\n", line.Op, line.Text)
			}
		}
	}
	return b.String()
}

func TestEditsOfEveryAgent(t *testing.T) {
	t.Parallel()
	const changed = "change a.go\n@@ \n-x\n+y\n"
	const wrote = "write a.go\n@@ \n+x\n+y\n"
	for _, test := range []struct{ agent, tool, input, want string }{
		{"Claude Code", "Edit", `{"file_path":"a.go","old_string":"x","new_string":"y"}`, changed},
		{"Claude Code", "Edit", `{"file_path":"a.go","old_string":"x","new_string":"y","replace_all":true}`, "change a.go everywhere\n@@ \n-x\n+y\n"},
		{"Claude Code", "MultiEdit", `{"file_path":"a.go","edits":[{"old_string":"x","new_string":"y"},{"old_string":"p","new_string":"q"}]}`, changed + "@@ \n-p\n+q\n"},
		{"Claude Code", "Write", `{"file_path":"a.go","content":"x\ny\n"}`, wrote},
		{"Claude Code", "NotebookEdit", `{"notebook_path":"a.go","new_source":"x\ny"}`, wrote},
		{"Codex", "apply_patch", `{"input":"*** Begin Patch\n*** Update File: a.go\n@@ func f\n-x\n+y\n z\n*** Move to: b.go\n*** End Patch"}`, "change a.go to b.go\n@@ func f\n-x\n+y\n z\n"},
		{"Codex", "shell", `{"command":["apply_patch","*** Begin Patch\n*** Add File: a.go\n+x\n+y\n*** Delete File: b.go\n*** End Patch\n"]}`, wrote + "delete b.go\n"},
		{"Codex", "shell", `{"command":["bash","-lc","cd x && apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a.go\n+x\n+y\n*** End Patch\nEOF"]}`, wrote},
		{"Gemini CLI", "replace", `{"file_path":"a.go","instruction":"do it","old_string":"x","new_string":"y"}`, changed},
		{"Gemini CLI", "write_file", `{"file_path":"a.go","content":"x\ny"}`, wrote},
		{"OpenCode", "edit", `{"filePath":"a.go","oldString":"x","newString":"y"}`, changed},
		{"OpenCode", "write", `{"filePath":"a.go","content":"x\ny"}`, wrote},
		{"OpenCode", "patch", `{"patchText":"*** Begin Patch\n*** Update File: a.go\n@@\n-x\n+y\n*** End Patch"}`, changed},
		{"pi", "edit", `{"path":"a.go","oldText":"x","newText":"y"}`, changed},
		{"pi", "edit", `{"path":"a.go","edits":[{"oldText":"x","newText":"y"}]}`, changed},
		{"pi", "write", `{"path":"a.go","content":"x\ny"}`, wrote},
		{"Goose", "text_editor", `{"command":"str_replace","path":"a.go","old_str":"x","new_str":"y"}`, changed},
		{"Goose", "text_editor", `{"command":"write","path":"a.go","file_text":"x\ny"}`, wrote},
	} {
		if diff := cmp.Diff(test.want, written(render.Edits(call(t, test.tool, test.input)))); diff != "" {
			t.Errorf("%s: %s %s (-want +got):\n%s", test.agent, test.tool, test.input, diff)
		}
	}
}

func TestOtherCallsAreNoEdits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ tool, input string }{
		{"Read", `{"file_path":"a.go"}`},
		{"search", `{"path":"a.go","content":"x"}`},
		{"edit", `{"path":"a.go","oldText":"x"}`},
		{"edit", `{"path":"a.go","edits":["x"]}`},
		{"edit", `{"edits":[{"oldText":"x","newText":"y"}]}`},
		{"bash", `{"command":"cat patch.txt"}`},
		{"bash", `{"command":"echo 'A patch begins with *** Begin Patch\n*** Add File: a.go'"}`},
		{"apply_patch", `{"input":"*** Begin Patch"}`},
		{"exec", `{"source":"await apply_patch('*** Begin Patch\n*** Add File: a.go\n+x\n*** End Patch');\nawait somethingElse();"}`},
		{"write", `null`},
	} {
		if edits := render.Edits(call(t, test.tool, test.input)); edits != nil {
			t.Errorf("%s %s: %v", test.tool, test.input, edits)
		}
	}
}

func TestDiffHasThreeLinesAroundAChange(t *testing.T) {
	t.Parallel()
	lines := strings.Split("abcdefghijklmnopqrstuvwxyz", "")
	before := strings.Join(lines, "\r\n")
	lines[4], lines[20] = "E", "U"
	hunks := render.Diff(before, strings.Join(lines, "\r\n"))
	got := written([]render.Edit{{Op: render.Change, Path: "a", Hunks: hunks}})
	want := "change a\n@@ \n b\n c\n d\n-e\n+E\n f\n g\n h\n@@ \n r\n s\n t\n-u\n+U\n v\n w\n x\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if render.Diff("same", "same") != nil {
		t.Error("equal texts differ")
	}
	if hunks := render.Diff("a", "a\nb\n"); written([]render.Edit{{Hunks: hunks}}) != " \n@@ \n a\n+b\n" {
		t.Errorf("a line end that is missing counts as a change: %v", hunks)
	}
}

// Texts that have nothing in common take a comparison the longest.
func TestDiffOfLargeTextsTakesNoTime(t *testing.T) {
	t.Parallel()
	var before, after strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&before, "old line %d\n", i)
		fmt.Fprintf(&after, "new line %d\n", i)
	}
	for _, n := range []int{5_000, before.Len()} {
		hunks := render.Diff(before.String()[:n], after.String()[:n])
		added, removed := (&render.Edit{Hunks: hunks}).Counts()
		if added == 0 || added != removed {
			t.Errorf("%d bytes: +%d −%d", n, added, removed)
		}
	}
}

func TestGistOfAnEditNamesTheFilesAndCountsLines(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ tool, input, want string }{
		{"Edit", `{"file_path":"a.go","old_string":"x\ny","new_string":"x\nz\nq"}`, "Edit a.go +2 −1"},
		{"Write", `{"file_path":"a.go","content":"x\ny"}`, "Write a.go +2"},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Update File: a\n-x\n*** Delete File: b\n*** Update File: c\n*** Move to: d\n*** End Patch"}`, "apply_patch a, deletes b, c → d −1"},
	} {
		if got := render.CallGist(call(t, test.tool, test.input)); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
}

func TestTodosOfACall(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		input string
		want  []render.Todo
	}{
		{`{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"in_progress"},{"content":"c","status":"pending"}]}`, []render.Todo{
			{Text: "a", State: render.TodoDone}, {Text: "b", State: render.TodoActive}, {Text: "c", State: render.TodoOpen},
		}},
		{`{"explanation":"x","plan":[{"step":"a","status":"completed"}]}`, []render.Todo{{Text: "a", State: render.TodoDone}}},
		{`{"todos":[{"content":"a"}]}`, nil},
		{`{"items":["a"]}`, nil},
		{`{"todos":[]}`, nil},
	} {
		if diff := cmp.Diff(test.want, render.Todos(call(t, "TodoWrite", test.input))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.input, diff)
		}
	}
}
