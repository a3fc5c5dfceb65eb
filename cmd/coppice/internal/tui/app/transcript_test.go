package app_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/app"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// says appends a message, and returns its id.
func says(t *testing.T, h *home.Home, id, role string, content ...session.Content) string {
	t.Helper()
	made, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: id, Message: &session.MessageEntry{Role: role, Content: content}})
	if err != nil {
		t.Fatal(err)
	}
	return made.Entry
}

// work makes a session in which an agent thinks, uses tools and answers.
func work(t *testing.T, h *home.Home) string {
	t.Helper()
	id := talk(t, h, "Fix the parser", "The parser fails. Mend it.")
	says(t, h, id, session.RoleAssistant,
		session.Thinking("I wonder\nwhere it fails.", ""),
		session.Text("Let me look."),
		session.ToolUse("c1", "Bash", map[string]any{"command": "go test ./parser"}),
		session.ToolUse("c2", "Edit", map[string]any{"file_path": "parser.go", "old_string": "a := 1", "new_string": "a := 2"}))
	says(t, h, id, session.RoleTool, session.ToolResult("c1", "Exit code 1\nFAIL parser_test.go:7\nwant 2, got 1", true))
	says(t, h, id, session.RoleTool, session.ToolResult("c2", "done", false))
	says(t, h, id, session.RoleAssistant, session.ToolUse("c3", "Bash", map[string]any{"command": "go vet"}))
	says(t, h, id, session.RoleTool, session.ToolResult("c3", "first line\nsecond line\nzebra crossing", false))
	says(t, h, id, session.RoleAssistant, session.Text("It was an off-by-one error."))
	return id
}

func readTranscript(t *testing.T, h *home.Home, title string, change ...func(*app.Options)) *driver {
	t.Helper()
	d := drive(t, h, change...)
	d.sees(title)
	d.press("enter")
	return d
}

func TestToolsAreALineWithTheirOutcome(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	work(t, h)
	d := readTranscript(t, h, "Fix the parser")
	screen := d.sees("→ Bash go test ./parser", "✗ exit 1 · FAIL parser_test.go:7 …", "→ Edit parser.go +1 −1", "✓ done", "→ Bash go vet", "✓ 3 lines", "off-by-one")
	if strings.Contains(screen, "where it fails") && !strings.Contains(screen, "┊ I wonder where it fails.  2 lines") {
		t.Errorf("thinking is not on a line:\n%s", screen)
	}
	if strings.Contains(screen, "got 1") || strings.Contains(screen, "a := 2") {
		t.Errorf("tools are not folded:\n%s", screen)
	}
	d.press("g", "j", "space")
	d.sees("want 2, got 1", "-a := 1", "+a := 2")
	d.press("space")
	d.loses("got 1")
	d.press("z")
	d.sees("tools are shortened", "want 2, got 1", "second line", "zebra")
	d.press("Z")
	d.sees("thinking is whole", "┊ where it fails.")
}

func TestFindAndJump(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	work(t, h)
	d := readTranscript(t, h, "Fix the parser")
	d.sees("off-by-one")
	d.press("g", "/")
	d.types("ZEBRA")
	d.press("enter")
	d.sees("zebra crossing", "5 of 7") // which was folded
	d.press("n")
	d.sees(`no "ZEBRA" below`)
	d.press("P")
	d.sees("1 of 7")
	d.press("e")
	d.sees("want 2, got 1", "2 of 7")
	d.press("e")
	d.sees("no error below")
	d.press("g", "d")
	d.sees("+a := 2", "2 of 7")
	d.press("m")
	d.sees("no compaction below")
}

// TestASearchGoesOnInTheTranscript opens a hit, finds the next one there, and ends the search before
// it leaves.
func TestASearchGoesOnInTheTranscript(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	talk(t, h, "Garden", "Which trees can be coppiced?", "Hazel, for one.", "Another?", "Ash.", "Tell me about hazel again.", "It grows from the root.")
	d := drive(t, h)
	d.sees("Garden")
	d.press("/")
	d.types("hazel for")
	d.sees("1 hit")
	d.press("enter")
	d.sees("2 of 6")
	d.press("n")
	d.sees("5 of 6")
	d.press("esc")
	d.sees("5 of 6")
	d.press("esc")
	d.loses("5 of 6")
}

