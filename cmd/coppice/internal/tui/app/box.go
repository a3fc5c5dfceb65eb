package app

import (
	"math"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/line"
	"github.com/coppice-dev/coppice/render/terminal"
)

// box is a row into which something is typed. It may offer what the text could become. The zero
// value is empty and offers nothing.
type box struct {
	line   line.Editor
	offers []string
	offer  int // which of the offers that fit is shown
	left   int // the first column that is shown
}

func (b *box) text() string { return b.line.Text() }

// set replaces the text and puts the cursor behind it.
func (b *box) set(text string) {
	b.line.Set(text)
	b.offer = 0
}

// suggest says what the text may become.
func (b *box) suggest(offers []string) { b.offers, b.offer = offers, 0 }

// fitting returns the offers that begin with what was typed, in any case of its letters.
func (b *box) fitting() (fit []string) {
	typed := b.text()
	for _, offer := range b.offers {
		if typed != "" && len(offer) > len(typed) && strings.EqualFold(offer[:len(typed)], typed) {
			fit = append(fit, offer)
		}
	}
	return fit
}

// suggestion is what would be added to the text, or "".
func (b *box) suggestion() string {
	fit := b.fitting()
	if len(fit) == 0 {
		return ""
	}
	return fit[b.offer%len(fit)][len(b.text()):]
}

// accept adds what is suggested to the text. It returns false if nothing is.
func (b *box) accept() bool {
	rest := b.suggestion()
	if rest != "" {
		b.set(b.text() + rest)
	}
	return rest != ""
}

// update types what a key or the clipboard has into the box.
func (b *box) update(msg tea.Msg) {
	var k line.Key
	switch msg := msg.(type) {
	case tea.PasteMsg:
		k = line.Key{Kind: line.Paste, Text: oneRow(msg.Content)}
	case tea.KeyPressMsg:
		k = line.Pressed(msg.Key().Keystroke(), msg.Text)
	}
	switch k.Kind {
	case line.Tab:
		b.accept()
		return
	case line.Up:
		b.offer += max(len(b.fitting())-1, 0)
		return
	case line.Down:
		b.offer++
		return
	case line.Enter, line.NewLine: // it has one row
		return
	}
	before := b.text()
	b.line.Press(k)
	if b.text() != before {
		b.offer = 0
	}
}

// oneRow makes one line of what was copied from several.
func oneRow(text string) string {
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ").Replace(text)
}

// view returns what is in the box, at most width columns of it, and the column of the cursor.
func (b *box) view(s style, width int) (string, int) {
	rows, _, column := b.line.Rows("", math.MaxInt, 1)
	b.left = min(b.left, column)
	if column >= b.left+width {
		b.left = column - width + 1
		if ansi.StringWidth(ansi.Truncate(rows[0], b.left, "")) < b.left { // in the middle of a wide character
			b.left++
		}
	}
	text := ansi.Cut(rows[0], b.left, b.left+width)
	rest := ansi.Truncate(b.suggestion(), max(width-ansi.StringWidth(text), 0), "")
	return text + s.Paint(terminal.Dim, rest), column - b.left
}
