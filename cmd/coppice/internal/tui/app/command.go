package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"mvdan.cc/sh/v3/shell"
	"mvdan.cc/sh/v3/syntax"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/list"
	"github.com/coppice-dev/coppice/render/plain"
)

// subject is a room that is about a session: % in a command stands for it.
type subject interface {
	room
	session() string // its id, or "" if nothing is selected
}

// about returns the id of the session that the room is about, or "".
func (a *App) about() string {
	if s, ok := a.room().(subject); ok {
		return s.session()
	}
	return ""
}

// askCommand asks for a command of the command line.
func (a *App) askCommand() tea.Cmd {
	p := a.ask(":", "", a.command)
	names := make([]string, len(a.Commands))
	for i, c := range a.Commands {
		names[i] = c.Name
	}
	a.commands.rewind()
	p.earlier = &a.commands
	p.input.suggest(names)
	return nil
}

// command runs a command of the command line on the same home. % is the session that the room is
// about.
func (a *App) command(line string) tea.Cmd {
	words, err := splitLine(strings.TrimPrefix(line, "coppice "))
	if err != nil {
		a.fail(err)
		return nil
	}
	if len(words) == 0 {
		return nil
	}
	if id := a.about(); id != "" {
		for i := range words {
			if words[i] == "%" {
				words[i] = id
			}
		}
	} else if slices.Contains(words, "%") {
		a.say("% stands for the selected session, and none is selected")
		return nil
	}
	at := slices.IndexFunc(a.Commands, func(c Command) bool { return c.Name == words[0] })
	switch {
	case words[0] == "q" || words[0] == "quit":
		return tea.Quit
	case at < 0:
		a.fail(fmt.Errorf("%q is not a command; ? lists keys, and :help lists commands", words[0]))
		return nil
	case a.Commands[at].Talks:
		return a.talk(a.Program(words...))
	}
	return a.open(newOutput(a, line, words))
}

// splitLine splits a line into words, as a shell does.
func splitLine(line string) ([]string, error) {
	words, err := shell.Fields(line, nil)
	parse, ok := errors.AsType[syntax.ParseError](err)
	switch {
	case err == nil:
		return words, nil
	case ok && strings.Contains(parse.Text, "closing quote"):
		return nil, errors.New("a quote is not closed")
	}
	return nil, errors.New("this is not a shell: there are no pipes, files or other commands here; put what is meant as text in quotes")
}

// output is the room in which what a command printed can be read.
type output struct {
	listing
	line  string
	words []string
	ran   bool
	rows  []string
}

// printed is what a command printed.
type printed struct {
	text string
	err  error
}

func newOutput(a *App, line string, words []string) *output {
	o := &output{listing: listing{base: newBase(a)}, line: line, words: words}
	o.list = list.New(func(i int) []string { return o.rows[i : i+1] })
	return o
}

func (o *output) title() string { return ":" + o.line }

func (o *output) enter() tea.Cmd {
	if o.ran {
		return nil
	}
	o.ran = true
	width := o.width
	return o.call(func(ctx context.Context) tea.Msg {
		var text bytes.Buffer
		err := o.Run(ctx, o.words, &text, width)
		return printed{text.String(), err}
	})
}

func (o *output) update(msg tea.Msg) tea.Cmd {
	if p, ok := msg.(printed); ok {
		text := strings.TrimRight(plain.Again(p.text), "\n")
		if text == "" {
			text = "It printed nothing."
		}
		o.rows = strings.Split(strings.ReplaceAll(text, "\t", "    "), "\n")
		o.list.SetCount(len(o.rows))
		o.fail(p.err)
		o.record(done{what: "ran :" + o.line, why: "what a command did is not undone here"})
	}
	return nil
}

func (o *output) keys() []key { return listKeys(o.list) }

func (o *output) view(_, height int) ([]string, tea.Position) {
	o.list.SetHeight(height)
	rows, y := o.list.View()
	return rows, tea.Position{Y: y}
}
