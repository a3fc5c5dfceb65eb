package render

import (
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render/plain"
)

// OneLine puts text onto one line of at most n columns (0: any number), with an
// ellipsis where it was cut. Nothing in it can act on a terminal.
func OneLine(text string, n int) string {
	text = collapsed(text, n)
	if n > 0 {
		return ansi.Truncate(text, n, "…")
	}
	return text
}

// collapsed puts text onto one line. If n is not zero, it returns only a little more
// than n columns: a line shows the beginning of a tool's output, which may have many
// megabytes, so it must not look at the rest.
func collapsed(text string, n int) string {
	if n > 0 {
		for size := 4*n + 64; size < len(text); size *= 2 {
			for size < len(text) && !utf8.RuneStart(text[size]) {
				size++
			}
			// The next character may combine with the last one and change its width.
			if line := plain.Line(text[:size]); ansi.StringWidth(line) > n+8 {
				return line
			}
		}
	}
	return plain.Line(text)
}
