package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

var (
	//go:embed page/page.html
	pageHTML string
	//go:embed page/page.css
	pageStyle string
	//go:embed page/page.js
	pageScript string
)

// page is what the template needs. Whatever was said in the session reaches it
// as text, which the template escapes, or through richText, which does.
type page struct {
	Policy, Title, Footer string
	Style                 template.CSS
	Script                template.JS
	Facts, Tags           []string
	Labels                []pageLabel
	Roots                 []pageBranch
	Entries               iter.Seq[pageEntry] // read while they are written
}

type pageLabel struct{ Anchor, Label, About string }

type pageBranch struct {
	Anchor, Kind, About, Size string
	Live                      bool
}

type pageEntry struct {
	Anchor, Parent, Onward string // the names of elements on the page
	ID, Short              string
	Class, Kind, Label     string
	Time, When             string
	Facts                  []string
	Live                   bool
	Blocks                 []pageBlock
	Children               []pageBranch
}

// exportHTML writes the session as one page that loads nothing: all branches
// are in it, and its script only shows one of them at a time. Should anything
// hostile get through the escaping, the page's policy lets no other script run.
func exportHTML(ctx context.Context, w io.Writer, o opened, leaf string) error {
	sh, err := render.NewOutline(o.conversation(), render.OutlineOptions{Leaf: leaf})
	if err != nil {
		return err
	}
	b := newPageBuilder(o, sh)
	p, err := b.page()
	if err != nil {
		return err
	}
	t, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return err
	}
	if err := t.Execute(w, p); err != nil {
		return err
	}
	return b.err
}

// pageBuilder turns twigs into elements of the page. It has one entry in memory at
// a time, and reads most of them twice: what the page says of an entry elsewhere
// stands before the entry.
type pageBuilder struct {
	opened
	shape   *render.Outline
	anchors map[*render.Node]string
	below   map[*render.Node]bool  // see findBelow
	briefs  map[*render.Node]brief // of those that are told elsewhere
	tools   map[string]string
	err     error // why not all entries could be read
}

// brief is what an entry is and says, in a line.
type brief struct{ kind, about string }

func newPageBuilder(o opened, sh *render.Outline) *pageBuilder {
	b := &pageBuilder{
		opened: o, shape: sh, anchors: make(map[*render.Node]string, len(sh.Order)),
		briefs: make(map[*render.Node]brief), tools: make(map[string]string),
	}
	for i, t := range sh.Order {
		b.anchors[t] = "e" + strconv.Itoa(i+1)
	}
	b.findBelow()
	return b
}

func (b *pageBuilder) page() (*page, error) {
	title, err := titleOf(b.Session)
	if err != nil {
		return nil, err
	}
	tags, err := b.Tags()
	if err != nil {
		return nil, err
	}
	facts, err := b.facts()
	if err != nil {
		return nil, err
	}
	if err := b.findBriefs(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(pageScript))
	p := &page{
		Policy: "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
		Title:  cmp.Or(oneLine(title, 0), "Untitled Session"),
		Footer: fmt.Sprintf("Exported by Coppice from session %s", b.ID()),
		Style:  template.CSS(pageStyle), Script: template.JS(pageScript),
		Facts: facts, Tags: tags, Roots: b.branches(b.shape.Roots, nil), Entries: b.entries,
	}
	for _, t := range b.shape.Order {
		if t.Label != "" {
			p.Labels = append(p.Labels, pageLabel{b.anchors[t], oneLine(t.Label, 0), oneLine(b.briefs[t].about, 120)})
		}
	}
	return p, nil
}

// findBriefs reads the entries of which something stands elsewhere on the page:
// those that have a label, and those that begin a branch.
func (b *pageBuilder) findBriefs() error {
	var told []*render.Node
	for _, t := range b.shape.Order {
		siblings := b.shape.Roots
		if t.Parent != nil {
			siblings = t.Parent.Children
		}
		if t.Label != "" || len(siblings) > 1 {
			told = append(told, t)
		}
	}
	return b.each(told, func(t *render.Node, e *session.Entry) bool {
		b.briefs[t] = brief{render.Kind(e), render.Gist(e, 160)}
		return true
	})
}

