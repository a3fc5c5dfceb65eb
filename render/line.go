package render

import (
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"

	"github.com/coppice-dev/coppice/render/plain"
)

// OneLine puts text onto one line of at most n columns (0: any number), with an
// ellipsis where it was cut. Nothing in it can act on a terminal.
func OneLine(text string, n int) string {
	text = collapsed(text, n)
	if n <= 0 {
		return text
	}
	if columns := asciiColumns(text); columns > n {
		return text[:n-1] + "…"
	} else if columns == len(text) {
		return text
	}
	return displaywidth.TruncateString(text, n, "…")
}

// asciiColumns returns how many columns there are before the first character that is not plain
// ASCII. Most lines have no others, and measuring those takes much longer.
func asciiColumns(line string) (n int) {
	for n < len(line) && line[n] >= ' ' && line[n] <= '~' {
		n++
	}
	return n
}

// collapsed puts text onto one line. If n is not zero, it returns only a little more
// than n columns: a line shows the beginning of a tool's output, which may have many
// megabytes, so it must not look at the rest.
func collapsed(text string, n int) string {
	if n > 0 {
		for size := 2*n + 64; size < len(text); size *= 2 {
			for size < len(text) && !utf8.RuneStart(text[size]) {
				size++
			}
			// The next character may combine with the last one and change its width.
			line := plain.Line(text[:size])
			if asciiColumns(line) > n+8 || displaywidth.String(line) > n+8 {
				return line
			}
		}
	}
	return plain.Line(text)
}
