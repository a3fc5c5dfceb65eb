package cli

import (
	"regexp"
	"strings"

	"github.com/coppice-dev/coppice/render/plain"
)

// What the HTML export understands of Markdown.

// plainLines has no line ends but newlines, and no control characters: a document
// is often printed to a terminal.
func plainLines(text string) string { return plain.Text(text) }

// fence is the mark that begins a block of code.
type fence struct{ mark string }

var (
	fenceLine   = regexp.MustCompile("^ {0,3}(`{3,}[^`]*|~{3,}.*)$")
	headingLine = regexp.MustCompile(`^ {0,3}(#{1,6})([ \t]|$)`)
)

func openFence(line string) fence {
	if !fenceLine.MatchString(line) {
		return fence{}
	}
	line = strings.TrimLeft(line, " ")
	return fence{line[:len(line)-len(strings.TrimLeft(line, line[:1]))]}
}

func (f fence) closedBy(line string) bool {
	trimmed := strings.TrimLeft(line, " ")
	if len(line)-len(trimmed) > 3 {
		return false
	}
	trimmed = strings.TrimRight(trimmed, " \t")
	return len(trimmed) >= len(f.mark) && strings.Trim(trimmed, f.mark[:1]) == ""
}
