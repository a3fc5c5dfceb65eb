package terminal

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

const (
	// FoldIfLong folds the runs of a long tree and leaves a short one alone.
	FoldIfLong = -1
	longTree   = 200
	longRun    = 4
)

// defaultWidth is the width of lines that must end somewhere and have no terminal
// to fit.
const defaultWidth = 120

// Tree draws an outline. Each line is the entry's id, the branches, what the entry
// is, and as much of what it says as fits:
//
//	01a1bd8c-2  ● user       Why does it fail?
//	01a1bd8c-7  ├─○ assistant  Let me run it.
//	01a1bd8c-9  │ ○ tool       FAIL
//	01a1bd8d    ◉ user       Do not run it.  ← leaf
//
// Below an entry are the sessions of the subagents that it started. The path to the leaf is the trunk and runs straight down, however often the
// conversation branched: only what branches off is indented. Runs of more than fold
// entries are folded; 0 folds nothing. What people said, labels, compactions and
// the ends of branches are never folded away.
func Tree(ctx context.Context, w io.Writer, c render.Conversation, out *render.Outline, s Style, fold int) error {
	if s.Width == 0 {
		s.Width = defaultWidth
	}
	if fold < 0 {
		fold = 0
		if len(out.Order) > longTree {
			fold = longRun
		}
	}
	d := drawing{Style: s, outline: out, fold: fold, w: w}
	for _, n := range out.Order {
		d.idWidth = max(d.idWidth, ansi.StringWidth(out.Names.Shown(n.Entry.ID)))
	}
	if fold > 0 {
		if err := d.findPrompts(ctx, c); err != nil {
			return err
		}
	}
	for _, root := range out.Roots {
		d.trunk(root)
	}
	for lines := range slices.Chunk(d.lines, render.ReadAtOnce) {
		if err := d.print(ctx, c, lines); err != nil {
			return err
		}
	}
	return nil
}

// drawing is a tree that is planned as a whole, and then printed: only the entries
// that are about to be printed are read.
type drawing struct {
	Style
	w       io.Writer
	outline *render.Outline
	fold    int // runs longer than this are folded; 0: never
	prompts map[*render.Node]bool
	idWidth int
	lines   []drawnLine // in the order in which they are printed
}

// drawnLine is a line of the drawing: an entry, or how many are folded away.
type drawnLine struct {
	node   *render.Node // nil: folded
	folded int
	before string
}

func (d *drawing) print(ctx context.Context, c render.Conversation, lines []drawnLine) error {
	var nodes []*render.Node
	for _, l := range lines {
		if l.node != nil {
			nodes = append(nodes, l.node)
		}
	}
	if err := c.Read(ctx, nodes, render.MaxOutput); err != nil {
		return err
	}
	var b strings.Builder
	for _, l := range lines {
		if l.node == nil {
			b.WriteString(d.foldLine(l.before, l.folded) + "\n")
			continue
		}
		if l.node.Parent == nil && l.node != d.outline.Roots[0] {
			b.WriteByte('\n')
		}
		b.WriteString(d.line(l.node, l.before) + "\n")
		for _, name := range c.SubagentsOf(&l.node.Entry) {
			b.WriteString(d.subagentLine(l.before, name) + "\n")
		}
		l.node.Forget()
	}
	_, err := io.WriteString(d.w, b.String())
	return err
}

// maxIndent is how many branches of branches are drawn side by side. Deeper ones are
// not indented further: no terminal has room for them, and the lines that lead to an
// entry would be longer than what it says.
const maxIndent = 60

// What is before the first line of a branch, and before the others.
const branchOff, branchOn = "├─", "│ "

// stem is a part of the drawing that is still to be planned: an entry and how the
// conversation continues from it, from an index on. first is put before the first line,
// rest before the others.
type stem struct {
	run         []*render.Node
	hidden      map[int]int
	at          int
	first, rest string
	depth       int
}

func (d *drawing) newStem(n *render.Node, first, rest string, depth int) *stem {
	s := &stem{first: first, rest: rest, depth: depth}
	for ; n != nil; n = n.Onward {
		s.run = append(s.run, n)
	}
	s.hidden = d.folded(s.run)
	return s
}

