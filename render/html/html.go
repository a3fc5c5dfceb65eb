// Package html writes a conversation as one page that people can send to each other. All
// branches, tool calls and images are in it, and it loads nothing.
//
// Every word on the page may have been written to attack its reader, so all text is escaped
// where it is written; see writer. If something gets through anyway, the page's policy
// allows no script and no style but ours, and no requests.
package html

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed" // the style and the script of the page
	"encoding/base64"
	"io"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// Options adjust a page. Nil and the zero value draw the conversation as it is.
type Options struct {
	// Leaf is the end of the path that is shown first. Default: the session's leaf.
	Leaf string
	// Look, if it is not nil, is called with every entry of the page, on all branches,
	// before anything is written.
	Look func(e *session.Entry)
}

var (
	//go:embed content.css
	contentStyle string
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	script string
)

// style is the style of the page: of its content, of its picture, and of the frame around it.
func style() string { return contentStyle + pictureStyle + pageStyle }

// everything shows all branches one below the other where no script runs.
const everything = "main [hidden],.marks [hidden]{display:block!important}.bar button,.bar label,#find{display:none}"

// Write writes a conversation as a page. Time and memory are linear in the size of the
// conversation; memory is a few bytes per entry, plus a limited number of whole
// entries.
func Write(ctx context.Context, w io.Writer, c render.Conversation, o *Options) error {
	if o == nil {
		o = &Options{}
	}
	p, err := newPlan(ctx, c, o)
	if err != nil {
		return err
	}
	page := &page{plan: p, Conversation: c, writer: &writer{Writer: bufio.NewWriterSize(w, maxPiece), colourable: maxColoured}}
	page.head()
	if err := page.cards(ctx); err != nil {
		return err
	}
	page.footer()
	return page.writer.Flush()
}

// page writes the elements of a plan.
type page struct {
	*plan
	render.Conversation
	*writer
	next  func(item int) (entryRead, error) // reads on to the entry of an item, in the order of plan.reads
	parts bool                              // there is no page around it: see Cards
	entry string                            // the id of the entry that has what is being written
}

