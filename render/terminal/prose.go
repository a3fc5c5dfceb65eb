package terminal

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/coppice-dev/coppice/render/code"
	"github.com/coppice-dev/coppice/render/markdown"
	"github.com/coppice-dev/coppice/render/plain"
)

// prose writes the text of a message. With colours, it draws Markdown: colours replace
// the marks, and lines break where the author broke them. Without colours, or if a
// parser would be slow, it writes the text as it is.
func (r *reader) prose(written string) {
	clean := strings.ReplaceAll(plain.Text(strings.Trim(written, "\n")), "\t", "    ")
	if !r.Color || markdown.IsCostly(clean) {
		r.text(indent, clean, "")
		return
	}
	source := []byte(clean)
	p := prose{reader: r, source: source}
	p.blocks(markdownParser().Parse(text.NewReader(source)), indent)
}

// markdownParser leaves the definitions of links in the text: nothing that was written
// may be lost. Tables are all that it knows beyond CommonMark.
var markdownParser = sync.OnceValue(func() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(parser.DefaultInlineParsers()...),
		parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
	)
})

// prose draws one text.
type prose struct {
	*reader
	source []byte
}

// blocks draws the blocks in a block, with before in front of each line, and empty
// lines where the author left them.
func (p *prose) blocks(parent ast.Node, before string) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n.PreviousSibling() != nil && n.HasBlankPreviousLines() {
			p.line(strings.TrimRight(before, " "))
		}
		p.block(n, before)
	}
}

func (p *prose) block(n ast.Node, before string) {
	switch n := n.(type) {
	case *ast.Heading:
		p.paragraph(before, p.inline(n, Bold))
	case *ast.List:
		p.list(n, before)
	case *ast.Blockquote:
		p.blocks(n, before+p.Paint(Dim, "▏ "))
	case *ast.FencedCodeBlock:
		if n.Info != nil && !p.goesOn {
			p.text(before+indent, string(n.Info.Segment.Value(p.source)), Dim)
		}
		p.goesOn = false
		p.code(n, string(n.Language(p.source)), before)
	case *ast.CodeBlock:
		p.code(n, "", before)
	case *ast.HTMLBlock:
		lines := p.raw(n)
		if n.HasClosure() {
			lines += string(n.ClosureLine.Value(p.source))
		}
		p.text(before, lines, "")
	case *ast.ThematicBreak:
		p.line(before, p.Paint(Dim, "────"))
	case *extast.Table:
		p.table(n, before)
	default:
		if n.Type() == ast.TypeBlock && n.FirstChild() != nil && n.FirstChild().Type() == ast.TypeBlock {
			p.blocks(n, before)
			return
		}
		p.paragraph(before, p.inline(n, ""))
	}
}

func (p *prose) code(n ast.Node, language, before string) {
	switch text := p.raw(n); {
	case n.Lines().Len() == 0:
	case len(text) <= p.coloured && code.Known(language):
		p.colouredCode(language, text, before+indent)
	default:
		p.text(before+indent, text, Cyan)
	}
}

// raw is the text of a block, as it was written.
func (p *prose) raw(n ast.Node) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b.Write(line.Value(p.source))
	}
	return b.String()
}

// paragraph writes painted lines.
func (p *prose) paragraph(before, painted string) {
	for line := range strings.SplitSeq(painted, "\n") {
		for _, row := range p.rows(line, ansi.StringWidth(before)) {
			p.line(strings.TrimRight(before+row, " "))
		}
	}
}

func (p *prose) list(l *ast.List, before string) {
	number := l.Start
	for item := l.FirstChild(); item != nil; item = item.NextSibling() {
		if item.PreviousSibling() != nil && item.HasBlankPreviousLines() {
			p.line(strings.TrimRight(before, " "))
		}
		mark := string(l.Marker) + " "
		if l.IsOrdered() {
			mark = fmt.Sprintf("%d%c ", number, l.Marker)
			number++
		}
		inside := before + strings.Repeat(" ", len(mark))
		p.lead, p.leadFor = cmp.Or(p.lead, before)+mark, inside
		p.blocks(item, inside)
		if p.lead != "" { // the item is empty
			p.line()
		}
	}
}

