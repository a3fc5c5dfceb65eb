package session

import (
	"cmp"
	"context"
	"slices"
)

// pathCheck finds the faults that only a path shows: results without calls, calls
// without results, cuts and merges that lead nowhere. It reports what the contexts
// at all leaves would report, without building each of them: a session may have as
// many leaves as entries, and each path may be as long as the session.
//
// It walks through the tree and keeps the pairing of calls and results on the path to
// its position. Stepping down to a child adds to the pairing, stepping back up takes
// that back. No leaf looks at the whole of its path. Instead, each fault remembers how
// many leaves had been reached when it arose; if there are more when it ends, because a
// result was found or the path is left, some leaf has it.
//
// An entry that changes the context of entries above it (a compaction, a revert,
// an edit of calls) begins a stretch: below it the context is built once, and the walk
// continues from there.
type pathCheck struct {
	session  *Session
	nodes    []node
	goesOn   []bool
	children childLists

	// What the check needs to know of the entries, by node.
	tools   map[int32][]toolRef
	edits   map[int32]editRef
	reverts map[int32]string // the entries that they revert
	merges  map[int32]mergeRef
	damaged map[int32]bool
	harmed  map[int32]bool // their calls or results are edited
	undone  map[int32]bool // an entry before them changes them
	named   map[int32]int  // by how many merges
	onPath  []bool         // whether they are on the path to the check's position
	depths  []int32        // how many nodes there are from the root to them
	inLine  bool           // no node comes before its parent

	stretches []*stretch // the one in force is the last
	found     map[Problem]bool
}

// toolRef is a call or a result.
type toolRef struct {
	id     string
	isCall bool
}

// editRef is an edit that may change calls and results.
type editRef struct {
	target string
	tools  []toolRef // of the replacement, if it is the model's
}

type mergeRef struct {
	id     string
	picked []string
}

// stretch is a part of a tree in which the context only grows at its end.
type stretch struct {
	Pairs
	since  []int // for each ref, how many leaves had been reached when it began to be a fault
	leaves int   // reached so far
	faults []fault
}

// fault is one that is not in the pairing.
type fault struct {
	Problem
	since int // how many leaves had been reached
}

// childLists are the children of each node, without a slice for each.
type childLists struct{ first, next []int32 }

func newChildLists(nodes []node) childLists {
	c := childLists{make([]int32, len(nodes)), make([]int32, len(nodes))}
	for i := range nodes {
		c.first[i] = none
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		c.next[i] = none
		if p := nodes[i].parent; p != none {
			c.next[i], c.first[p] = c.first[p], int32(i)
		}
	}
	return c
}

func newPathCheck(s *Session, nodes []node) *pathCheck {
	return &pathCheck{
		session: s, nodes: nodes, tools: make(map[int32][]toolRef), edits: make(map[int32]editRef),
		reverts: make(map[int32]string), merges: make(map[int32]mergeRef), damaged: make(map[int32]bool),
		harmed: make(map[int32]bool), undone: make(map[int32]bool), named: make(map[int32]int),
		onPath: make([]bool, len(nodes)), found: make(map[Problem]bool),
	}
}

// note records the properties of an entry that the check needs.
func (c *pathCheck) note(at int32, e *Entry) {
	switch {
	case e.Message != nil:
		if refs := toolRefs(e.Message); refs != nil {
			c.tools[at] = refs
		}
	case e.ContextEdit != nil:
		asModel := MessageEntry{Role: RoleAssistant, Content: e.ContextEdit.Replacement}
		c.edits[at] = editRef{e.ContextEdit.TargetID, toolRefs(&asModel)}
	case e.Revert != nil:
		c.reverts[at] = e.Revert.TargetID
	case e.Merge != nil && len(e.Merge.EntryIDs) > 0:
		c.merges[at] = mergeRef{e.ID, e.Merge.EntryIDs}
	}
}

func (c *pathCheck) noteDamage(at int32) { c.damaged[at] = true }

func toolRefs(m *MessageEntry) []toolRef {
	var refs []toolRef
	m.eachTool(func(_ int, id string, isCall bool) { refs = append(refs, toolRef{id, isCall}) })
	return refs
}

// run returns the faults of all paths, in the order of the log.
func (c *pathCheck) run(ctx context.Context) ([]Problem, error) {
	c.goesOn, c.children = goesOn(c.nodes), newChildLists(c.nodes)
	c.measure()
	c.followTargets()
	c.begin(nil)
	for root := range c.nodes {
		if c.nodes[root].parent != none {
			continue
		}
		if err := c.walk(ctx, int32(root)); err != nil {
			return nil, err
		}
	}
	c.end()
	return c.inOrder(), nil
}

