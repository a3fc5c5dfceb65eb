package terminal_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/render/terminal"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

var update = flag.Bool("update", false, "accept what is drawn as golden")

// golden compares text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); go test -update accepts it:\n%s", name, diff)
	}
}

// drawn is what reaches a terminal, with styles written as {1} and {/}.
func drawn(t *testing.T, draw func(w io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	w := plain.NewWriter(&b)
	if err := draw(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(b.String(), "\x1b[0m", "{/}")
	return regexp.MustCompile("\x1b\\[([0-9;]+)m").ReplaceAllString(text, "{$1}")
}

// conversation is a session of entries e1, e2, …, a minute apart, each after the
// one before it unless it names its parent.
func conversation(t *testing.T, entries ...session.Entry) render.Conversation {
	t.Helper()
	st := memory.New(nil)
	began := time.Date(2026, 1, 2, 15, 4, 0, 0, time.UTC)
	h := session.Header{ID: "talk", CreatedAt: began, CWD: "/home/ada/forge", Key: "claude-code:talk"}
	s, err := session.Create(context.Background(), st, h, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for i := range entries {
		entries[i].ID = "e" + string(rune('1'+i))
		entries[i].Timestamp = began.Add(time.Duration(i+1) * time.Minute)
		if entries[i].ParentID == nil && i > 0 {
			entries[i].ParentID = &entries[i-1].ID
		}
	}
	if err := s.Graft(entries...); err != nil {
		t.Fatal(err)
	}
	return render.Conversation{Session: s, Blobs: st.Blobs(), Title: "Fix the parser"}
}

// work is a conversation that has what a coding agent does.
func work(t *testing.T) render.Conversation {
	t.Helper()
	root := "e1"
	failed := session.Message("assistant", session.Text("Let me"))
	failed.Message.StopReason = "error"
	failed.Message.Metadata = map[string]any{"error": map[string]any{"message": "overloaded"}}
	task := session.Message("tool", session.ToolResult("c4", "It is in parse.go.", false))
	task.Message.Metadata = map[string]any{"subagent": "talk/agent-7"}
	again := session.Message("user", session.Text("Do it differently."))
	again.ParentID = &root
	return conversation(
		t,
		session.Message("user", session.Text("Why does TestParse fail? It is a long question, so that its line has to be broken somewhere.")),
		session.Message("assistant",
			session.Text("The loop ends **early**:\n\n- see `parse.go`\n- line 40\n\n```go\nfor i < n {\n```"),
			session.ToolUse("c1", "Edit", map[string]any{"file_path": "parse.go", "old_string": "for i < n {\n\tx()\n}", "new_string": "for i <= n {\n\tx()\n}"}),
			session.ToolUse("c2", "TodoWrite", map[string]any{"todos": []any{
				map[string]any{"content": "Fix it", "status": "completed"},
				map[string]any{"content": "Test it", "status": "in_progress"},
			}}),
			session.ToolUse("c3", "Bash", map[string]any{"command": "go test ./...", "timeout": 30}),
			session.ToolUse("c4", "Task", map[string]any{"description": "Look around", "prompt": "Find the parser."}),
		),
		session.Message("tool", session.ToolResult("c3", "1\n2\n3\n4\n5\n6\n7\n8\n9", true)),
		task,
		failed,
		again,
	)
}

func show(t *testing.T, c render.Conversation, s terminal.Style, o terminal.ShowOptions) string {
	t.Helper()
	return drawn(t, func(w io.Writer) error { return terminal.Show(context.Background(), w, c, s, o) })
}

// A command of several lines is shown as it was written.
func TestShowBreaksACommandWhereItBreaks(t *testing.T) {
	t.Parallel()
	c := conversation(t, session.Message("assistant", session.ToolUse("c1", "bash", map[string]any{"command": "for f in *; do\n  echo $f\ndone", "timeout": 5})))
	for _, full := range []bool{false, true} {
		got := show(t, c, terminal.Style{Width: 80}, terminal.ShowOptions{Leaf: "e1", Full: full})
		if !strings.Contains(got, "→ bash\n    for f in *; do\n      echo $f\n    done\n    {") || !strings.Contains(got, `"timeout": 5`) {
			t.Errorf("full %v:\n%s", full, got)
		}
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	c := work(t)
	hints := terminal.Hints{Branch: func(entry string) string { return "see " + entry }, Folded: "there is more"}
	now := time.Date(2026, 1, 2, 15, 30, 0, 0, time.UTC)
	golden(t, "show-80.txt", show(t, c, terminal.Style{Width: 80, Now: now}, terminal.ShowOptions{Leaf: "e5", Hints: hints}))
	golden(t, "show-pipe.txt", show(t, c, terminal.Style{}, terminal.ShowOptions{Leaf: "e5", Full: true}))
	golden(t, "show-colour.txt", show(t, c, terminal.Style{Width: 80, Color: true}, terminal.ShowOptions{Leaf: "e2", Hints: hints}))
}

func TestShowNamesTheSubagentAtItsCall(t *testing.T) {
	t.Parallel()
	c := work(t)
	c.Subagents = map[string]string{"c4": "0199abcd"}
	got := show(t, c, terminal.Style{}, terminal.ShowOptions{Leaf: "e5"})
	if !strings.Contains(got, "→ Task Look around prompt=Find the parser.\n  ↳ subagent: 0199abcd\n") || strings.Contains(got, "agent-7") {
		t.Errorf("the call does not name the session that it started, or not it alone:\n%s", got)
	}
}

func TestTheLastEntriesNameTheToolsThatWereCalledBefore(t *testing.T) {
	t.Parallel()
	got := show(t, work(t), terminal.Style{}, terminal.ShowOptions{Leaf: "e5", Last: 3})
	if !strings.Contains(got, "⋮ 2 entries before\n\ntool  e3") || !strings.Contains(got, "← Bash error\n") || strings.Contains(got, "→") {
		t.Errorf("the last three entries:\n%s", got)
	}
}

func TestAnEntryIsShownInItsPlace(t *testing.T) {
	t.Parallel()
	var entries []session.Entry
	for range 9 {
		entries = append(entries, session.Message("user", session.Text("hello")))
	}
	got := show(t, conversation(t, entries...), terminal.Style{}, terminal.ShowOptions{Leaf: "e9", At: "e7"})
	if !strings.Contains(got, "⋮ 1 entry before\n\nuser  e2") || !strings.Contains(got, "e7") || !strings.Contains(got, "e9") {
		t.Errorf("around e7:\n%s", got)
	}
}

func TestShowFoldsALongDiff(t *testing.T) {
	t.Parallel()
	c := conversation(t, session.Message("assistant",
		session.ToolUse("c1", "Write", map[string]any{"file_path": "a.txt", "content": strings.Repeat("line\n", 100)})))
	got := show(t, c, terminal.Style{}, terminal.ShowOptions{Leaf: "e1"})
	if n := strings.Count(got, "+line\n"); n != 16 || !strings.Contains(got, "… 84 more lines\n") {
		t.Errorf("%d lines of the diff:\n%s", n, got)
	}
	got = show(t, c, terminal.Style{}, terminal.ShowOptions{Leaf: "e1", Full: true})
	if n := strings.Count(got, "+line\n"); n != 100 {
		t.Errorf("%d lines of the full diff", n)
	}
}

func TestTree(t *testing.T) {
	t.Parallel()
	c := work(t)
	for name, s := range map[string]terminal.Style{
		"tree-60.txt": {Width: 60}, "tree-pipe.txt": {}, "tree-colour.txt": {Width: 60, Color: true},
	} {
		golden(t, name, drawn(t, func(w io.Writer) error {
			return terminal.Tree(context.Background(), w, c, "e5", false, s, terminal.FoldIfLong)
		}))
	}
}

func TestTreeNamesTheSubagentBelowItsCall(t *testing.T) {
	t.Parallel()
	call := session.Message("assistant", session.ToolUse("c1", "task", map[string]any{"prompt": "a"}), session.ToolUse("c2", "task", map[string]any{"prompt": "b"}))
	entries := []session.Entry{session.Message("user", session.Text("go")), call}
	for range 7 {
		entries = append(entries, session.Message("assistant", session.Text("on")))
	}
	c := conversation(t, entries...)
	c.Subagents = map[string]string{"c1": "0199abcd", "b": "0199beef"}
	if err := c.Branch("e2"); err != nil {
		t.Fatal(err)
	}
	other := session.Message("assistant", session.ToolUse("c1", "task", nil))
	other.ID = "f1"
	if _, err := c.AppendAll(other); err != nil {
		t.Fatal(err)
	}
	got := drawn(t, func(w io.Writer) error {
		return terminal.Tree(context.Background(), w, c, "e9", false, terminal.Style{}, 2)
	})
	const want = `e1  ● user        go
e2  ● assistant   → task a → task b
    ↳ subagent: 0199abcd
    ↳ subagent: 0199beef
f1  ├─○ assistant   → task
    │ ↳ subagent: 0199abcd
e3  ● assistant   on
    ⋮ … 4 entries …
e8  ● assistant   on
e9  ◉ assistant   on  ← leaf
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTreeFoldsRunsBetweenPrompts(t *testing.T) {
	t.Parallel()
	var entries []session.Entry
	for i := range 9 {
		role := "assistant"
		if i%5 == 0 {
			role = "user"
		}
		entries = append(entries, session.Message(role, session.Text(role)))
	}
	c := conversation(t, entries...)
	got := drawn(t, func(w io.Writer) error {
		return terminal.Tree(context.Background(), w, c, "e9", false, terminal.Style{}, 2)
	})
	const want = `e1  ● user        user
e2  ● assistant   assistant
    ⋮ … 2 entries …
e5  ● assistant   assistant
e6  ● user        user
e7  ● assistant   assistant
e8  ● assistant   assistant
e9  ◉ assistant   assistant  ← leaf
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRowFitsTheWidth(t *testing.T) {
	t.Parallel()
	e := session.Message("assistant", session.Text(strings.Repeat("word ", 100)))
	name := func(id string) string { return id }
	got := terminal.Style{Width: 40}.Row(&e, "before  ", "12  ", name)
	if !strings.HasPrefix(got, "before  assistant   12  word word") || ansi.StringWidth(got) != 40 {
		t.Errorf("%q", got)
	}
}

// Whatever is in a text, drawing it loses no word, and nothing in it acts on the
// terminal.
func TestDrawnMarkdownLosesNoWord(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"# Heading\ntext *emphasis* **strong** `code` [link](http://x.example) <b>html</b> http://auto.example",
		"> quoted\n> > twice\n\n1. one\n2. two\n   - inner\n\n     more\n3. three",
		"- \n- [ ] open\n- - nested",
		"[ref]: http://definition.example\n\nsee [ref] and ![picture](http://image.example)",
		"| a | b |\n|---|---|\n| cell1 | `x` |\n| cell2 |",
		"<div>\nblock\n</div>\n\n<!-- comment -->",
		"```go\ncode1\n\n\tcode2\n```\n\n    indented\n\n~~~\nunclosed",
		"a  \nb\\\nc \\* d &amp; e &#27;[31m",
		strings.Repeat("> ", 50) + "deep",
		"esc \x1b[31mred\x1b[0m \x07",
		"日本語 **強い**です",
	} {
		c := conversation(t, session.Message("user", session.Text(text)))
		var b bytes.Buffer
		w := plain.NewWriter(&b)
		if err := terminal.Show(context.Background(), w, c, terminal.Style{Color: true, Width: 40}, terminal.ShowOptions{Leaf: "e1"}); err != nil {
			t.Fatal(err)
		}
		_ = w.Flush()
		got := regexp.MustCompile("\x1b\\[[0-9;]+m").ReplaceAllString(b.String(), "")
		if strings.ContainsAny(got, "\x1b\x07") {
			t.Errorf("%q: a control character in %q", text, got)
		}
		joined := regexp.MustCompile(`\s+`).ReplaceAllString(got, "")
		for _, word := range regexp.MustCompile(`[\p{L}\p{N}./:]+`).FindAllString(strings.ReplaceAll(text, "\x1b[31m", ""), -1) {
			if word = strings.Trim(word, "./:"); !strings.Contains(joined, word) && word != "0m" {
				t.Errorf("%q: %q is missing in\n%s", text, word, got)
			}
		}
	}
}

// pieces is how much it was given at once at most, and whether it is full.
type pieces struct {
	most, all, room int
}

func (p *pieces) Write(b []byte) (int, error) {
	if p.most, p.all = max(p.most, len(b)), p.all+len(b); p.all > p.room {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

// A large output is written while it is drawn, and not collected in memory first.
func TestALargeOutputIsWrittenInPieces(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("some words of output\n", 100_000)
	large := session.Entry{ID: "e", Type: session.TypeMessage, Message: &session.MessageEntry{
		Role: session.RoleTool, Content: []session.Content{session.ToolResult("c", text, false)},
	}}
	all := pieces{room: 1 << 30}
	if err := terminal.Entries(&all, terminal.Style{Width: 80}, []session.Entry{large}, render.Names{}); err != nil || all.all < len(text) || all.most > 128<<10 {
		t.Errorf("%d bytes, %d of them at once; %v", all.all, all.most, err)
	}
	full := pieces{room: 1 << 20}
	if err := terminal.Entries(&full, terminal.Style{Width: 80}, []session.Entry{large}, render.Names{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a full disk: %v", err)
	}
}
