package terminal

import (
	"regexp"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
)

// Wrap breaks a line, which may be painted word by word, between words, into rows of at
// most width columns. Rows after the first begin where the text of the line begins.
func Wrap(line string, width int) []string { return wrap(line, max(width, 16)) }

// wrap breaks a line, which may be painted word by word, into rows of at most width
// columns. It breaks between words only: half a path or half a flag cannot be
// copied. A word that is longer than a row is cut. Rows after the first begin where
// the text of the line begins, behind its indentation and the mark of a list.
func wrap(line string, width int) []string {
	if columns(line) <= width {
		return []string{strings.TrimRight(line, " ")}
	}
	hang := strings.Repeat(" ", min(hangingIndent(line), width/2))
	var rows []string
	row, used := "", 0
	next := func() {
		rows = append(rows, strings.TrimRight(row, " "))
		row, used = hang, len(hang)
	}
	for _, word := range words(line) {
		n := columns(strings.TrimRight(word, " "))
		if used+n > width && used > len(hang) {
			next()
		}
		if used+n > width {
			pieces := strings.Split(ansi.Hardwrap(word, width-len(hang), true), "\n")
			for _, piece := range pieces[:len(pieces)-1] {
				row += piece
				next()
			}
			word = pieces[len(pieces)-1]
		}
		row += word
		used += columns(word)
	}
	return append(rows, strings.TrimRight(row, " "))
}

// words splits a line into words, each with the spaces after it. Leading spaces belong
// to the first.
func words(line string) []string {
	var list []string
	at := len(line) - len(strings.TrimLeft(line, " "))
	for start := 0; start < len(line); {
		space := strings.IndexByte(line[at:], ' ')
		if space < 0 {
			return append(list, line[start:])
		}
		at += space
		for at < len(line) && line[at] == ' ' {
			at++
		}
		list = append(list, line[start:at])
		start = at
	}
	return list
}

var listMark = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ *(?:(?:[-*+•]|\d{1,3}[.)]) +(?:\[[ xX]\] +)?)?`) })

// hangingIndent is the width of the marks and spaces before the text of a line.
func hangingIndent(line string) int { return len(listMark().FindString(line)) }

// columns is the width of a text. Measuring is slow, and most words do not need it.
func columns(text string) int {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return ansi.StringWidth(text)
		}
	}
	return len(text)
}
