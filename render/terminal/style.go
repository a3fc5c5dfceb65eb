// Package terminal draws conversations on a terminal, or for a pipe that a person reads: a
// whole conversation, its tree, or single entries on a line.
//
// Its output is painted text, which must pass through a [plain.Writer] before it reaches a
// terminal. That writer also replaces anything that could act on the terminal, so that the
// text of a session cannot.
//
// The package knows no commands. Where a reader could go next, it asks its caller for the
// words: see [Hints].
package terminal

import (
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
)

// Style says what the terminal can do and what the reader wants. The zero value is
// for a pipe: no colours, lines as long as they are, exact times, and text as it was
// written.
type Style struct {
	// Color paints what is drawn, and draws Markdown: headings, lists and code.
	Color bool
	Width int // how many columns there are; 0 for as many as one likes
	// Now makes times relative to it: "5 min ago". Zero asks for exact times.
	Now time.Time
}

// Hints are the words with which a face says how to see more. Any may be left out.
type Hints struct {
	// Branch returns the command that shows the conversation up to an entry, which
	// is given by its short name.
	Branch func(entry string) string
	// Whole is the command that shows all of the path.
	Whole string
	// Folded says how to see the lines that were folded away.
	Folded string
}

// Colour is how text is painted: the parameters of an ANSI sequence.
type Colour string

// The colours. There are few, and each means one thing.
const (
	Red    Colour = "31" // something is wrong, or removed
	Green  Colour = "32" // the user, or added
	Yellow Colour = "33" // tools, and what deserves a look
	Blue   Colour = "34" // summaries and the system
	Cyan   Colour = "36" // the model, and code
	Bold   Colour = "1"
	Dim    Colour = "2"
)

// Paint colours text, if colours are wanted.
func (s Style) Paint(c Colour, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return plain.Paint(string(c), text)
}

// When says when something happened: as a person would, or exactly.
func (s Style) When(at time.Time) string {
	switch {
	case at.IsZero():
		return "-"
	case s.Now.IsZero():
		return at.UTC().Format(time.RFC3339)
	}
	return render.Ago(at, s.Now)
}

// Row is an entry on one line: something, the word for its kind, something else,
// and as much of what it says as fits. before and between may be painted; name is
// how to show the ids of other entries.
func (s Style) Row(e *session.Entry, before, between string, name func(id string) string) string {
	kind := render.Kind(e)
	line := before + s.Paint(KindColour(kind), Pad(kind, render.KindWidth)) + "  " + between
	room := 0
	if s.Width > 0 {
		room = max(s.Width-ansi.StringWidth(line), 8)
	}
	return strings.TrimRight(line+render.GistNaming(e, room, name), " ")
}

// KindColour is the colour of the word for an entry's kind.
func KindColour(kind string) Colour {
	switch kind {
	case session.RoleUser, "command":
		return Green
	case session.RoleAssistant:
		return Cyan
	case session.RoleTool:
		return Yellow
	case session.RoleSystem, "compaction", "summary", "merge":
		return Blue
	case "gap":
		return Red
	}
	return Dim
}

// Pad fills text up to a width.
func Pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-ansi.StringWidth(text), 0))
}
