package session

// goesOn reports for each node whether the conversation continues below it.
func goesOn(nodes []node) []bool {
	goesOn := make([]bool, len(nodes))
	for i := range nodes {
		if nodes[i].kind.isAside() {
			continue
		}
		for p := nodes[i].parent; p != none && !goesOn[p]; p = nodes[p].parent {
			goesOn[p] = true
		}
	}
	return goesOn
}

// onlyRemarksSince reports whether all nodes from an index on are remarks. Labelling a
// session must not get in the way of an agent that is working in it.
func (t *tree) onlyRemarksSince(from int) bool {
	for i := from; i < len(t.nodes); i++ {
		if !t.nodes[i].kind.isRemark() {
			return false
		}
	}
	return true
}

// onlyRemarksAfter reports whether a leaf is an entry or a remark after it.
func (t *tree) onlyRemarksAfter(id, leaf string) bool {
	for leaf != id {
		at, ok := t.at(leaf)
		if !ok || !t.nodes[at].kind.isRemark() {
			return false
		}
		if leaf = ""; t.nodes[at].parent != none {
			leaf = t.nodes[t.nodes[at].parent].id
		}
	}
	return true
}

// next returns the first entry of the conversation that comes after an entry, if one does;
// "" is the place before all of them.
func (t *tree) next(id string) (next string, ok bool) {
	from, ok := t.at(id)
	if id == "" {
		from = none
	} else if !ok {
		return "", false
	}
	for i := range t.nodes {
		p := t.nodes[i].parent
		for p != from && p != none && t.nodes[p].kind.isAside() {
			p = t.nodes[p].parent
		}
		if p == from && !t.nodes[i].kind.isAside() {
			return t.nodes[i].id, true
		}
	}
	return "", false
}

// path returns the nodes from an entry back to its root, the entry first.
func (t *tree) path(id string) ([]int32, bool) {
	i, ok := t.at(id)
	if !ok {
		return nil, id == ""
	}
	var path []int32
	for ; i != none; i = t.nodes[i].parent {
		path = append(path, i)
	}
	return path, true
}

// isOnPath reports whether an entry is another one or one of its ancestors. It is called
// with the session's mu held for writing, because it updates walked.
func (t *tree) isOnPath(id, leaf string) bool {
	want, ok := t.at(id)
	at, ok2 := t.at(leaf)
	if !ok || !ok2 {
		return false
	}
	t.visited.moveTo(t.nodes, at)
	return t.visited.has(want)
}

// pathMarks remembers which nodes are on the path to a leaf. When the leaf moves, it only
// updates the difference: editing a long session entry by entry must not walk the whole
// path each time.
type pathMarks struct {
	leaf int32 // its index plus one, or zero for none
	on   []uint64
}

func (m *pathMarks) has(at int32) bool { return m.on[at/64]&(1<<(at%64)) != 0 }

func (m *pathMarks) moveTo(nodes []node, leaf int32) {
	for len(m.on)*64 < len(nodes) {
		m.on = append(m.on, 0)
	}
	joint := leaf
	for joint != none && !m.has(joint) {
		joint = nodes[joint].parent
	}
	for at := m.leaf - 1; at != joint; at = nodes[at].parent {
		m.on[at/64] &^= 1 << (at % 64)
	}
	for at := leaf; at != joint; at = nodes[at].parent {
		m.on[at/64] |= 1 << (at % 64)
	}
	m.leaf = leaf + 1
}

// deepLeaf reports whether a tree of the log's end is enough for the context at its leaf.
// It is if the leaf is the one that the end was read for, or a descendant of it.
func (t *tree) deepLeaf() bool { return t.extent == extentContext && t.isOnPath(t.deepFrom, t.leaf) }

// roots returns the indexes of the entries without a parent.
func (t *tree) roots() []int32 {
	var roots []int32
	for i := range t.nodes {
		if t.nodes[i].parent == none {
			roots = append(roots, int32(i))
		}
	}
	return roots
}
