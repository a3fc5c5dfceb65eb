package app

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/render/terminal"
)

// style is how a room draws.
type style struct{ terminal.Style }

// selected marks a row as the selected one, over its whole width. Without colours, a mark at its
// beginning says so.
func (s style) selected(row string, is bool) string {
	switch {
	case !is:
		return row
	case !s.Color:
		return ">" + strings.TrimPrefix(row, " ")
	}
	return plain.Paint("7", terminal.Pad(ansi.Strip(ansi.Truncate(row, s.Width, "…")), s.Width))
}

// beside puts two columns of rows side by side, with a line between them.
func (s style) beside(left []string, width int, right []string, height int) []string {
	rows := make([]string, height)
	line := s.Paint(terminal.Dim, "│")
	for i := range rows {
		var l, r string
		if i < len(left) {
			l = ansi.Truncate(left[i], width, "…")
		}
		if i < len(right) {
			r = right[i]
		}
		rows[i] = terminal.Pad(l, width) + line + r
	}
	return rows
}

// nothing is in the place of a conversation that has no entries, or was not read yet.
func (s style) nothing(known bool) []string {
	words := "  Reading …"
	if known {
		words = "  Nothing was said yet."
	}
	return []string{"", s.Paint(terminal.Dim, words)}
}

// above puts rows above the last one of a screen.
func above(last string, rows []string, height int) []string {
	screen := make([]string, height)
	copy(screen, rows)
	screen[height-1] = last
	return screen
}
