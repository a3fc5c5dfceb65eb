package cli

import (
	"context"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

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
	Entries               []pageEntry
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
	sh, err := o.shape(leaf, false)
	if err != nil {
		return err
	}
	if err := o.readWhole(sh); err != nil {
		return err
	}
	p, err := newPage(o, sh)
	if err != nil {
		return err
	}
	t, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return err
	}
	return t.Execute(w, p)
}

func newPage(o opened, sh *shape) (*page, error) {
	title, err := titleOf(o.Session)
	if err != nil {
		return nil, err
	}
	tags, err := o.Tags()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(pageScript))
	b := pageBuilder{shape: sh, anchors: make(map[*twig]string), tools: make(map[string]string)}
	for i, t := range sh.order {
		b.anchors[t] = "e" + strconv.Itoa(i+1)
	}
	b.findBelow()
	p := &page{
		Policy: "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
		Title:  orElse(oneLine(title, 0), "Untitled Session"),
		Footer: fmt.Sprintf("Exported by Coppice from session %s", o.ID()),
		Style:  template.CSS(pageStyle), Script: template.JS(pageScript),
		Tags: tags, Roots: b.branches(sh.roots, nil),
	}
	h := o.Header()
	p.Facts = b.facts(&h)
	for _, t := range sh.order {
		if t.label != "" {
			p.Labels = append(p.Labels, pageLabel{b.anchors[t], oneLine(t.label, 0), oneLine(gist(&t.entry), 120)})
		}
		p.Entries = append(p.Entries, b.entry(t))
	}
	return p, nil
}

// pageBuilder turns twigs into elements of the page.
type pageBuilder struct {
	shape   *shape
	anchors map[*twig]string
	below   map[*twig]bool // see findBelow
	tools   map[string]string
}

const pageTime = "2 Jan 2006, 15:04 UTC"

func (b *pageBuilder) facts(h *session.Header) []string {
	messages, cost := 0, 0
	paid := make(map[string]bool) // responses: one that is kept as several messages costs once
	for _, t := range b.shape.order {
		m := t.entry.Message
		if m == nil {
			continue
		}
		messages++
		if m.Usage != nil && !paid[m.ResponseID] {
			cost += m.Usage.CostMicroUSD
			paid[m.ResponseID] = m.ResponseID != ""
		}
	}
	facts := []string{h.CreatedAt.UTC().Format(pageTime), counted(messages, "message", "messages")}
	if cost > 0 {
		facts = append(facts, money(cost))
	}
	if h.CWD != "" {
		facts = append(facts, oneLine(h.CWD, 0))
	}
	if h.ParentSession != "" {
		facts = append(facts, fmt.Sprintf("%s of %s", orElse(h.Relation, "child"), oneLine(h.ParentSession, 0)))
	}
	return facts
}

func (b *pageBuilder) entry(t *twig) pageEntry {
	e := &t.entry
	kind := kindOf(e)
	out := pageEntry{
		Anchor: b.anchors[t], Parent: b.anchors[t.parent], Onward: b.anchors[t.onward],
		ID: e.ID, Short: b.shape.id(t), Class: pageClass(e), Kind: kind, Label: oneLine(t.label, 0),
		Live: t.live || b.below[t], Blocks: b.blocks(e), Children: b.branches(t.children, t.onward),
	}
	if !e.Timestamp.IsZero() {
		out.Time, out.When = rfc3339(e.Timestamp), e.Timestamp.UTC().Format(time.DateTime)
	}
	if e.Message != nil {
		r := reader{talk: &talk{}}
		out.Facts = slices.DeleteFunc(r.messageFacts(e.Message), func(fact string) bool { return fact == "" })
	}
	return out
}

// findBelow finds the entries that are shown at first although they are not on the
// path: they lie below the leaf that was asked for. With no leaf at all, what was
// worked on last is shown.
func (b *pageBuilder) findBelow() {
	b.below = make(map[*twig]bool)
	first := b.shape.leaf
	if first != nil {
		first = first.onward
	} else if n := len(b.shape.roots); n > 0 {
		first = b.shape.roots[n-1]
	}
	for t := first; t != nil; t = t.onward {
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
	switch role := session.MessageRole(e.Message.Role); role {
	case session.RoleUser, session.RoleAssistant, session.RoleTool, session.RoleSystem:
		return string(role)
	}
	return "other"
}

// branches lists where one can go on.
func (b *pageBuilder) branches(twigs []*twig, onward *twig) []pageBranch {
	var out []pageBranch
	for _, t := range twigs {
		out = append(out, pageBranch{
			Anchor: b.anchors[t], Kind: kindOf(&t.entry), About: oneLine(strings.TrimSpace(gist(&t.entry)), 160),
			Size: counted(t.length, "entry", "entries"), Live: t.live || t == onward && b.shape.leaf != nil,
		})
	}
	return out
}
