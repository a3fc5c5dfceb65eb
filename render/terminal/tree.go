package terminal

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render"
)

// FoldIfLong folds the runs of a long tree and leaves a short one alone.
const FoldIfLong = render.FoldIfLong

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
	d := drawing{Style: s, outline: out, w: w}
	for _, n := range out.Order {
		d.idWidth = max(d.idWidth, ansi.StringWidth(out.Names.Shown(n.Entry.ID)))
	}
	for lines, err := range out.Lines(ctx, c, fold) {
		if err == nil {
			err = d.print(ctx, c, lines)
		}
		if err != nil {
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
	idWidth int
}

func (d *drawing) print(ctx context.Context, c render.Conversation, lines []render.TreeLine) error {
	var nodes []*render.Node
	for _, l := range lines {
		if l.Folded == 0 {
			nodes = append(nodes, l.Node)
		}
	}
	if err := c.Read(ctx, nodes, render.MaxOutput); err != nil {
		return err
	}
	var b strings.Builder
	for _, l := range lines {
		if l.Folded > 0 {
			b.WriteString(d.foldLine(l.Lanes, l.Folded) + "\n")
			continue
		}
		if l.Node.Parent == nil && l.Node != d.outline.Roots[0] {
			b.WriteByte('\n')
		}
		b.WriteString(d.line(l.Node, l.Lanes) + "\n")
		for _, name := range c.SubagentsOf(&l.Node.Entry) {
			b.WriteString(d.subagentLine(l.Lanes, name) + "\n")
		}
		l.Node.Forget()
	}
	_, err := io.WriteString(d.w, b.String())
	return err
}

func (d *drawing) foldLine(before string, n int) string {
	text := fmt.Sprintf("⋮ … %s …", render.Counted(n, "entry", "entries"))
	return Pad("", d.idWidth) + "  " + d.Paint(Dim, before) + d.Paint(Dim, text)
}

// subagentMark is before the name of the session of a subagent.
const subagentMark = "↳ subagent: "

// subagentLine names a session that the entry above started.
func (d *drawing) subagentLine(before, name string) string {
	return Pad("", d.idWidth) + "  " + d.SubagentRow(before, name)
}

// SubagentRow names a session that an entry of a tree started. lanes are those of the entry.
func (s Style) SubagentRow(lanes, name string) string {
	if rest, ok := strings.CutSuffix(lanes, render.BranchOff); ok {
		lanes = rest + render.BranchOn
	}
	return s.Paint(Dim, lanes+subagentMark+render.OneLine(name, 0))
}

// line draws an entry.
func (d *drawing) line(n *render.Node, before string) string {
	return d.TreeRow(TreeRow{
		Name: d.outline.Names.Shown(n.Entry.ID), NameWidth: d.idWidth, Lanes: before, Kind: render.Kind(&n.Entry),
		Label: n.Label, Live: n.Live, Leaf: n == d.outline.Leaf,
		Gist: func(room int) string { return render.GistNaming(&n.Entry, room, d.outline.Names.Shown) },
	})
}

// TreeRow is an entry of a tree.
type TreeRow struct {
	Name        string // what it is called; "" leaves it out
	NameWidth   int
	Lanes, Kind string
	Label       string
	Live, Leaf  bool
	Gist        func(room int) string // what it says, in at most so many columns
}

// TreeRow draws an entry of a tree on one line: see [Tree].
func (s Style) TreeRow(r TreeRow) string {
	dot, shade := "○", Dim
	switch {
	case r.Leaf:
		dot, shade = "◉", Green
	case r.Live:
		dot, shade = "●", ""
	}
	mark, label := "", ""
	if r.Leaf {
		mark = "  ← leaf"
	}
	if r.Label != "" {
		label = "  [" + render.OneLine(r.Label, 0) + "]"
	}
	name := ""
	if r.NameWidth > 0 {
		name = s.Paint(Dim, r.Name) + Pad("", r.NameWidth-ansi.StringWidth(r.Name)) + "  "
	}
	left := name + s.Paint(Dim, r.Lanes) + s.Paint(shade, dot) + " " + s.treeKind(r.Kind, r.Live) + "  "
	room := s.Width - ansi.StringWidth(left) - ansi.StringWidth(mark)
	label = ansi.Truncate(label, max(room*3/5, 0), "…") // so that there is room for what it says, too
	text := ""
	if room -= ansi.StringWidth(label); room > 1 {
		text = r.Gist(room)
	}
	return strings.TrimRight(left+s.treeWords(text, r.Kind, r.Live)+s.Paint(Yellow, label)+s.Paint(Green, mark), " ")
}

// treeKind paints what an entry is, and pads it.
func (s Style) treeKind(kind string, live bool) string {
	c := KindColour(kind)
	if !live && c != Dim {
		c = Dim + ";" + c
	}
	return s.Paint(c, Pad(kind, render.KindWidth))
}

// treeWords paints what an entry says: strong where the conversation is.
func (s Style) treeWords(text, kind string, live bool) string {
	if !live || KindColour(kind) == Dim {
		return s.Paint(Dim, text)
	}
	return text
}
