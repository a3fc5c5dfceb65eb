package app

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/render/terminal"
)

// style is how a room draws.
type style struct {
	terminal.Style
	quiet bool // another room has the keys
}

// selected marks a row as the selected one, over its whole width. Without colours, a mark at its
// beginning says so.
func (s style) selected(row string, is bool) string {
	switch {
	case !is:
		return row
	case !s.Color && s.quiet:
		return "-" + strings.TrimPrefix(row, " ")
	case !s.Color:
		return ">" + strings.TrimPrefix(row, " ")
	}
	look := "7"
	if s.quiet {
		look = "2;7"
	}
	return plain.Paint(look, terminal.Pad(ansi.Strip(ansi.Truncate(row, s.Width, "…")), s.Width))
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
