package session

import "fmt"

// guess is an entry or gap whose parent has to be guessed: see LikelyParents.
type guess struct{ at, after int32 }

// connect finds the parents that came later, makes gaps for those that never came, cuts cycles, and
// guesses the parents that no line names. Afterwards every entry that was read can be reached from
// a root.
func (t *tree) connect() {
	if len(t.pending) > 0 {
		t.visited = pathMarks{}
		t.revision++
	}
	var guesses []guess
	gaps := make(map[int32]int) // the gaps made here, with the numbers of their guesses
	for _, p := range t.pending {
		child := &t.nodes[p.child]
		at, ok := t.at(p.parent)
		switch {
		case p.guess:
			if child.guessedParent { // nothing has filled the gap since
				guesses = append(guesses, guess{p.child, at})
			}
			continue
		case p.parent == child.id:
			t.report(ProblemSelfParent, child.id, child.pos, "treated as a root")
			continue
		case !ok:
			var after int32
			at, after = t.addGap(p)
			gaps[at] = len(guesses)
			guesses = append(guesses, guess{at, after})
		}
		if n, ok := gaps[at]; ok { // a child that filled a gap is before its line
			guesses[n].after = min(guesses[n].after, t.lineBefore(p.child))
		}
		t.nodes[p.child].parent = at
	}
	t.cutCycles()
	t.chooseParents(guesses)
	for _, g := range guesses {
		t.nodes[g.at].parent = g.after
	}
	t.cutCycles() // there are none, unless an earlier guess is above what has filled a gap
	t.pending = nil
	t.resolveLeaf()
}

// chooseParents makes sure that no guess follows its own descendant.
func (t *tree) chooseParents(guesses []guess) {
	if len(guesses) == 0 {
		return
	}
	parents := make([]int32, len(t.nodes))
	for i, n := range t.nodes {
		if parents[i] = n.parent; n.guessed || n.guessedParent {
			parents[i] = none
		}
	}
	hasLine := func(i int32) bool { return !t.nodes[i].guessed }
	likely := LikelyParents(parents, hasLine)
	for i, g := range guesses {
		if n := &t.nodes[g.at]; n.guessed && n.id == t.lostMarker && isUpTo(g.after, t.lostAfter, parents, hasLine) {
			guesses[i].after = t.lostAfter
		} else if g.after != none {
			guesses[i].after = likely[g.after]
		}
	}
}

// isUpTo reports whether neither an entry nor an ancestor of it comes after a place.
func isUpTo(place, at int32, parents []int32, hasLine func(int32) bool) bool {
	for ; at != none; at = parents[at] {
		if at > place && hasLine(at) {
			return false
		}
	}
	return true
}

// LikelyParents returns the most likely parent of an entry that does not name one, for each place in
// a log where that may be. For each entry of the log, parents has the number of the parent that its
// line names, or -1. hasLine reports whether an entry has a line; one that has none has no parent.
//
// An entry most likely follows the one before it. But if a part of the log was overwritten with a copy
// of later lines, these come before their ancestors, and an entry after one of them could be its
// ancestor. So for each place, LikelyParents returns the last entry up to there that has a line, and of
// which no ancestor comes after the place; or -1 if there is none.
func LikelyParents(parents []int32, hasLine func(int32) bool) []int32 {
	reach := make([]int32, len(parents)) // the last of the ancestors, and one more; 0 if not known yet
	var path []int32
	for i := range int32(len(parents)) {
		for at := i; at != none && reach[at] == 0; at = parents[at] {
			if path = append(path, at); hasLine(at) {
				reach[at] = at + 1
			}
		}
		for ; len(path) > 0; path = path[:len(path)-1] {
			at := path[len(path)-1]
			if up := parents[at]; up != none {
				reach[at] = max(reach[at], reach[up])
			}
		}
	}
	likely := make([]int32, len(parents))
	for i := range likely {
		likely[i] = none
	}
	for i := range int32(len(parents)) {
		if hasLine(i) {
			likely[reach[i]-1] = max(likely[reach[i]-1], i)
		}
	}
	for i := 1; i < len(likely); i++ {
		likely[i] = max(likely[i], likely[i-1])
	}
	return likely
}

// cutCycles makes one entry of each cycle a root: of those whose parent came later, the
// last. Every cycle has at least one such entry. If a guess is in the cycle, that one becomes the
// root.
func (t *tree) cutCycles() {
	if len(t.pending) == 0 {
		return
	}
	visited := make([]int32, len(t.nodes)) // the number of the walk that visited a node, or zero
	late := make(map[int32]bool)
	for _, p := range t.pending {
		late[p.child] = true
	}
	for n, p := range t.pending {
		walk, at := int32(n)+1, p.child
		for ; at != none && visited[at] == 0; at = t.nodes[at].parent {
			visited[at] = walk
		}
		if at == none || visited[at] != walk {
			continue // it ended at a root, or where an earlier walk has been
		}
		cut, guessed := none, none
		for i, first := at, true; first || i != at; i, first = t.nodes[i].parent, false {
			if late[i] && i > cut {
				cut = i
			}
			if t.nodes[i].guessed || t.nodes[i].guessedParent {
				guessed = max(guessed, i)
			}
		}
		if guessed != none { // a parent that was read counts more than a guess
			t.nodes[guessed].parent = none
			continue
		}
		t.report(ProblemCycle, t.nodes[cut].id, t.nodes[cut].pos,
			fmt.Sprintf("its parent %q descends from it; treated as a root", t.nodes[t.nodes[cut].parent].id))
		t.nodes[cut].parent = none
	}
}

// addGap adds a node for a missing entry, and returns the entry that it most likely
// followed. If there is a damaged line before the child, that line was probably the entry, and its
// parent the entry before the line. If there is none, nothing is left of the entry's line:
// it was lost together with its neighbours, or it is part of a line that seems to be another
// entry. Then it follows the entry before its child. So damage never hides earlier entries.
func (t *tree) addGap(p pendingParent) (at, after int32) {
	child := t.nodes[p.child]
	after, pos := t.lineBefore(p.child), child.pos
	if p.parent != t.lostMarker {
		if d := t.damageOf(p.parent, child.pos); d != nil {
			after, pos = d.before, d.pos
		}
	}
	t.report(ProblemDangling, child.id, child.pos, fmt.Sprintf("its parent %q is missing", p.parent))
	at = int32(len(t.nodes))
	t.nodes = append(t.nodes, node{id: p.parent, pos: pos, parent: none, kind: kindGap, guessed: true})
	t.byID.add(t.nodes)
	return at, after
}

// lineBefore returns the last entry or gap before another that has a line, or none.
func (t *tree) lineBefore(at int32) int32 {
	for at--; at >= 0 && t.nodes[at].guessed; at-- {
	}
	return at
}
