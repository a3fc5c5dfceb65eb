package terminal

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// FoldIfLong folds the runs of a long tree and leaves a short one alone.
const FoldIfLong = render.FoldIfLong

// defaultWidth is the width of lines that must end somewhere and have no terminal
// to fit.
const defaultWidth = 120

// Tree draws a conversation with all its branches, up to a leaf; with all, the entries that are
// about the session, too. Each line is the entry's id, the branches, what the entry is, and as
// much of what it says as fits:
//
//	01a1bd8c-2  ● user       Why does it fail?
//	01a1bd8c-7  ├─○ assistant  Let me run it.
//	01a1bd8c-9  │ ○ tool       FAIL
//	01a1bd8d    ◉ user       Do not run it.  ← leaf
//
// Below an entry are the sessions of the subagents that it started. The path to the leaf is the
// trunk, and runs of more than fold entries are folded: see [render.Chart].
func Tree(ctx context.Context, w io.Writer, c render.Conversation, leaf string, all bool, s Style, fold int) error {
	if s.Width == 0 {
		s.Width = defaultWidth
	}
	k, err := render.NewSketch(c, all)
	if err != nil {
		return err
	}
	d := drawing{Style: s, sketch: k, chart: render.NewChart(k, fold), w: w}
	d.names = render.ShortEntryIDs(k.Shape().IDs())
	if err := d.chart.Update(ctx, c, k.At(k.Shape().Index(leaf))); err != nil {
		return err
	}
	for i := range int32(k.Shape().Len()) {
		if k.At(i) == i {
			d.idWidth = max(d.idWidth, ansi.StringWidth(d.names.Shown(k.Shape().ID(i))))
		}
	}
	for from := 0; from < d.chart.Len(); from += render.ReadAtOnce {
		if err := d.print(ctx, c, from, min(from+render.ReadAtOnce, d.chart.Len())); err != nil {
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
	sketch  *render.Sketch
	chart   *render.Chart
	names   render.Names
	idWidth int
}

// print prints the lines of a chart from one on, up to another.
func (d *drawing) print(ctx context.Context, c render.Conversation, from, to int) error {
	var numbers []int32
	for i := from; i < to; i++ {
		if l := d.chart.Line(i); l.Folded == 0 {
			numbers = append(numbers, l.Entry)
		}
	}
	entries, err := d.sketch.Read(ctx, c, numbers, render.MaxOutput)
	if err != nil {
		return err
	}
	var b strings.Builder
	for i := from; i < to; i++ {
		l := d.chart.Line(i)
		if l.Folded > 0 {
			b.WriteString(d.foldLine(l.Lanes, l.Folded) + "\n")
			continue
		}
		e := &entries[0]
		entries = entries[1:]
		if i > 0 && d.sketch.At(d.sketch.Shape().Parent(l.Entry)) < 0 { // another beginning
			b.WriteByte('\n')
		}
		b.WriteString(d.line(e, &l) + "\n")
		for _, name := range c.SubagentsOf(e) {
			b.WriteString(d.subagentLine(l.Lanes, name) + "\n")
		}
	}
	_, err = io.WriteString(d.w, b.String())
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
func (d *drawing) line(e *session.Entry, l *render.ChartLine) string {
	return d.TreeRow(TreeRow{
		Name: d.names.Shown(e.ID), NameWidth: d.idWidth, Lanes: l.Lanes, Kind: render.Kind(e),
		Label: d.sketch.Label(l.Entry), Live: l.Live, Leaf: l.Entry == d.chart.Leaf(),
		Gist: func(room int) string { return render.GistNaming(e, room, d.names.Shown) },
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
	label = ansi.Truncate(label, max(room*3/5, 0), "…") // so that there is room for the text, too
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