// trunk plans an entry and how the conversation continues from it, with what branches
// off beside it. It does not recurse: a branch may have branches as often as there are
// entries.
func (d *drawing) trunk(root *render.Node) {
	stems := []*stem{d.newStem(root, "", "", 0)}
	for len(stems) > 0 {
		s := stems[len(stems)-1]
		if s.at == len(s.run) {
			stems = stems[:len(stems)-1]
			continue
		}
		if folded := s.hidden[s.at]; folded > 0 {
			d.lines = append(d.lines, drawnLine{folded: folded, before: s.rest})
			s.at += folded
			continue
		}
		before := s.rest
		if s.at == 0 {
			before = s.first
		}
		n := s.run[s.at]
		s.at++
		d.lines = append(d.lines, drawnLine{node: n, before: before})
		first, rest, depth := s.rest+branchOff, s.rest+branchOn, s.depth+1
		if s.depth == maxIndent {
			first, rest, depth = s.first, s.rest, s.depth
		}
		for _, other := range slices.Backward(n.Others()) { // the first is planned first
			stems = append(stems, d.newStem(other, first, rest, depth))
		}
	}
}

// folded returns which parts of a run are not drawn: their lengths by where they
// begin. Both ends of what is between two marks are drawn.
func (d *drawing) folded(run []*render.Node) map[int]int {
	hidden := make(map[int]int)
	if d.fold <= 0 {
		return hidden
	}
	from := 0
	for i := 0; i <= len(run); i++ {
		if i < len(run) && !d.isMark(run[i]) {
			continue
		}
		if n := i - from; n > d.fold+1 { // folding one line away saves nothing
			hidden[from+(d.fold+1)/2] = n - d.fold
		}
		from = i + 1
	}
	return hidden
}

// findPrompts finds what people said and what started subagents: a long conversation is known
// by that.
func (d *drawing) findPrompts(ctx context.Context, c render.Conversation) error {
	d.prompts = make(map[*render.Node]bool)
	for nodes, err := range c.ReadChunks(ctx, d.outline.Order, 0) {
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if m := n.Entry.Message; m != nil && (m.Role == session.RoleUser || len(c.SubagentsOf(&n.Entry)) > 0) {
				d.prompts[n] = true
			}
		}
	}
	return nil
}

// isMark reports whether an entry is worth seeing in a run that is folded.
func (d *drawing) isMark(n *render.Node) bool {
	return d.prompts[n] || n.Label != "" || n == d.outline.Leaf || len(n.Children) != 1 || n.Entry.Type == session.TypeCompaction
}

func (d *drawing) foldLine(before string, n int) string {
	text := fmt.Sprintf("⋮ … %s …", render.Counted(n, "entry", "entries"))
	return Pad("", d.idWidth) + "  " + d.Paint(Dim, before) + d.Paint(Dim, text)
}

// subagentMark is before the name of the session of a subagent.
const subagentMark = "↳ subagent: "

// subagentLine names a session that the entry above started.
func (d *drawing) subagentLine(before, name string) string {
	if rest, ok := strings.CutSuffix(before, branchOff); ok {
		before = rest + branchOn
	}
	return Pad("", d.idWidth) + "  " + d.Paint(Dim, before+subagentMark+render.OneLine(name, 0))
}

// line draws an entry.
func (d *drawing) line(n *render.Node, before string) string {
	id, kind := d.outline.Names.Shown(n.Entry.ID), render.Kind(&n.Entry)
	dot, shade := "○", Dim
	switch {
	case n == d.outline.Leaf:
		dot, shade = "◉", Green
	case n.Live:
		dot, shade = "●", ""
	}
	mark, label := "", ""
	if n == d.outline.Leaf {
		mark = "  ← leaf"
	}
	if n.Label != "" {
		label = "  [" + render.OneLine(n.Label, 0) + "]"
	}
	left := Pad(id, d.idWidth) + "  " + before + dot + " " + Pad(kind, render.KindWidth) + "  "
	room := d.Width - ansi.StringWidth(left) - ansi.StringWidth(mark)
	label = ansi.Truncate(label, max(room*3/5, 0), "…") // so that there is room for what it says, too
	text := ""
	if room -= ansi.StringWidth(label); room > 1 {
		text = render.GistNaming(&n.Entry, room, d.outline.Names.Shown)
	}
	painted := d.Paint(Dim, id) + Pad("", d.idWidth-ansi.StringWidth(id)) + "  " + d.Paint(Dim, before) +
		d.Paint(shade, dot) + " " + d.kind(kind, n.Live) + "  " + d.words(text, kind, n.Live) +
		d.Paint(Yellow, label) + d.Paint(Green, mark)
	return strings.TrimRight(painted, " ")
}

// kind paints what an entry is, and pads it.
func (d *drawing) kind(kind string, live bool) string {
	c := KindColour(kind)
	if !live && c != Dim {
		c = Dim + ";" + c
	}
	return d.Paint(c, Pad(kind, render.KindWidth))
}

// words paints what an entry says: strong where the conversation is.
func (d *drawing) words(text, kind string, live bool) string {
	if !live || KindColour(kind) == Dim {
		return d.Paint(Dim, text)
	}
	return text
}