func TestASearchCanBeStopped(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	work(t, h)
	d := readTranscript(t, h, "Fix the parser")
	d.sees("off-by-one")
	d.press("g", "/")
	d.types("zebra")
	d.press("enter")
	d.sees(`looking for "zebra" … Esc stops`) // what it finds is not handled yet
	d.press("esc")
	d.sees(`stopped looking for "zebra"`, "1 of 7")
	d.press("n")
	d.sees("5 of 7")
}

func TestATallEntryCanBeReadThrough(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	var tall []string
	for i := range 120 {
		tall = append(tall, fmt.Sprintf("line number %d.", i))
	}
	id := talk(t, h, "Tall", "Tell me", strings.Join(tall, "\n\n"), "Thanks")
	_ = id
	d := readTranscript(t, h, "Tall")
	d.sees("Thanks")
	d.press("g")
	seen := make(map[string]bool)
	for range 60 {
		for _, line := range strings.Split(d.screen(), "\n") {
			seen[strings.TrimSpace(strings.TrimLeft(line, ">| "))] = true
		}
		d.press("j")
	}
	for _, line := range tall {
		if !seen[line] {
			t.Fatalf("%q never showed", line)
		}
	}
}

func TestOtherBranches(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := talk(t, h, "Fork", "What shall I plant?", "An oak.", "And then?", "Wait a century.")
	path := pathOf(t, h, id)
	branch(t, h, id, path[1])
	says(t, h, id, session.RoleUser, session.Text("No, something quick."))
	says(t, h, id, session.RoleAssistant, session.Text("A willow."))
	d := readTranscript(t, h, "Fork")
	d.sees("A willow.", "2 of 2 branches here")
	d.press("g", "j", "]")
	d.sees("Wait a century.", "1 of 2 branches here")
	d.press("[")
	d.sees("A willow.")
	d.press("]")
	d.sees("Wait a century.", "branch 1 of 2")
	d.press("G")
	d.sees("4 of 4")
}

func TestTheEndIsFollowed(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := talk(t, h, "Live", "Begin", "Begun")
	d := readTranscript(t, h, "Live")
	d.sees("Begun")
	says(t, h, id, session.RoleUser, session.Text("A new prompt"))
	d.sees("A new prompt", "3 of 3")
	d.press("g")
	says(t, h, id, session.RoleAssistant, session.Text("An answer"))
	d.sees("1 new below", "1 of 4")
	d.press("G")
	d.loses("new below")
	says(t, h, id, session.RoleUser, session.Text("Once more"))
	d.sees("Once more", "5 of 5")
}

func TestTranscriptsOfAnySize(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	work(t, h)
	d := readTranscript(t, h, "Fix the parser")
	d.sees("off-by-one")
	d.press("g", "j", "space")
	place := "2 of 7"
	for _, size := range [][2]int{{60, 20}, {80, 24}, {120, 40}, {200, 60}, {20, 5}, {1, 1}, {100, 30}} {
		d.size(size[0], size[1])
		d.fits(size[0], size[1])
		if size[0] >= 60 {
			d.sees(place, "go test ./parser")
		}
	}
}

func TestLongConversationsAreReadInParts(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := talk(t, h, "Long", "the beginning")
	for i := range 500 {
		says(t, h, id, session.RoleAssistant, session.Text(fmt.Sprintf("answer %d", i)))
	}
	d := readTranscript(t, h, "Long")
	d.sees("answer 499", "501 of 501")
	d.press("g")
	d.sees("the beginning", "answer 3")
	for range 12 {
		d.press("pgdown")
	}
	d.loses("⋮")
	d.press("G")
	d.sees("answer 499")
	d.press("/")
	d.types("answer 250")
	d.press("enter")
	d.sees(`no "answer 250" below`)
	d.press("N")
	d.sees("answer 250", "answer 251", "252 of 501")
	d.press("G", "P")
	d.sees("the beginning", "1 of 501")
}

