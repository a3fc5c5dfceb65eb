package app

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render/terminal"
)

// prompt is a question in the last row: for a text, or with a few answers of one key each.
type prompt struct {
	app     *App
	words   string
	input   *box                      // nil for a question with answers
	done    func(text string) tea.Cmd // of a text
	changed func(text string) tea.Cmd // of a text that has an effect while it is typed; or nil
	left    func() tea.Cmd            // when the text is not wanted; or nil
	earlier *history                  // what was typed before; or nil
	answers []answer
}

// history is what was typed in one place, the latest last.
type history struct {
	lines []string
	at    int // the one that is shown; len(lines) is none of them
}

func (h *history) add(line string) {
	if line = strings.TrimSpace(line); line != "" {
		h.lines = append(slices.DeleteFunc(h.lines, func(other string) bool { return other == line }), line)
	}
	h.rewind()
}

func (h *history) rewind() { h.at = len(h.lines) }

// older returns the one before, and "" after the first one. Then it begins again.
func (h *history) older() string {
	h.at = (h.at + len(h.lines)) % (len(h.lines) + 1)
	return h.shown()
}

// newer returns the one after.
func (h *history) newer() string {
	h.at = (h.at + 1) % (len(h.lines) + 1)
	return h.shown()
}

func (h *history) shown() string {
	if h.at == len(h.lines) {
		return ""
	}
	return h.lines[h.at]
}

// answer is one of the answers to a question.
type answer struct {
	key, help string
	do        func() tea.Cmd
}

// ask asks for a text, which begins with what is given.
func (a *App) ask(words, given string, done func(text string) tea.Cmd) *prompt {
	a.prompt = &prompt{app: a, words: words, input: &box{}, done: done}
	a.prompt.input.set(given)
	return a.prompt
}

// choose asks a question with answers of one key each. Escape is always one of them.
func (a *App) choose(words string, answers ...answer) {
	a.prompt = &prompt{app: a, words: words, answers: answers}
}

// confirm asks before something is done that cannot be undone.
func (a *App) confirm(words, yes string, do func() tea.Cmd) {
	a.choose(words, answer{"y", yes, do})
}

func (p *prompt) press(msg tea.KeyPressMsg) tea.Cmd {
	if msg.String() == "esc" {
		p.app.prompt = nil
		if p.left != nil {
			return p.left()
		}
		return nil
	}
	for _, answer := range p.answers {
		if msg.String() == answer.key {
			p.app.prompt = nil
			return answer.do()
		}
	}
	if p.input == nil {
		return nil
	}
	if p.earlier != nil && (msg.String() == "up" || msg.String() == "down") {
		line := p.earlier.older
		if msg.String() == "down" {
			line = p.earlier.newer
		}
		p.input.set(line())
		return nil
	}
	if msg.String() == "enter" {
		p.app.prompt = nil
		if p.earlier != nil {
			p.earlier.add(p.input.text())
		}
		return p.done(strings.TrimSpace(p.input.text()))
	}
	return p.update(msg)
}

func (p *prompt) update(msg tea.Msg) tea.Cmd {
	if p.input == nil {
		return nil
	}
	before := p.input.text()
	p.input.update(msg)
	if after := p.input.text(); after != before && p.changed != nil {
		return p.changed(after)
	}
	return nil
}

// view returns the row and the column of the cursor.
func (p *prompt) view(width int) (string, int) {
	s := p.app.style(width)
	row := " " + s.Paint(terminal.Bold, p.words) + " "
	if p.input == nil {
		for _, answer := range p.answers {
			row += " " + s.Paint(terminal.Bold, keyName(answer.key)) + " " + answer.help + " "
		}
		row += " " + s.Paint(terminal.Bold, "Esc") + " cancel"
		if ansi.StringWidth(row) > width { // the answers say what is asked
			row = strings.TrimSuffix(strings.TrimPrefix(row, " "+s.Paint(terminal.Bold, p.words)+" "), " cancel")
			row = strings.ReplaceAll(row, "  ", " ")
		}
		return row, 0
	}
	used := ansi.StringWidth(row)
	text, at := p.input.view(s, max(width-used, 8))
	return row + text, used + at
}
