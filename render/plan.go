package render

import (
	"context"
	"slices"

	"github.com/coppice-dev/coppice/session"
)

const (
	// FoldIfLong folds the runs of a long tree and leaves a short one alone.
	FoldIfLong = -1
	longTree   = 200
	longRun    = 4
)

// maxIndent is how many branches of branches are drawn side by side. Deeper ones are
// not indented further: no terminal has room for them, and the lines that lead to an
// entry would be longer than what it says.
const maxIndent = 60

// BranchOff and BranchOn are what is before the first line of a branch, and before the others.
const BranchOff, BranchOn = "├─", "│ "

// TreeLine is a line of a drawn tree: an entry, or how many are folded away.
type TreeLine struct {
	Node   *Node  // the entry, or the first that is folded away
	Folded int    // 0: it is an entry
	Lanes  string // what is before the entry
}

// Plan plans the drawing of a tree. The path to the leaf is the trunk and runs straight down,
// however often the conversation branched: only what branches off is indented. Runs of more than
// fold entries are folded; 0 folds nothing. What people said, labels, compactions and the ends of
// branches are never folded away.
func (c Conversation) Plan(ctx context.Context, out *Outline, fold int) ([]TreeLine, error) {
	if fold < 0 {
		fold = 0
		if len(out.Order) > longTree {
			fold = longRun
		}
	}
	p := plan{outline: out, fold: fold}
	if fold > 0 {
		if err := p.findPrompts(ctx, c); err != nil {
			return nil, err
		}
	}
	for _, root := range out.Roots {
		p.trunk(root)
	}
	return p.lines, nil
}

// plan is a tree that is planned as a whole; only what is drawn needs to be read.
type plan struct {
	outline *Outline
	fold    int // runs longer than this are folded; 0: never
	prompts map[*Node]bool
	lines   []TreeLine
}

// stem is a part of the drawing that is still to be planned: an entry and how the
// conversation continues from it, from an index on. first is put before the first line,
// rest before the others.
type stem struct {
	run         []*Node
	hidden      map[int]int
	at          int
	first, rest string
	depth       int
}

func (p *plan) newStem(n *Node, first, rest string, depth int) *stem {
	s := &stem{first: first, rest: rest, depth: depth}
	for ; n != nil; n = n.Onward {
		s.run = append(s.run, n)
	}
	s.hidden = p.folded(s.run)
	return s
}

// trunk plans an entry and how the conversation continues from it, with what branches
// off beside it. It does not recurse: a branch may have branches as often as there are
// entries.
func (p *plan) trunk(root *Node) {
	stems := []*stem{p.newStem(root, "", "", 0)}
	for len(stems) > 0 {
		s := stems[len(stems)-1]
		if s.at == len(s.run) {
			stems = stems[:len(stems)-1]
			continue
		}
		if folded := s.hidden[s.at]; folded > 0 {
			p.lines = append(p.lines, TreeLine{Node: s.run[s.at], Folded: folded, Lanes: s.rest})
			s.at += folded
			continue
		}
		before := s.rest
		if s.at == 0 {
			before = s.first
		}
		n := s.run[s.at]
		s.at++
		p.lines = append(p.lines, TreeLine{Node: n, Lanes: before})
		first, rest, depth := s.rest+BranchOff, s.rest+BranchOn, s.depth+1
		if s.depth == maxIndent {
			first, rest, depth = s.first, s.rest, s.depth
		}
		for _, other := range slices.Backward(n.Others()) { // the first is planned first
			stems = append(stems, p.newStem(other, first, rest, depth))
		}
	}
}

// folded returns which parts of a run are not drawn: their lengths by where they
// begin. Both ends of what is between two marks are drawn.
func (p *plan) folded(run []*Node) map[int]int {
	hidden := make(map[int]int)
	if p.fold <= 0 {
		return hidden
	}
	from := 0
	for i := 0; i <= len(run); i++ {
		if i < len(run) && !p.isMark(run[i]) {
			continue
		}
		if n := i - from; n > p.fold+1 { // folding one line away saves nothing
			hidden[from+(p.fold+1)/2] = n - p.fold
		}
		from = i + 1
	}
	return hidden
}

// findPrompts finds what people said and what started subagents: a long conversation is known
// by that.
func (p *plan) findPrompts(ctx context.Context, c Conversation) error {
	p.prompts = make(map[*Node]bool)
	for nodes, err := range c.ReadChunks(ctx, p.outline.Order, 0) {
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if m := n.Entry.Message; m != nil && (m.Role == session.RoleUser || len(c.SubagentsOf(&n.Entry)) > 0) {
				p.prompts[n] = true
			}
		}
	}
	return nil
}

// isMark reports whether an entry is worth seeing in a run that is folded.
func (p *plan) isMark(n *Node) bool {
	return p.prompts[n] || n.Label != "" || n == p.outline.Leaf || len(n.Children) != 1 || n.Entry.Type == session.TypeCompaction
}