// followTargets finds out which entries are changed by others.
func (c *pathCheck) followTargets() {
	for _, edit := range c.edits {
		if target, ok := c.find(edit.target); ok && c.changesTools(target, edit) {
			c.harmed[target] = true
		}
	}
	for at, edit := range c.edits {
		target, ok := c.find(edit.target)
		switch {
		case !ok || !c.harmed[target]:
			delete(c.edits, at) // no edit of that entry is of interest here
		case c.mayBeBelow(target, at):
			c.undone[target] = true
		}
	}
	for at, id := range c.reverts {
		if target, ok := c.find(id); ok && c.mayBeBelow(target, at) {
			c.undone[target] = true
		}
	}
	for at, merge := range c.merges {
		for _, id := range merge.picked {
			if picked, ok := c.find(id); ok {
				c.named[picked]++
				c.undone[picked] = c.undone[picked] || c.mayBeBelow(picked, at)
			}
		}
	}
}

// mayBeBelow reports whether an entry may descend from another. Nearly always parents
// come before their children, and the order of the lines decides.
func (c *pathCheck) mayBeBelow(at, above int32) bool {
	return c.depths[at] > c.depths[above] && (at > above || !c.inLine)
}

// measure finds out how deep in the tree the nodes are, and whether all parents come
// before their children.
func (c *pathCheck) measure() {
	c.depths, c.inLine = make([]int32, len(c.nodes)), true
	var way []int32
	for i := range c.nodes {
		at := int32(i)
		for ; at != none && c.depths[at] == 0; at = c.nodes[at].parent {
			c.inLine = c.inLine && c.nodes[at].parent < at
			way = append(way, at)
		}
		depth := int32(0)
		if at != none {
			depth = c.depths[at]
		}
		for _, below := range slices.Backward(way) {
			depth++
			c.depths[below] = depth
		}
		way = way[:0]
	}
}

// changesTools reports whether an edit of an entry changes its calls and results.
func (c *pathCheck) changesTools(target int32, edit editRef) bool {
	before := c.tools[target]
	if len(edit.tools) == 0 && !slices.ContainsFunc(before, func(r toolRef) bool { return r.isCall }) {
		return false // results keep their calls: see addMessage
	}
	return !slices.Equal(before, edit.tools)
}

// visit is a node on the way through the tree.
type visit struct {
	at, child    int32 // the node, and its child that is the next to visit
	refs, faults int   // of the stretch, before the node
	// stale says that the pairing in force is not that of the node's context, and
	// that no leaf or fork has needed it yet.
	stale bool
	began bool // a stretch
}

// walk visits a root and all below it. It does not recurse: a tree is as deep as
// the conversation is long.
func (c *pathCheck) walk(ctx context.Context, root int32) error {
	first, err := c.enter(ctx, root, false)
	if err != nil {
		return err
	}
	way := []visit{first}
	for len(way) > 0 {
		v := &way[len(way)-1]
		if v.child == none {
			c.leave(v)
			way = way[:len(way)-1]
			continue
		}
		child := v.child
		v.child = c.children.next[child]
		next, err := c.enter(ctx, child, v.stale)
		if err != nil {
			return err
		}
		way = append(way, next)
	}
	return nil
}

func (c *pathCheck) enter(ctx context.Context, at int32, stale bool) (visit, error) {
	s := c.stretch()
	c.onPath[at] = true
	v := visit{at: at, child: c.children.first[at], refs: len(s.refs), faults: len(s.faults), stale: stale || c.changesPast(at)}
	isLeaf := !c.goesOn[at] && !c.nodes[at].kind.isAside()
	switch {
	case v.stale && (isLeaf || c.forks(at)):
		if err := c.beginAt(ctx, at); err != nil {
			return v, err
		}
		v.stale, v.began = false, true
	case !v.stale:
		c.add(ctx, at)
	}
	if isLeaf {
		c.stretch().leaves++
	}
	return v, nil
}

func (c *pathCheck) leave(v *visit) {
	c.onPath[v.at] = false
	if v.began {
		c.end()
		return
	}
	c.dropAfter(v.refs, v.faults)
}

func (c *pathCheck) stretch() *stretch { return c.stretches[len(c.stretches)-1] }

// forks reports whether the conversation continues from a node in several ways.
func (c *pathCheck) forks(at int32) bool {
	ways := 0
	for child := c.children.first[at]; child != none && ways < 2; child = c.children.next[child] {
		if c.goesOn[child] || !c.nodes[child].kind.isAside() {
			ways++
		}
	}
	return ways > 1
}