// policy allows what the page is made of, by hash, and images that are part of it.
func policy() string {
	return "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src " + hash(style()) + " " + hash(everything) + "; script-src " + hash(script)
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (p *page) head() {
	title := cmp.Or(render.OneLine(p.Title, maxTitle), render.Untitled)
	p.raw("<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n<meta http-equiv=Content-Security-Policy content=\"", policy(), "\">\n",
		"<meta name=viewport content=\"width=device-width, initial-scale=1\">\n<meta name=color-scheme content=\"light dark\">\n",
		"<meta name=referrer content=no-referrer>\n<meta name=generator content=coppice>\n<title>")
	p.text(title)
	p.raw("</title>\n<style>", style(), "</style>\n<noscript><style>", everything, "</style></noscript>\n</head>\n<body>\n")
	p.bar(title)
	p.raw("<div class=page>\n")
	p.side()
	p.raw("<div class=talk>\n<header class=top>\n<h1 dir=auto>")
	p.text(title)
	p.raw("</h1>\n<p class=facts>")
	for _, fact := range p.facts() {
		p.raw("<span>")
		p.text(fact)
		p.raw("</span> ")
	}
	for _, tag := range p.tags {
		p.raw("<span class=tag>#")
		p.text(render.OneLine(tag, 0))
		p.raw("</span> ")
	}
	p.raw("</p>\n")
	p.how()
	p.branches(p.outline.Roots, "Beginnings")
	p.raw("</header>\n<main>\n")
}

// how writes the picture of how the conversation went.
func (p *page) how() {
	if p.Picture == nil || len(p.Picture.Points) == 0 {
		return
	}
	s := &p.Picture.Sum
	p.raw("<details class=how><summary>How it went: ")
	p.text(render.Counted(s.Requests, "request", "requests") + ", " + render.Count(s.Context) + " tokens in the context at most")
	p.raw("</summary>\n")
	p.picture(p.Picture, func(entry string) string {
		if n := p.outline.Node(entry); n != nil {
			return "#" + p.anchorOf(p.at[n])
		}
		return ""
	})
	p.raw("</details>\n")
}

// bar writes the bar at the top: the title, the tools and the search field.
func (p *page) bar(title string) {
	p.raw(`<div class=bar><button id=outline type=button title="Outline (o)" aria-label=Outline aria-expanded=false>☰</button><b dir=auto>`)
	p.text(title)
	p.raw(`</b>`, controls, "</div>\n")
}

const controls = `<span class=controls>` +
	`<button id=seek type=button title="Find (/)">Find</button>` +
	`<button id=tools type=button aria-pressed=true title="Show tools (t)">Tools</button>` +
	`<button id=thinking type=button aria-pressed=true title="Show thinking (h)">Thinking</button>` +
	`<button id=images type=button aria-pressed=false title="Only images (i)">Images</button>` +
	`<button id=unfold type=button aria-pressed=false title="Unfold everything (e)">Unfold</button>` +
	`<button id=theme type=button title="Light or dark (d)" aria-label="Light or dark">◐</button>` +
	`<button id=help type=button title="Keys (?)" aria-label=Keys>?</button></span>` +
	`<form id=find role=search hidden><input type=search aria-label="Find on this page" placeholder="Find in all messages and branches" autocomplete=off spellcheck=false>` +
	`<output aria-live=polite></output><button type=button id=previous title="Previous (Shift+Enter)" aria-label=Previous>↑</button>` +
	`<button type=button id=following title="Next (Enter)" aria-label=Next>↓</button><button type=button id=done title="Close (Esc)" aria-label=Close>✕</button></form>`

// maxInList is how many items one part of the outline has.
const maxInList = 50

// side is the list of prompts, labels and compactions.
func (p *page) side() {
	p.raw("<nav class=side aria-label=Outline><h2>Outline</h2>\n<ol class=marks>\n")
	for k, m := range p.marks {
		if k > 0 && k%maxInList == 0 { // so that a browser need not lay out all of them
			p.raw("</ol>\n<ol class=marks>\n")
		}
		p.raw("<li class=", m.kind)
		p.inSection(m.item)
		p.raw(`><a dir=auto href="#`)
		p.anchor(m.item)
		p.raw(`">`)
		p.text(cmp.Or(m.text, "…"))
		p.raw("</a></li>\n")
	}
	p.raw("</ol></nav>\n")
}

// inSection writes the attributes of an element that is visible together with an item.
func (p *page) inSection(item int) {
	p.raw(` data-s=`)
	p.number(p.items[item].section + 1)
	if !p.isShown(item) {
		p.raw(" hidden")
	}
}

// maxTitle is the maximum width of a title. A title that is a prompt may be of any length.
const maxTitle = 160

const dateFormat = "2 January 2006, 15:04 UTC"

func (p *page) facts() []string {
	h := p.Header()
	facts := []string{render.Counted(p.messages, "message", "messages")}
	if !h.CreatedAt.IsZero() {
		facts = append([]string{h.CreatedAt.UTC().Format(dateFormat)}, facts...)
	}
	if p.Cost != "" {
		facts = append(facts, p.Cost)
	}
	if h.CWD != "" {
		facts = append(facts, render.OneLine(h.CWD, 0))
	}
	if h.ParentSession != "" {
		facts = append(facts, cmp.Or(render.OneLine(h.Relation, 0), "child")+" of "+render.OneLine(h.ParentSession, 0))
	}
	return facts
}

func (p *page) footer() {
	p.raw("</main>\n<footer>Session ")
	p.text(render.OneLine(p.ID(), 0))
	p.raw(", exported by Coppice</footer>\n</div></div>\n", keys, "\n<script>", script, "</script>\n</body>\n</html>\n")
}

const keys = `<dialog id=keys aria-label=Keys><h2>Keys</h2><dl>` +
	`<dt><kbd>j</kbd> <kbd>k</kbd></dt><dd>next, previous message</dd>` +
	`<dt><kbd>n</kbd> <kbd>p</kbd></dt><dd>next, previous prompt</dd>` +
	`<dt><kbd>g</kbd> <kbd>G</kbd></dt><dd>first, last message</dd>` +
	`<dt><kbd>[</kbd> <kbd>]</kbd></dt><dd>previous, next branch at this place</dd>` +
	`<dt><kbd>/</kbd></dt><dd>find; <kbd>Enter</kbd> goes to the next match, <kbd>Shift</kbd>+<kbd>Enter</kbd> to the one before</dd>` +
	`<dt><kbd>o</kbd></dt><dd>outline</dd>` +
	`<dt><kbd>t</kbd> <kbd>h</kbd></dt><dd>show or hide tools, thinking</dd>` +
	`<dt><kbd>i</kbd></dt><dd>show only images</dd>` +
	`<dt><kbd>Enter</kbd> <kbd>e</kbd></dt><dd>unfold this message, everything</dd>` +
	`<dt><kbd>d</kbd></dt><dd>light or dark</dd>` +
	`<dt><kbd>Esc</kbd></dt><dd>close</dd></dl><form method=dialog><button>Close</button></form></dialog>`
