package html

import (
	"bufio"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/render/code"
	"github.com/coppice-dev/coppice/render/plain"
)

// writer writes the page. There are two ways to put something on it: raw, for our own
// markup, which is a constant or a number in all calls; and the other methods, for text
// by strangers, which they escape. Errors show when it is flushed.
type writer struct {
	*bufio.Writer
	colourable int // how many bytes of code may still be coloured
}

func (w *writer) raw(markup ...string) {
	for _, s := range markup {
		_, _ = w.WriteString(s)
	}
}

func (w *writer) number(n int) { w.raw(strconv.Itoa(n)) }

// text writes text without characters that could act, such as what package render returns.
func (w *writer) text(s string) {
	from := 0
	for i := range len(s) {
		var entity string
		switch s[i] {
		case '&':
			entity = "&amp;"
		case '<':
			entity = "&lt;"
		case '>':
			entity = "&gt;"
		case '"':
			entity = "&#34;"
		case '\'':
			entity = "&#39;"
		default:
			continue
		}
		_, _ = w.WriteString(s[from:i])
		_, _ = w.WriteString(entity)
		from = i + 1
	}
	_, _ = w.WriteString(s[from:])
}

// maxPiece is how much of a long text is cleaned and written at a time.
const maxPiece = 64 << 10

// output writes what a program printed, piece by piece: it may be large. Colours
// for a terminal are left out.
func (w *writer) output(s string) {
	for len(s) > 0 {
		n := cut(s)
		piece := s[:n]
		if strings.Contains(piece, "\x1b[") {
			piece = plain.Strip(piece)
		}
		w.text(plain.Text(piece))
		s = s[n:]
	}
}

// cut returns the length of the next piece of a text. It splits neither a character nor
// a line end, and does not separate a joiner from what comes before it, which decides
// whether it is harmless.
func cut(s string) int {
	n := min(maxPiece, len(s))
	for n < len(s) && (!utf8.RuneStart(s[n]) || s[n-1] == '\r' || strings.HasPrefix(s[n:], "\u200c") || strings.HasPrefix(s[n:], "\u200d")) {
		n++
	}
	return n
}

// kinds are the classes of the parts of code.
var kinds = [...]string{
	code.Keyword: "k", code.Type: "t", code.Function: "f", code.String: "s", code.Number: "n", code.Comment: "c",
	code.Name: "a", code.Heading: "h", code.Inserted: "i", code.Deleted: "d",
}

// maxColoured is how many bytes of code on a page are coloured, from the beginning. Most
// pages have less; in a larger one the browser should not have to lay out every token.
const maxColoured = 1 << 20

// code writes a piece of code in colours. It must not contain characters that act.
func (w *writer) code(language, s string) {
	if w.colourable < len(s) || !code.Known(language) {
		w.text(s)
		return
	}
	w.colourable -= len(s)
	for kind, part := range code.Parts(language, s) {
		if kind == code.Plain {
			w.text(part)
			continue
		}
		w.raw("<i class=", kinds[kind], ">")
		w.text(part)
		w.raw("</i>")
	}
}
