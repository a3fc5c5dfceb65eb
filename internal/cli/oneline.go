package cli

import (
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render/plain"
)

// collapsed puts text onto one line. If n is not zero, only so much is returned that
// it is more than n columns wide: of a tool's output of many megabytes a line shows
// the beginning, and the rest need not be looked at.
func collapsed(text string, n int) string {
	if n > 0 {
		for size := 4*n + 64; size < len(text); size *= 2 {
			for size < len(text) && !utf8.RuneStart(text[size]) {
				size++
			}
			// What is joined to the last character may change its width.
			if line := plain.Line(text[:size]); ansi.StringWidth(line) > n+8 {
				return line
			}
		}
	}
	return plain.Line(text)
}