// inline is the text of a block, painted word by word: a line can then be broken
// between any two of them.
func (p *prose) inline(parent ast.Node, c Colour) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			b.WriteString(p.words(c, string(util.UnescapePunctuations(n.Segment.Value(p.source)))))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte('\n')
			}
		case *ast.String:
			b.WriteString(p.words(c, string(n.Value)))
		case *ast.CodeSpan:
			b.WriteString(p.words(with(c, Cyan), p.plainText(n)))
		case *ast.Emphasis:
			style := Colour("3")
			if n.Level > 1 {
				style = Bold
			}
			b.WriteString(p.inline(n, with(c, style)))
		case *ast.Link:
			b.WriteString(p.link(n, string(n.Destination), c))
		case *ast.Image:
			b.WriteString(p.words(c, "[image] ") + p.link(n, string(n.Destination), c))
		case *ast.AutoLink:
			b.WriteString(p.words(c, string(n.Label(p.source))))
		case *ast.RawHTML:
			for i := range n.Segments.Len() {
				segment := n.Segments.At(i)
				b.WriteString(p.words(c, string(segment.Value(p.source))))
			}
		default:
			b.WriteString(p.inline(n, c))
		}
	}
	return b.String()
}

// with adds a style to another, unless it has it.
func with(c, more Colour) Colour {
	switch {
	case c == "":
		return more
	case c == more || strings.HasPrefix(string(c), string(more)+";") || strings.HasSuffix(string(c), ";"+string(more)):
		return c
	}
	return c + ";" + more
}

func (p *prose) link(n ast.Node, to string, c Colour) string {
	words := p.inline(n, c)
	if to == "" || p.plainText(n) == to {
		return words
	}
	return words + " " + p.words(with(c, Dim), "("+to+")")
}

// plainText is the text in an inline, without marks.
func (p *prose) plainText(parent ast.Node) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if t, ok := n.(*ast.Text); ok {
			b.Write(t.Segment.Value(p.source))
			continue
		}
		b.WriteString(p.plainText(n))
	}
	return b.String()
}

// words paints each word by itself.
func (p *prose) words(c Colour, text string) string {
	if c == "" {
		return text
	}
	parts := strings.FieldsFunc(text, isBreak)
	var b strings.Builder
	for _, word := range parts {
		at := strings.Index(text, word)
		b.WriteString(text[:at] + p.Paint(c, word))
		text = text[at+len(word):]
	}
	b.WriteString(text)
	return b.String()
}

func isBreak(r rune) bool { return r == ' ' || r == '\n' }

// table draws a table in columns if it fits, and otherwise row by row.
func (p *prose) table(t *extast.Table, before string) {
	var rows [][]string
	var widths []int
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		_, isHeader := row.(*extast.TableHeader)
		c := Colour("")
		if isHeader {
			c = Bold
		}
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			text := strings.ReplaceAll(p.inline(cell, c), "\n", " ")
			if len(cells) == len(widths) {
				widths = append(widths, 0)
			}
			widths[len(cells)] = max(widths[len(cells)], ansi.StringWidth(text))
			cells = append(cells, text)
		}
		rows = append(rows, cells)
	}
	total := ansi.StringWidth(before)
	for _, width := range widths {
		total += width + 2
	}
	for i, cells := range rows {
		if p.Width > 0 && total > p.Width+2 {
			p.paragraph(before, strings.Join(cells, p.Paint(Dim, " │ ")))
			continue
		}
		for j := range cells {
			cells[j] = Pad(cells[j], widths[j])
		}
		p.line(strings.TrimRight(before+strings.Join(cells, "  "), " "))
		if i == 0 {
			p.line(before, p.Paint(Dim, strings.Repeat("─", max(total-2-ansi.StringWidth(before), 0))))
		}
	}
}