// each reads entries one by one, until it is told to stop.
func (b *pageBuilder) each(twigs []*render.Node, visit func(t *render.Node, e *session.Entry) bool) error {
	ids := make([]string, len(twigs))
	for i, t := range twigs {
		ids[i] = t.Entry.ID
	}
	i := 0
	for e, err := range b.Each(ids...) {
		if err != nil {
			return err
		}
		e.ParentID = twigs[i].Entry.ParentID // also of what is missing
		if !visit(twigs[i], &e) {
			return nil
		}
		i++
	}
	return nil
}

func (b *pageBuilder) entries(yield func(pageEntry) bool) {
	b.err = b.each(b.shape.Order, func(t *render.Node, e *session.Entry) bool { return yield(b.entry(t, e)) })
}

const pageTime = "2 Jan 2006, 15:04 UTC"

func (b *pageBuilder) facts() ([]string, error) {
	messages := 0
	var spent session.Spent
	for some := range slices.Chunk(b.shape.Order, render.ReadAtOnce) {
		ids := make([]string, len(some))
		for i, t := range some {
			ids[i] = t.Entry.ID
		}
		entries, err := b.Peek(ids...)
		if err != nil {
			return nil, err
		}
		for i := range entries {
			if entries[i].Message != nil {
				messages++
			}
			spent.Add(&entries[i])
		}
	}
	h := b.Header()
	facts := []string{h.CreatedAt.UTC().Format(pageTime), counted(messages, "message", "messages")}
	if spent.CostMicroUSD > 0 {
		facts = append(facts, money(spent.CostMicroUSD))
	}
	if h.CWD != "" {
		facts = append(facts, oneLine(h.CWD, 0))
	}
	if h.ParentSession != "" {
		facts = append(facts, fmt.Sprintf("%s of %s", cmp.Or(h.Relation, "child"), oneLine(h.ParentSession, 0)))
	}
	return facts, nil
}

func (b *pageBuilder) entry(t *render.Node, e *session.Entry) pageEntry {
	out := pageEntry{
		Anchor: b.anchors[t], Parent: b.anchors[t.Parent], Onward: b.anchors[t.Onward],
		ID: e.ID, Short: b.shape.Names.Name(t.Entry.ID), Class: pageClass(e), Kind: render.Kind(e), Label: oneLine(t.Label, 0),
		Live: t.Live || b.below[t], Blocks: b.blocks(e), Children: b.branches(t.Children, t.Onward),
	}
	if !e.Timestamp.IsZero() {
		out.Time, out.When = rfc3339(e.Timestamp), e.Timestamp.UTC().Format(time.DateTime)
	}
	if e.Message != nil {
		out.Facts = render.MessageFacts(e.Message)
	}
	return out
}

// findBelow finds the entries that are shown at first although they are not on the
// path: they lie below the leaf that was asked for. With no leaf at all, what was
// worked on last is shown.
func (b *pageBuilder) findBelow() {
	b.below = make(map[*render.Node]bool)
	first := b.shape.Leaf
	if first != nil {
		first = first.Onward
	} else if n := len(b.shape.Roots); n > 0 {
		first = b.shape.Roots[n-1]
	}
	for t := first; t != nil; t = t.Onward {
		b.below[t] = true
	}
}

// pageClass is the style of an entry: the known roles have their own.
func pageClass(e *session.Entry) string {
	switch {
	case e.Compaction != nil, e.BranchSummary != nil, e.Merge != nil:
		return "summary"
	case e.Message == nil:
		return "note"
	}
	switch role := e.Message.Role; role {
	case session.RoleUser, session.RoleAssistant, session.RoleTool, session.RoleSystem:
		return string(role)
	}
	return "other"
}

// branches lists where one can go on, if there is a choice.
func (b *pageBuilder) branches(twigs []*render.Node, onward *render.Node) []pageBranch {
	if len(twigs) < 2 {
		return nil
	}
	out := make([]pageBranch, len(twigs))
	for i, t := range twigs {
		out[i] = pageBranch{
			Anchor: b.anchors[t], Kind: b.briefs[t].kind, About: b.briefs[t].about,
			Size: counted(t.Length, "entry", "entries"), Live: t.Live || t == onward && b.shape.Leaf != nil,
		}
	}
	return out
}
