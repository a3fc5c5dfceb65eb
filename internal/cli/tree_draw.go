package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render"
)

// drawing draws a shape. Each line is the entry's id, the branches, what the
// entry is, and as much of what it says as fits:
//
//	01a1bd8c-2  ● user       Why does it fail?
//	01a1bd8c-7  ├─○ assistant  Let me run it.
//	01a1bd8c-9  │ ○ tool       FAIL
//	01a1bd8d    ◉ user       Do not run it.  ← leaf
//
// The path to the leaf is the trunk and runs straight down, however often the
// conversation branched: only what branches off is indented.
type drawing struct {
	talk    *talk
	shape   *render.Outline
	fold    int // runs longer than this are folded; 0: never
	width   int
	idWidth int
	lines   []drawnLine // in the order in which they are printed
}

// drawnLine is a line of the drawing: an entry, or how many are folded away.
type drawnLine struct {
	twig   *render.Node // nil: folded
	folded int
	before string
}

// treeWidth is the width where there is no terminal to tell.
const treeWidth = 120

// draw plans all lines, and then prints them: read is called for the entries that
// are about to be printed, and for no others.
func (d *drawing) draw(read func([]*render.Node) error) error {
	if d.width == 0 {
		d.width = treeWidth
	}
	for _, t := range d.shape.Order {
		d.idWidth = max(d.idWidth, ansi.StringWidth(d.shape.Names.Shown(t.Entry.ID)))
	}
	for _, root := range d.shape.Roots {
		d.trunk(root)
	}
	for lines := range slices.Chunk(d.lines, render.ReadAtOnce) {
		if err := d.print(lines, read); err != nil {
			return err
		}
	}
	return nil
}

func (d *drawing) print(lines []drawnLine, read func([]*render.Node) error) error {
	var twigs []*render.Node
	for _, l := range lines {
		if l.twig != nil {
			twigs = append(twigs, l.twig)
		}
	}
	if err := read(twigs); err != nil {
		return err
	}
	for _, l := range lines {
		var err error
		switch {
		case l.twig == nil:
			err = d.foldLine(l.before, l.folded)
		case l.twig.Parent == nil && l.twig != d.shape.Roots[0]:
			if err = d.talk.print(""); err == nil {
				err = d.line(l.twig, l.before)
			}
		default:
			err = d.line(l.twig, l.before)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// maxIndent is how many branches of branches stand beside one another. Deeper ones
// are drawn no further to the right: no terminal has room for them, and what stands
// before each line would be longer than all that is said.
const maxIndent = 60

// stem is a part of the drawing that is still to be planned: an entry and how the
// conversation goes on from it, from an index on. first stands before the first
// line, rest before the others.
type stem struct {
	run         []*render.Node
	hidden      map[int]int
	at          int
	first, rest string
	depth       int
}

func (d *drawing) newStem(t *render.Node, first, rest string, depth int) *stem {
	s := &stem{first: first, rest: rest, depth: depth}
	for ; t != nil; t = t.Onward {
		s.run = append(s.run, t)
	}
	s.hidden = d.folded(s.run)
	return s
}

// trunk plans an entry and how the conversation goes on from it, with what
// branches off beside it. It does not recurse: a branch may have branches as often
// as there are entries.
func (d *drawing) trunk(root *render.Node) {
	stems := []*stem{d.newStem(root, "", "", 0)}
	for len(stems) > 0 {
		s := stems[len(stems)-1]
		if s.at == len(s.run) {
			stems = stems[:len(stems)-1]
			continue
		}
		if n := s.hidden[s.at]; n > 0 {
			d.lines = append(d.lines, drawnLine{folded: n, before: s.rest})
			s.at += n
			continue
		}
		before := s.rest
		if s.at == 0 {
			before = s.first
		}
		t := s.run[s.at]
		s.at++
		d.lines = append(d.lines, drawnLine{twig: t, before: before})
		first, rest, depth := s.rest+"├─", s.rest+"│ ", s.depth+1
		if s.depth == maxIndent {
			first, rest, depth = s.first, s.rest, s.depth
		}
		for _, other := range slices.Backward(t.Others()) { // the first is planned first
			stems = append(stems, d.newStem(other, first, rest, depth))
		}
	}
}

// folded returns which parts of a run are not drawn: their lengths by where they
// begin. Both ends of what stands between two marks stay.
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

func (d *drawing) foldLine(before string, n int) error {
	return d.talk.print("%*s  %s%s", d.idWidth, "", d.branches(before), d.talk.paint(dim, fmt.Sprintf("⋮ … %s …", counted(n, "entry", "entries"))))
}

func (d *drawing) branches(before string) string { return d.talk.paint(dim, before) }

// line draws one entry.
func (d *drawing) line(t *render.Node, before string) error {
	id := d.shape.Names.Shown(t.Entry.ID)
	kind := render.Kind(&t.Entry)
	dot, shade := "○", dim
	switch {
	case t == d.shape.Leaf:
		dot, shade = "◉", green
	case t.Live:
		dot, shade = "●", ""
	}
	end := ""
	if t.Label != "" {
		end += "  [" + oneLine(t.Label, 0) + "]"
	}
	left := fmt.Sprintf("%-*s  %s%s %s  ", d.idWidth, id, before, dot, pad(kind, render.KindWidth))
	mark := ""
	if t == d.shape.Leaf {
		mark = "  ← leaf"
	}
	room := d.width - ansi.StringWidth(left) - ansi.StringWidth(mark)
	end = ansi.Truncate(end, max(room, 0), "…")
	text := ""
	if room -= ansi.StringWidth(end); room > 1 {
		text = render.GistNaming(&t.Entry, room, d.shape.Names.Shown)
	}
	painted := d.talk.paint(dim, id) + strings.Repeat(" ", d.idWidth-ansi.StringWidth(id)) + "  " + d.branches(before) +
		d.talk.paint(shade, dot) + " " + d.kind(kind, t.Live) + "  " + d.words(text, kind, t.Live) +
		d.talk.paint(yellow, end) + d.talk.paint(green, mark)
	return d.talk.print("%s", strings.TrimRight(painted, " "))
}

// kind paints what an entry is, and pads it.
func (d *drawing) kind(kind string, live bool) string {
	c := kindColour(kind)
	if !live && c != dim {
		c = dim + ";" + c
	}
	return d.talk.paint(c, pad(kind, render.KindWidth))
}

// words paints what an entry says: strong where the conversation is.
func (d *drawing) words(text, kind string, live bool) string {
	if !live || kindColour(kind) == dim {
		return d.talk.paint(dim, text)
	}
	return text
}
