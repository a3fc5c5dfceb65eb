// Garden is a short tour of Coppice: it records a conversation, branches it,
// compacts it, takes the compaction back, loads it all again and draws the tree.
//
// It keeps the session in the directory given as its argument, or in a
// temporary one.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

func main() {
	log.SetFlags(0)
	dir, cleanup, err := directory(os.Args[1:])
	if err != nil {
		log.Fatal(err)
	}
	err = tour(os.Stdout, dir)
	cleanup()
	if err != nil {
		log.Fatal(err)
	}
}

func directory(args []string) (dir string, cleanup func(), err error) {
	if len(args) > 0 {
		return args[0], func() {}, nil
	}
	dir, err = os.MkdirTemp("", "coppice")
	return dir, func() { os.RemoveAll(dir) }, err
}

// tour does the work of the example and says what it does.
func tour(w io.Writer, dir string) error {
	path, err := grow(w, dir)
	if err != nil {
		return err
	}
	s, err := session.Load(path)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Fprintf(w, "\nLoaded again from %s:\n\n", filepath.Base(path))
	tree, err := s.GetTree()
	if err != nil {
		return err
	}
	draw(w, tree, s.LeafID())
	if err := show(w, "\nA model would now be sent:", s); err != nil {
		return err
	}
	if _, err := s.Undo(); err != nil {
		return err
	}
	return show(w, "\nAnd with the compaction undone:", s)
}

// grow records a conversation with a tool, a change of mind and a compaction,
// and returns the session's file.
func grow(w io.Writer, dir string) (string, error) {
	s, err := session.New(dir, "")
	if err != nil {
		return "", err
	}
	defer s.Close()
	g := gardener{s: s}
	g.do(s.AppendSessionInfo("the failing test"))
	g.do(s.AppendModelChange("anthropic", "claude-sonnet-4-5"))
	question := g.do(s.AppendMessage(session.RoleUser, say("Why does TestParse fail?")))
	g.do(s.AppendMessage(session.RoleAssistant, []session.Content{
		session.Text("Let me run it."),
		session.ToolUse("call_1", "bash", map[string]any{"command": "go test -run TestParse"}),
	}))
	g.do(s.AppendMessage(session.RoleTool, []session.Content{
		session.ToolResult("call_1", "parse_test.go:12: got 3, want 4", false),
	}))
	g.do(s.AppendMessage(session.RoleAssistant, say("The loop stops one token early.")))
	fmt.Fprintln(w, "Recorded a question, a tool call and an answer.")

	g.must(s.Branch(question))
	retry := g.do(s.AppendMessage(session.RoleUser, say("Do not run anything. Read the code.")))
	g.do(s.SetLabel(question, "where it began"))
	g.do(s.AppendMessage(session.RoleAssistant, say("Line 40 compares with < instead of <=.")))
	fmt.Fprintln(w, "Went back to the question and asked differently.")

	g.do(s.AppendMessage(session.RoleUser, say("Fix it.")))
	g.do(s.AppendCompaction("TestParse fails because of an off-by-one.", retry, 1500))
	g.do(s.AppendMessage(session.RoleAssistant, say("Fixed: the loop now ends at <=.")))
	fmt.Fprintln(w, "Compacted what came before, and went on.")
	return s.File(), g.err
}

// gardener collects the first error, so that the tour reads as a story.
type gardener struct {
	s   *session.Session
	err error
}

func (g *gardener) do(id string, err error) string {
	g.must(err)
	return id
}

func (g *gardener) must(err error) {
	if g.err == nil {
		g.err = err
	}
}

func say(text string) []session.Content { return []session.Content{session.Text(text)} }

// show prints the context.
func show(w io.Writer, title string, s *session.Session) error {
	entries, err := s.GetContext()
	if err != nil {
		return err
	}
	fmt.Fprintln(w, title)
	fmt.Fprintln(w)
	for _, e := range entries {
		fmt.Fprintf(w, "  %s\n", line(e))
	}
	return nil
}

// draw prints a forest. Only where the conversation branches is it indented: a
// conversation is long and branches seldom.
func draw(w io.Writer, forest []session.TreeNode, leaf string) {
	for _, n := range forest {
		drawBranch(w, n, leaf, "  ", "  ")
	}
}

// drawBranch prints a node and what follows it. first goes before the node's own
// line, rest before all others.
func drawBranch(w io.Writer, n session.TreeNode, leaf, first, rest string) {
	for indent := first; ; indent = rest {
		fmt.Fprintf(w, "%s%s%s\n", indent, line(n.Entry), marks(n, leaf))
		if len(n.Children) != 1 {
			break
		}
		n = n.Children[0]
	}
	for i, child := range n.Children {
		if i < len(n.Children)-1 {
			drawBranch(w, child, leaf, rest+"├─ ", rest+"│  ")
		} else {
			drawBranch(w, child, leaf, rest+"└─ ", rest+"   ")
		}
	}
}

func marks(n session.TreeNode, leaf string) string {
	marks := ""
	if n.Label != "" {
		marks += fmt.Sprintf("  [%s]", n.Label)
	}
	if n.Entry.ID == leaf {
		marks += "  <- leaf"
	}
	return marks
}

// line describes an entry in one line.
func line(e session.Entry) string {
	switch {
	case e.Message != nil:
		return fmt.Sprintf("%-10s %s", e.Message.Role, summary(e.Message.Content))
	case e.Compaction != nil:
		return fmt.Sprintf("%-10s %s", "summary", e.Compaction.Summary)
	case e.ModelChange != nil:
		return fmt.Sprintf("%-10s %s/%s", "model", e.ModelChange.Provider, e.ModelChange.ModelID)
	case e.Label != nil:
		return fmt.Sprintf("%-10s %s", "label", e.Label.Label)
	case e.SessionInfo != nil:
		return fmt.Sprintf("%-10s %s", "name", e.SessionInfo.Name)
	}
	return string(e.Type)
}

func summary(blocks []session.Content) string {
	var parts []string
	for _, c := range blocks {
		switch {
		case c.Text != nil:
			parts = append(parts, c.Text.Content)
		case c.ToolUse != nil:
			parts = append(parts, fmt.Sprintf("(calls %s: %v)", c.ToolUse.Name, c.ToolUse.Input["command"]))
		case c.ToolResult != nil:
			parts = append(parts, c.ToolResult.Content)
		}
	}
	return strings.Join(parts, " ")
}
