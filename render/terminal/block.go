package terminal

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/render/typed"
	"github.com/coppice-dev/coppice/session"
)

func (r *reader) block(c *session.Content) {
	switch {
	case c.Text != nil:
		r.passages(c.Text.Content)
	case c.Thinking != nil && r.alone != nil && r.alone.Thinking == Folded:
		r.thought(c.Thinking.Content)
	case c.Thinking != nil:
		r.text(indent+r.Paint(Dim, "┊ "), cmp.Or(c.Thinking.Content, "(the provider does not show this thinking)"), Dim)
	case c.ToolUse != nil:
		r.call(c.ToolUse)
	case c.ToolResult != nil:
		r.result(c.ToolResult)
	default:
		r.media(c)
	}
}

// media writes an image, a recording or a file.
func (r *reader) media(c *session.Content) {
	r.line(indent, r.fitLine(render.MediaGist(c), 2))
	if r.alone == nil || r.alone.Media == nil {
		return
	}
	for _, row := range r.alone.Media(c) {
		r.line(indent, row)
	}
}

// passages writes the text of a message: commands as they were typed, and what they
// printed as output.
func (r *reader) passages(text string) {
	for _, p := range render.Passages(text) {
		switch p.Kind {
		case typed.Command:
			r.text(indent, p.Text, Bold)
		case typed.Output:
			r.output(p.Text)
		default:
			r.prose(p.Text)
		}
	}
}

// call writes a tool call on one line, and below it what deserves more than that.
func (r *reader) call(t *session.ToolUseContent) {
	if r.alone != nil && r.alone.Tools == Folded {
		r.endedCall(render.CallGist(t), t)
		r.startedBy(t)
		return
	}
	defer r.answered(t)
	r.tools[t.ID] = t.Name
	edits, todos := render.Edits(t), render.Todos(t)
	key, command := render.MainArgument(t)
	isLong := edits == nil && todos == nil && strings.Contains(strings.TrimSpace(command), "\n")
	whole := r.o.Full && edits == nil && todos == nil && len(t.Input) > 0 && !isLong
	if r.alone != nil && whole {
		whole = ansi.StringWidth(render.CallGist(t)+r.end(t))+4 > r.Width // otherwise the line says all
	}
	gist := render.OneLine(t.Name, 0)
	if !whole && !isLong {
		gist = r.fitLine(render.CallGist(t), 4)
	}
	r.endedCall(gist, t)
	switch {
	case whole:
		r.text(indent+indent, indentedJSON(t.Input), Dim)
	case isLong:
		r.command(command)
		if rest := maps.Clone(t.Input); len(rest) > 1 {
			delete(rest, key)
			more := indentedJSON(rest)
			if !r.o.Full {
				more = r.fitLine(render.OneLine(more, 0), 4)
			}
			r.text(indent+indent, more, Dim)
		}
	case edits != nil:
		r.edits(edits)
	case todos != nil:
		r.todos(todos)
	}
	r.startedBy(t)
}

// startedBy names the session that a call started.
func (r *reader) startedBy(t *session.ToolUseContent) {
	if name := r.subagent(t); name != "" {
		r.started[t.ID] = true
		r.line(indent, r.Paint(Dim, subagentMark+render.OneLine(name, 0)))
	}
}

// command writes a command of several lines, line by line.
func (r *reader) command(text string) {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	hidden := 0
	if !r.o.Full && len(lines) > foldedDiff+1 {
		hidden = len(lines) - foldedDiff
		lines = lines[:foldedDiff]
	}
	r.text(indent+indent, strings.Join(lines, "\n"), "")
	if hidden > 0 {
		r.more(indent+indent, hidden)
	}
}

// indentedJSON returns arguments as JSON or, if that is impossible, in Go's words.
func indentedJSON(v any) string {
	text, err := render.IndentJSON(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return text
}

func (r *reader) todos(todos []render.Todo) {
	marks := map[render.TodoState]string{render.TodoDone: "☑ ", render.TodoActive: "▶ ", render.TodoOpen: "☐ "}
	for _, todo := range todos {
		c := Colour("")
		if todo.State == render.TodoDone {
			c = Dim
		}
		r.line(indent, indent, r.Paint(c, marks[todo.State]+r.fitLine(render.OneLine(todo.Text, 0), 6)))
	}
}

// edits writes what a call does to files as a diff.
func (r *reader) edits(edits []render.Edit) {
	for i := range edits {
		e := &edits[i]
		if len(edits) > 1 {
			r.line(indent, indent, r.Paint(Bold, r.fitLine(render.EditsGist(edits[i:i+1]), 4)))
		}
		rows := e.Rows()
		hidden := 0
		if !r.o.Full && len(rows) > foldedDiff+1 {
			hidden = len(rows) - foldedDiff
			rows = rows[:foldedDiff]
		}
		for _, row := range rows {
			r.diffLine(row)
		}
		if hidden > 0 {
			r.more(indent+indent, hidden)
		}
	}
}

func (r *reader) diffLine(l render.DiffLine) {
	c := Colour("")
	switch l.Op {
	case '+':
		c = Green
	case '-':
		c = Red
	case '@':
		c = Dim
	}
	text := strings.ReplaceAll(plain.Text(string(l.Op)+l.Text), "\t", "    ")
	if l.Op == '@' {
		text = strings.TrimSpace("⋮ " + strings.TrimPrefix(text, "@"))
	}
	if r.o.Full {
		r.text(indent+indent, text, c)
		return
	}
	r.line(indent, indent, r.Paint(c, strings.TrimRight(r.fitLine(text, 4), " ")))
}

// more says that lines were folded away.
func (r *reader) more(before string, n int) {
	text := "… " + render.Counted(n, "more line", "more lines")
	if r.o.Hints.Folded != "" {
		text += " (" + r.o.Hints.Folded + ")"
	}
	r.line(before, r.Paint(Dim, r.fitLine(text, ansi.StringWidth(before))))
}

func (r *reader) result(t *session.ToolResultContent) {
	if r.alone != nil && r.alone.Tools == Folded {
		r.line(indent, r.Paint(Yellow, "← "), r.outcome(t))
		return
	}
	if name := r.tools[t.ToolUseID]; name != "" || t.IsError {
		line := r.Paint(Yellow, strings.TrimRight("← "+render.OneLine(name, 0), " "))
		if t.IsError {
			line += " " + r.Paint(Red, "error")
		}
		r.line(indent, line)
	}
	r.answer(t)
}

// answer writes what a tool answered.
func (r *reader) answer(t *session.ToolResultContent) {
	if t.Content != "" {
		r.output(t.Content)
	}
	for i := range t.Parts {
		if t.Parts[i].Text == nil { // its text is in Content
			r.block(&t.Parts[i])
		}
	}
}

// output writes what a tool or a command printed, or the first lines of it.
func (r *reader) output(text string) {
	bar := indent + r.Paint(Dim, "│ ")
	text = strings.Trim(text, "\n")
	shown, hidden := 1+strings.Count(text, "\n"), 0
	if !r.o.Full && shown > foldedRows+1 {
		shown, hidden = foldedRows, shown-foldedRows
	}
	for row := range strings.SplitSeq(text, "\n") {
		if shown--; shown < 0 {
			break
		}
		if !r.o.Full {
			row = r.fitLine(strings.ReplaceAll(plain.Text(row), "\t", "    "), 4)
		}
		r.text(bar, row, "")
	}
	if hidden > 0 {
		r.more(bar, hidden)
	}
}