// changesPast reports whether the context at an entry is more than the context
// before it and the effects of the entry.
func (c *pathCheck) changesPast(at int32) bool {
	if c.undone[at] {
		return true
	}
	switch c.nodes[at].kind {
	case kindCompaction:
		return true
	case kindContextEdit:
		_, changes := c.edits[at]
		return changes
	case kindRevert:
		target, ok := c.find(c.reverts[at])
		_, changes := c.edits[target]
		return ok && (changes || c.nodes[target].kind != kindContextEdit)
	case kindMerge:
		return slices.ContainsFunc(c.merges[at].picked, func(id string) bool {
			picked, ok := c.find(id)
			return ok && (c.harmed[picked] || c.onPath[picked] || c.named[picked] > 1)
		})
	}
	return false
}

func (c *pathCheck) find(id string) (at int32, ok bool) {
	_ = c.session.withWhole(func(t *tree) error {
		at, ok = t.at(id)
		return nil
	})
	return at, ok && int(at) < len(c.nodes)
}

// add adds a node to the pairing, and the entries that a merge picks.
func (c *pathCheck) add(ctx context.Context, at int32) {
	c.pair(at, c.tools[at])
	merge := c.merges[at]
	for _, id := range merge.picked {
		if picked, ok := c.find(id); ok && !c.damaged[picked] {
			c.pair(picked, c.tools[picked])
			continue
		}
		if _, err := c.session.readPickedEntry(ctx, id); err != nil {
			s := c.stretch()
			s.faults = append(s.faults, fault{pickedProblem(merge.id, id, err), s.leaves})
		}
	}
}

// pair adds calls and results of a node.
func (c *pathCheck) pair(at int32, refs []toolRef) {
	s := c.stretch()
	for _, ref := range refs {
		if ref.isCall {
			s.addCall(ref.id, int(at), 0)
		} else {
			s.addResult(ref.id, int(at), 0)
		}
		if last := s.refs[len(s.refs)-1]; !last.Call && last.Pair != NoPair {
			c.missed(s, last.Pair)
		}
		s.since = append(s.since, s.leaves)
	}
}

// dropAfter undoes the effects of all but so many refs and faults of the stretch.
func (c *pathCheck) dropAfter(refs, faults int) {
	s := c.stretch()
	for n := len(s.refs) - 1; n >= refs; n-- {
		switch last := s.refs[n]; {
		case last.Call:
			c.missed(s, n)
		case last.Pair == NoPair:
			c.foundIf(s.leaves > s.since[n], orphanProblem(c.nodes[last.Entry].id, last.ID))
		default:
			s.since[last.Pair] = s.leaves
		}
		s.Pairs.removeLast()
		s.since = s.since[:n]
	}
	for _, f := range s.faults[faults:] {
		c.foundIf(s.leaves > f.since && f.Kind != ProblemDamaged, f.Problem)
	}
	s.faults = s.faults[:faults]
}

// missed reports a call if some leaf has it without a result.
func (c *pathCheck) missed(s *stretch, call int) {
	ref := s.refs[call]
	c.foundIf(s.leaves > s.since[call], interruptedProblem(c.nodes[ref.Entry].id, ref.ID))
}

func (c *pathCheck) foundIf(is bool, p Problem) {
	if is {
		c.found[p] = true
	}
}

// beginAt begins a stretch with the context at a node.
func (c *pathCheck) beginAt(ctx context.Context, at int32) error {
	sel, err := c.session.selectPath(ctx, c.nodes[at].id)
	if err != nil {
		return err
	}
	sel.unpaired = true
	whole := assemble(sel)
	c.begin(whole.Problems)
	for i := range whole.Entries {
		if m := whole.Entries[i].Message; m != nil {
			if from, ok := c.find(whole.Entries[i].ID); ok {
				c.pair(from, toolRefs(m))
			}
		}
	}
	return nil
}

func (c *pathCheck) begin(problems []Problem) {
	s := &stretch{}
	for _, p := range problems {
		s.faults = append(s.faults, fault{Problem: p})
	}
	c.stretches = append(c.stretches, s)
}

// end ends the stretch in force.
func (c *pathCheck) end() {
	c.dropAfter(0, 0)
	c.stretches = c.stretches[:len(c.stretches)-1]
}

// inOrder returns the problems in the order of the log.
func (c *pathCheck) inOrder() []Problem {
	type placed struct {
		Problem
		at int32
	}
	all := make([]placed, 0, len(c.found))
	for p := range c.found {
		at, _ := c.find(p.EntryID)
		all = append(all, placed{p, max(at, 0)})
	}
	slices.SortFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(c.nodes[a.at].pos, c.nodes[b.at].pos), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Detail, b.Detail))
	})
	problems := make([]Problem, len(all))
	for i := range all {
		problems[i] = all[i].Problem
	}
	return problems
}
