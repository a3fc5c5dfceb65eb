// Package card draws the card of a conversation: what a person needs to take it up again.
package card

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
)

const (
	labelWidth  = 8
	answerLines = 6
	maxTodos    = 8
	maxFiles    = 8
	maxTools    = 6
)

// Lines returns the card as lines of painted text, none wider than the style says.
func Lines(c *home.Card, s terminal.Style) []string {
	d := &drawing{s: s}
	d.row("", titleOf(c), 2, terminal.Bold)
	d.row("", strings.Join(facts(c, s), " · "), 3, terminal.Dim)
	if c.First != titleOf(c) {
		d.row("asked", c.First, 3)
	}
	if c.Last != c.First {
		d.row("last", c.Last, 3)
	}
	d.open(c)
	d.todos(c.Todos)
	if c.Step != nil {
		d.row("step", d.step(c.Step), 3)
	}
	d.answer(c.Answer)
	d.files(c)
	d.row("tools", counts(c.Session.Tools), 2)
	d.row("tags", strings.Join(c.Session.Tags, " "), 2)
	return d.lines
}

func titleOf(c *home.Card) string {
	if title := render.OneLine(c.Session.Title, 0); title != "" {
		return title
	}
	return render.Untitled
}

// facts are the numbers of a conversation, the most telling first.
func facts(c *home.Card, s terminal.Style) []string {
	i := &c.Session
	facts := []string{s.When(i.Updated), render.OneLine(i.Agent, 0)}
	if i.Project != "" {
		facts = append(facts, render.OneLine(i.Project, 0))
	}
	facts = append(facts, render.Counted(i.Messages, "message", "messages"))
	if i.Branches > 1 {
		facts = append(facts, render.Counted(i.Branches, "branch", "branches"))
	}
	if c.Spent.Tokens() > 0 {
		facts = append(facts, render.Count(c.Spent.Tokens())+" tokens", home.CostOf(&c.Spent))
	}
	if c.Model != "" {
		facts = append(facts, render.OneLine(c.Model, 0))
	}
	switch {
	case i.Context > 0 && c.Window > 0:
		facts = append(facts, fmt.Sprintf("context %d%% of %s", i.Context*100/c.Window, render.Count(c.Window)))
	case i.Context > 0:
		facts = append(facts, "context "+render.Count(i.Context))
	}
	return facts
}

// drawing is a card that is being drawn.
type drawing struct {
	s     terminal.Style
	lines []string
}

// row adds a labelled text, wrapped into at most so many lines. The text may be painted word by
// word, or else it gets a colour as a whole.
func (d *drawing) row(label, text string, most int, colours ...terminal.Colour) {
	if text == "" {
		return
	}
	indent := strings.Repeat(" ", labelWidth)
	if label == "" {
		indent = ""
	}
	rows := []string{text}
	if d.s.Width > 0 {
		rows = terminal.Wrap(text, d.s.Width-len(indent))
	}
	if len(rows) > most {
		rows = append(rows[:most-1], ansi.Truncate(rows[most-1]+" "+rows[most], max(d.s.Width-len(indent), 16), "…"))
	}
	for i, row := range rows {
		for _, c := range colours {
			row = d.s.Paint(c, row)
		}
		if i == 0 && label != "" {
			d.lines = append(d.lines, d.s.Paint(terminal.Dim, terminal.Pad(label, labelWidth))+row)
			continue
		}
		d.lines = append(d.lines, indent+row)
	}
}

func (d *drawing) step(step *home.CardStep) string {
	text := step.Gist
	switch {
	case step.Failed:
		text += " " + d.s.Paint(terminal.Red, "✗") + " " + step.Outcome
	case step.Outcome != "":
		text += " " + d.s.Paint(terminal.Green, "✓") + " " + step.Outcome
	}
	return text
}

// open says what waits.
func (d *drawing) open(c *home.Card) {
	if c.Working != nil {
		d.row("now", render.OneLine(c.Working.Program, 0)+" works on it, since "+d.s.When(c.Working.Since), 2, terminal.Green)
	}
	for i := range c.Open {
		words := "has no result: "
		if c.Open[i].State == agent.CallWaiting {
			words = "waits for approval: "
		}
		d.row("open", words+c.Open[i].Gist, 2, terminal.Yellow)
	}
	if c.Unfinished && len(c.Open) == 0 {
		d.row("open", "the model has not answered yet", 1, terminal.Yellow)
	}
}

// todos shows what is left to do.
func (d *drawing) todos(todos []home.CardTodo) {
	label, done, shown := "todo", 0, 0
	for _, t := range todos {
		if t.State == render.TodoDone {
			done++
		}
	}
	if done > 0 {
		d.row(label, fmt.Sprintf("%d of %d done", done, len(todos)), 1)
		label = " "
	}
	for _, t := range todos {
		mark := "○ "
		switch t.State {
		case render.TodoDone:
			continue
		case render.TodoActive:
			mark = d.s.Paint(terminal.Yellow, "▸") + " "
		}
		if shown++; shown > maxTodos {
			d.row(label, fmt.Sprintf("and %d more", len(todos)-done-maxTodos), 1, terminal.Dim)
			break
		}
		d.row(label, mark+t.Text, 2)
		label = " "
	}
}

// answer shows the beginning of the last answer, as it was written.
func (d *drawing) answer(text string) {
	label, left := "answer", answerLines
	for line := range strings.SplitSeq(text, "\n") {
		if line = render.OneLine(line, 0); line == "" {
			continue
		}
		before := len(d.lines)
		d.row(label, line, left)
		if left -= len(d.lines) - before; left <= 0 {
			break
		}
		label = " "
	}
}

func (d *drawing) files(c *home.Card) {
	label := "files"
	for i, f := range c.Files {
		if i == maxFiles {
			d.row(label, fmt.Sprintf("and %d more", len(c.Files)-maxFiles), 1, terminal.Dim)
			break
		}
		path := render.OneLine(f.Path, 0)
		if dir := strings.TrimRight(c.Session.CWD, "/") + "/"; dir != "/" {
			path = strings.TrimPrefix(path, render.OneLine(dir, 0))
		}
		if f.Changes > 1 {
			path += d.s.Paint(terminal.Dim, fmt.Sprintf(" ×%d", f.Changes))
		}
		d.row(label, path, 1)
		label = " "
	}
}

func counts(list []home.Count) string {
	var words []string
	for _, c := range list[:min(len(list), maxTools)] {
		words = append(words, fmt.Sprintf("%s %d", render.OneLine(c.Name, 0), c.Count))
	}
	return strings.Join(words, ", ")
}