func TestLongTextsAreFetched(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := talk(t, h, "Large", "Go")
	says(t, h, id, session.RoleAssistant, session.ToolUse("c", "Bash", map[string]any{"command": "cat"}))
	says(t, h, id, session.RoleTool, session.ToolResult("c", strings.Repeat("filler\n", 20_000)+"the needle", false))
	d := readTranscript(t, h, "Large")
	d.sees("→ Bash cat")
	d.press("g", "/")
	d.types("the needle")
	d.press("enter")
	d.sees("the needle", "2 of 3")
}

func TestHostileTranscriptsAreText(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	evil := "\x1b]0;owned\x07\x1b[2J\u202eevil"
	id := talk(t, h, "Evil", evil)
	says(t, h, id, session.RoleAssistant, session.Thinking(evil, ""), session.Text("```go\n"+evil+"\n```\n| "+evil+" |\n|--|\n"),
		session.ToolUse("c", evil, map[string]any{"command": evil, evil: evil}))
	says(t, h, id, session.RoleTool, session.ToolResult("c", evil, true))
	d := readTranscript(t, h, "Evil", func(o *app.Options) { o.Color = true })
	d.sees("evil")
	d.press("g", "/")
	d.types("evil")
	d.press("enter", "z")
	for range 6 {
		content := d.app.(*app.App).View().Content
		for _, bad := range []string{"\x1b]", "\x1b[2J", "\u202e", "\x07"} {
			if strings.Contains(content, bad) {
				t.Fatalf("%q reaches the terminal: %q", bad, content)
			}
		}
		d.press("z", "Z", "j")
	}
}

// pathOf returns the ids of the entries of a session's path.
func pathOf(t *testing.T, h *home.Home, id string) (ids []string) {
	t.Helper()
	rows, err := h.Entries.Rows(t.Context(), home.RowsRequest{Session: id})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows.Rows {
		ids = append(ids, row.Entry.ID)
	}
	return ids
}

func branch(t *testing.T, h *home.Home, id, entry string) {
	t.Helper()
	if _, err := h.Entries.Branch(t.Context(), home.BranchRequest{Session: id, Entry: entry}); err != nil {
		t.Fatal(err)
	}
}

func TestEnterGoesToASubagent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st, err := file.Open(dir, &file.Options{Sync: file.Never})
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Create(t.Context(), st, session.Header{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	append := func(s *session.Session, role session.MessageRole, content ...session.Content) string {
		id, err := s.AppendMessage(role, content)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	append(s, session.RoleUser, session.Text("Look around"))
	entry := append(s, session.RoleAssistant, session.ToolUse("c1", "Task", map[string]any{"prompt": "Look left"}), session.ToolUse("c2", "Task", map[string]any{"prompt": "Look right"}))
	for i, call := range []string{"c1", "c2"} {
		other, err := session.OpenSubagent(t.Context(), s, entry, call)
		if err != nil {
			t.Fatal(err)
		}
		append(other, session.RoleUser, session.Text([]string{"I look left", "I look right"}[i]))
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		append(s, session.RoleTool, session.ToolResult(call, "looked", false))
	}
	if err := errors.Join(s.Close(), st.Close()); err != nil {
		t.Fatal(err)
	}
	h := openHome(t, dir, nil)
	d := readTranscript(t, h, "Look around")
	d.sees("→ Task Look left", "→ Task Look right", "↳ subagent: ")
	d.press("enter")
	d.sees("Which subagent?")
	d.press("2")
	d.sees("I look right", "1 of 1")
	d.press("esc")
	d.sees("→ Task Look left", "2 of 4")
}

// TestActionsInATranscript renames a session from its transcript, and copies an entry.
func TestActionsInATranscript(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := work(t, h)
	d := readTranscript(t, h, "Fix the parser")
	d.sees("off-by-one")
	d.press("R")
	d.sees("rename to Fix the parser")
	d.press("ctrl+u")
	d.types("Parser")
	d.press("enter")
	d.sees("› Parser")
	info, err := h.Sessions.Get(t.Context(), home.SessionRequest{Session: id})
	if err != nil || info.Title != "Parser" {
		t.Errorf("%v, %v", info, err)
	}
	d.press("y")
	d.sees("this entry", "last answer")
	d.press("e")
	d.sees("copied the entry")
	d.press("g", "b")
	d.sees("the conversation continues from")
	if path := pathOf(t, h, id); len(path) != 1 {
		t.Errorf("the path has %d entries", len(path))
	}
}
