package html

import (
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/coppice-dev/coppice/render/markdown"
	"github.com/coppice-dev/coppice/render/plain"
)

// dialect is GitHub's Markdown without HTML: a tag in a message is ordinary text.
var dialect = sync.OnceValue(func() parser.Parser {
	blocks := []util.PrioritizedValue{
		util.Prioritized(parser.NewSetextHeadingParser(), 100),
		util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(parser.NewListParser(), 300),
		util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(parser.NewCodeBlockParser(), 500),
		util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
		util.Prioritized(parser.NewBlockquoteParser(), 800),
		util.Prioritized(parser.NewParagraphParser(), 1000),
	}
	inlines := []util.PrioritizedValue{
		util.Prioritized(parser.NewCodeSpanParser(), 100),
		util.Prioritized(parser.NewLinkParser(), 200),
		util.Prioritized(parser.NewAutoLinkParser(), 300),
		util.Prioritized(parser.NewEmphasisParser(), 500),
	}
	p := parser.NewParser(parser.WithBlockParsers(blocks...), parser.WithInlineParsers(inlines...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...))
	return goldmark.New(goldmark.WithParser(p), goldmark.WithExtensions(
		extension.Linkify, extension.Table, extension.Strikethrough, extension.TaskList)).Parser()
})

// prose writes a message, which is Markdown. If parsing would take too long, it is
// shown as it is.
func (w *writer) prose(s string) {
	s = strings.TrimRight(strings.TrimLeft(s, "\n"), " \t\n")
	if markdown.IsCostly(s) {
		w.raw(`<p class=asis>`)
		w.output(s)
		w.raw("</p>")
		return
	}
	source := []byte(plain.Text(s))
	p := prose{writer: w, source: source}
	p.children(dialect().Parse(text.NewReader(source)))
}

// prose writes the nodes of a document. It writes only tags that it knows; for an
// unknown node, it writes the content.
type prose struct {
	*writer
	source []byte
}

func (p *prose) children(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		p.node(c)
	}
}

func (p *prose) within(tag string, n ast.Node) {
	p.raw("<", tag, ">")
	p.children(n)
	p.raw("</", tag, ">")
}

// headings begin below those of the page.
var headings = [...]string{"h3", "h3", "h3", "h4", "h5", "h6", "h6"}

func (p *prose) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		p.within(headings[min(n.Level, len(headings)-1)], n)
	case *ast.Paragraph:
		p.within("p", n)
	case *ast.TextBlock:
		p.children(n)
		if n.NextSibling() != nil {
			p.raw("\n")
		}
	case *ast.Blockquote:
		p.within("blockquote", n)
	case *ast.List:
		p.list(n)
	case *ast.ListItem:
		p.within("li", n)
	case *ast.ThematicBreak:
		p.raw("<hr>")
	case *ast.FencedCodeBlock:
		p.block(string(n.Language(p.source)), n)
	case *ast.CodeBlock:
		p.block("", n)
	case *extast.Table:
		p.raw("<div class=wide>")
		p.within("table", n)
		p.raw("</div>")
	case *extast.TableHeader:
		p.within("tr", n)
	case *extast.TableRow:
		p.within("tr", n)
	case *extast.TableCell:
		p.cell(n)
	default:
		p.inline(n)
	}
}

func (p *prose) list(n *ast.List) {
	if !n.IsOrdered() {
		p.within("ul", n)
		return
	}
	p.raw("<ol")
	if n.Start != 1 {
		p.raw(` start="`)
		p.number(n.Start)
		p.raw(`"`)
	}
	p.raw(">")
	p.children(n)
	p.raw("</ol>")
}

func (p *prose) block(language string, n ast.Node) {
	lines := n.Lines()
	var b strings.Builder
	for i := range lines.Len() {
		at := lines.At(i)
		b.Write(at.Value(p.source))
	}
	p.fenced(language, strings.TrimSuffix(b.String(), "\n"))
}

// fenced writes a block of code.
func (w *writer) fenced(language, s string) {
	w.raw("<pre")
	if language != "" {
		w.raw(` data-lang="`)
		w.text(language)
		w.raw(`"`)
	}
	w.raw("><code>")
	w.code(language, s)
	w.raw("</code></pre>")
}

func (p *prose) cell(n *extast.TableCell) {
	tag := "td"
	if n.Parent().Kind() == extast.KindTableHeader {
		tag = "th"
	}
	p.raw("<", tag)
	switch n.Alignment {
	case extast.AlignRight:
		p.raw(" class=right")
	case extast.AlignCenter:
		p.raw(" class=centre")
	}
	p.raw(">")
	p.children(n)
	p.raw("</", tag, ">")
}

func (p *prose) inline(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		html.DefaultWriter.Write(p.writer, n.Segment.Value(p.source))
		if n.HardLineBreak() || n.SoftLineBreak() {
			p.raw("<br>")
		}
	case *ast.String:
		p.text(string(n.Value))
	case *ast.CodeSpan:
		p.codeSpan(n)
	case *ast.Emphasis:
		if n.Level == 2 {
			p.within("strong", n)
		} else {
			p.within("em", n)
		}
	case *extast.Strikethrough:
		p.within("del", n)
	case *extast.TaskCheckBox:
		if n.IsChecked {
			p.raw("<span class=box>☑</span> ")
		} else {
			p.raw("<span class=box>☐</span> ")
		}
	case *ast.Link:
		p.link(n.Destination, func() { p.children(n) })
	case *ast.Image: // it is not fetched
		p.link(n.Destination, func() { p.raw("🖼 "); p.children(n) })
	case *ast.AutoLink:
		url := n.URL(p.source)
		if n.AutoLinkType == ast.AutoLinkEmail {
			url = append([]byte("mailto:"), url...)
		}
		p.link(url, func() { p.text(string(n.Label(p.source))) })
	default:
		p.children(n)
	}
}

// codeSpan writes its text as it is, with line ends as spaces.
func (p *prose) codeSpan(n *ast.CodeSpan) {
	p.raw("<code>")
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			p.text(strings.ReplaceAll(string(t.Segment.Value(p.source)), "\n", " "))
		}
	}
	p.raw("</code>")
}

// link writes a link to a web page or a mail address. Any other link is only text,
// including one to a file beside the page, where there is nothing.
func (p *prose) link(destination []byte, label func()) {
	url := string(util.URLEscape(destination, true))
	if !markdown.LeadsOut(destination) {
		p.raw(`<span class=ref title="`)
		p.text(url)
		p.raw(`">`)
		label()
		p.raw("</span>")
		return
	}
	p.raw(`<a href="`)
	p.text(url)
	p.raw(`" target=_blank rel="noopener noreferrer nofollow">`)
	label()
	p.raw("</a>")
}
