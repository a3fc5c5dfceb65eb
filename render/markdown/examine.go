package markdown

import (
	"bytes"
	"html"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// findings is what a parser says about a text.
type findings struct {
	escapes   []int // the positions of characters that must lose their meaning
	lost      bool  // something is out of place, but we do not know where
	contained bool  // a heading below the text is still a heading
}

// dialects are what renderers understand. Tables are split into rows and cells before
// code spans are found, so what is code in one dialect may be a tag in another. A text
// must be harmless in all of them.
var dialects = sync.OnceValue(func() []parser.Parser {
	return []parser.Parser{
		goldmark.New().Parser(),
		goldmark.New(goldmark.WithExtensions(extension.Table)).Parser(),
		goldmark.New(goldmark.WithExtensions(extension.Table, extension.DefinitionList, extension.Footnote)).Parser(),
	}
})

// below is put after the text, to see whether the text swallows it.
const below = "\n\n## below\n"

// examine looks for what is out of place in a text.
func examine(guest string) findings {
	e := examiner{source: []byte(guest + below), end: len(guest), found: findings{contained: true}}
	e.code = make([]uint8, len(e.source))
	for _, dialect := range dialects() {
		doc := dialect.Parse(text.NewReader(e.source))
		e.below, _ = doc.LastChild().(*ast.Heading)
		e.found.contained = e.found.contained && e.below != nil && e.below.Level == 2 && e.below.Pos() > e.end
		_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if entering {
				e.node(n)
			}
			return ast.WalkContinue, nil
		})
	}
	if !e.blocks { // the content of an HTML block reads differently once it is not one
		e.prose()
	}
	return e.found
}

type examiner struct {
	source []byte
	end    int          // of the text in the source
	below  *ast.Heading // the last heading of the document, which should be ours
	code   []uint8      // for each byte, in how many dialects it is shown literally
	blocks bool         // there is an HTML block
	found  findings
}

// escape records that the character at a position must lose its meaning.
func (e *examiner) escape(at int) {
	if at < 0 || at >= e.end {
		e.found.lost = true // tabs can mislead the parser about where it is
		return
	}
	e.found.escapes = append(e.found.escapes, at)
}

// shown records that a part of the source has no meaning in a dialect.
func (e *examiner) shown(from, to int) {
	for i := max(from, 0); i < min(to, len(e.code)); i++ {
		e.code[i]++
	}
}

func (e *examiner) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		e.heading(n)
	case *ast.ThematicBreak:
		e.escape(n.Pos())
	case *ast.HTMLBlock:
		e.htmlBlock(n)
	case *ast.FencedCodeBlock:
		e.fencedCode(n)
	case *ast.CodeBlock:
		e.indentedCode(n)
	case *ast.CodeSpan:
		e.codeSpan(n)
	case *ast.AutoLink:
		e.autoLink(n)
	case *ast.Image:
		e.escape(n.Pos()) // a viewer would fetch an image at once; a link is not fetched
	case *ast.Link:
		if !isHarmlessLink(n.Destination) {
			e.escape(n.Pos())
		}
	}
}

// heading handles a line that begins with #, or one with a line of = or - below.
func (e *examiner) heading(n *ast.Heading) {
	if n == e.below && n.Pos() > e.end {
		return
	}
	lines := n.Lines()
	if e.at(n.Pos()) == '#' || lines.Len() == 0 {
		e.escape(n.Pos())
		return
	}
	under := lines.At(lines.Len() - 1).Stop
	for under < e.end && e.source[under-1] != '\n' {
		under++
	}
	e.escape(under + max(bytes.IndexAny(e.source[under:], "=-"), 0))
}

func (e *examiner) at(pos int) byte {
	if pos < 0 || pos >= len(e.source) {
		return 0
	}
	return e.source[pos]
}

// htmlBlock turns the lines of an HTML block into prose. The next round finds the tags
// inside the lines, when it is known what is code there.
func (e *examiner) htmlBlock(n *ast.HTMLBlock) {
	e.blocks = true
	e.escape(n.Pos())
	for _, line := range n.Lines().Sliced(0, n.Lines().Len()) {
		for at := line.Start; at < line.Stop; at++ {
			if c := e.source[at]; c == '<' {
				e.escape(at)
				break
			} else if c != ' ' && c != '\t' {
				break
			}
		}
	}
}

// Renderers do not all agree on what is code, and where they disagree, code for one is
// a tag or a link for another. So code is left alone only where all see it: between
// fences, and in self-contained spans.

func (e *examiner) fencedCode(n *ast.FencedCodeBlock) {
	if n.Info != nil && bytes.ContainsRune(n.Info.Segment.Value(e.source), '|') {
		e.found.lost = true // some renderers see the head of a table
	}
	for _, line := range n.Lines().Sliced(0, n.Lines().Len()) {
		e.shown(line.Start, line.Stop)
	}
}

// indentedCode may be the next paragraph of a list to some renderers.
func (e *examiner) indentedCode(n *ast.CodeBlock) {
	for _, line := range n.Lines().Sliced(0, n.Lines().Len()) {
		if bytes.ContainsAny(line.Value(e.source), "<[#=") {
			e.found.lost = true
		}
	}
}

func (e *examiner) codeSpan(n *ast.CodeSpan) {
	from, to := n.Pos(), n.Pos()
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			to = max(to, t.Segment.Stop)
		}
	}
	if from < 0 || to > e.end {
		e.found.lost = true
		return
	}
	if inside := e.source[from:to]; bytes.ContainsAny(inside, "<[]") && (bytes.ContainsAny(inside, "|\n") || e.afterAddress(from)) {
		for at := from; e.source[at] == '`'; at++ {
			e.escape(at)
		}
		return
	}
	e.shown(from, to)
}

// afterAddress reports whether the word before a position may be an address. Some
// renderers turn that into a link, with everything up to the next space.
func (e *examiner) afterAddress(at int) bool {
	word := e.source[:at]
	word = word[bytes.LastIndexAny(word, " \t\n")+1:]
	return bytes.ContainsAny(word, ":@.")
}

func (e *examiner) autoLink(n *ast.AutoLink) {
	if n.AutoLinkType != ast.AutoLinkEmail && !isHarmlessLink(n.URL(e.source)) {
		e.escape(n.Pos())
		return
	}
	e.shown(n.Pos(), n.Pos()+len("<")+len(n.Label(e.source)))
}

// prose searches everything that is not code for tags, including what a less strict
// renderer would take for one, for links that only such a renderer sees, and for
// definitions of links and footnotes, which affect the whole document.
func (e *examiner) prose() {
	for at := range e.end {
		switch {
		case int(e.code[at]) == len(dialects()):
		case e.source[at] == '<' && opensTag(e.source[at+1]):
			e.escape(at)
		case e.source[at] == ':' && at > 0 && e.source[at-1] == ']':
			e.escape(at)
		case e.source[at] == '(' && at > 0 && e.source[at-1] == ']' && !isHarmlessLink(e.destination(at+1)):
			e.escape(at)
		}
	}
}

// destination returns the target of a link whose address begins at a position.
func (e *examiner) destination(at int) []byte {
	rest := bytes.TrimLeft(e.source[at:min(at+200, e.end)], " \t\n<")
	if end := bytes.IndexAny(rest, " \t\n)>"); end >= 0 {
		return rest[:end]
	}
	return rest
}

func opensTag(next byte) bool {
	return next >= 'a' && next <= 'z' || next >= 'A' && next <= 'Z' || next == '/' || next == '!' || next == '?'
}

// isHarmlessLink reports whether a link leads to a web page, a mail address or
// somewhere in the same place. Other schemes run something: code in a browser, or a
// program registered for them.
func isHarmlessLink(destination []byte) bool {
	return scheme(destination) == "" || LeadsOut(destination)
}

// LeadsOut reports whether a link leads to a web page or a mail address, wherever the
// document is.
func LeadsOut(destination []byte) bool {
	return slices.Contains([]string{"http", "https", "mailto"}, scheme(destination))
}

// scheme returns what a browser takes for the scheme of a link, in lower case, or "" if
// it has none.
func scheme(destination []byte) string {
	decoded := html.UnescapeString(string(util.UnescapePunctuations(destination)))
	decoded = strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f { // browsers ignore these
			return -1
		}
		return r
	}, decoded)
	end := strings.IndexAny(decoded, ":/?#")
	if end < 0 || decoded[end] != ':' {
		return ""
	}
	return strings.ToLower(decoded[:end])
}
