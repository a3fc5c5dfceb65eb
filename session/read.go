package session

import (
	"cmp"
	"errors"
	"iter"
	"slices"

	"github.com/coppice-dev/coppice/internal/budget"
)

// TreeNode is an entry with its children, in the order in which they were
// appended.
type TreeNode struct {
	Entry    Entry
	Children []TreeNode
	Label    string
}

// snapshot returns all nodes as they are now.
func (s *Session) snapshot() ([]node, error) {
	if err := s.checkCurrent(); err != nil {
		return nil, err
	}
	var nodes []node
	err := s.withWhole(func(t *tree) error {
		nodes = t.nodes[:len(t.nodes):len(t.nodes)] // nodes that were added never change
		return nil
	})
	return nodes, err
}

// gapEntry is an entry that cannot be read, with the members that are known.
func gapEntry(nodes []node, at int) Entry {
	e := Entry{Type: TypeGap, ID: nodes[at].id}
	if parent := nodes[at].parent; parent != none && int(parent) < len(nodes) {
		id := nodes[parent].id
		e.ParentID = &id
	}
	return e
}

// growTree attaches the entries to their parents. It does not recurse into the depth of
// the tree, which is the length of the conversation.
func growTree(nodes []node, entries []Entry, labels map[string]string) []TreeNode {
	children := make([][]int32, len(nodes))
	var roots []int32
	hidden := make([]bool, len(nodes))
	for i := range nodes {
		hidden[i] = nodes[i].kind == kindLeaf
	}
	for i := range nodes {
		if nodes[i].kind == kindLeaf {
			continue
		}
		for at := nodes[i].parent; at != none && hidden[at]; at = nodes[at].parent {
			hidden[at] = false
		}
	}
	for i := range nodes {
		switch parent := nodes[i].parent; {
		case hidden[i]:
		case parent == none:
			roots = append(roots, int32(i))
		default:
			children[parent] = append(children[parent], int32(i))
		}
	}
	built := make([]TreeNode, len(nodes))
	// A node is complete when its children are: visit in post-order.
	for _, i := range postOrder(roots, children) {
		built[i] = TreeNode{Entry: entries[i], Label: labels[entries[i].ID]}
		for _, child := range children[i] {
			built[i].Children = append(built[i].Children, built[child])
		}
	}
	forest := make([]TreeNode, 0, len(roots))
	for _, root := range roots {
		forest = append(forest, built[root])
	}
	return forest
}

// postOrder returns the nodes below roots, children before parents.
func postOrder(roots []int32, children [][]int32) []int32 {
	order := slices.Clone(roots)
	for i := 0; i < len(order); i++ {
		order = append(order, children[order[i]]...)
	}
	slices.Reverse(order)
	return order
}

// Entry returns the entry of an id, or ErrNotExist.
func (s *Session) Entry(id string) (Entry, error) {
	if err := s.checkCurrent(); err != nil {
		return Entry{}, err
	}
	n, err := s.find("entry", id)
	if err != nil {
		return Entry{}, err
	}
	return s.read(n)
}

// find returns the node of an id.
func (s *Session) find(op, id string) (node, error) {
	s.mu.RLock()
	if at, ok := s.tree.at(id); ok && !s.closed {
		defer s.mu.RUnlock()
		return s.tree.nodes[at], nil
	}
	s.mu.RUnlock()
	var n node
	err := s.withWhole(func(t *tree) error {
		at, ok := t.at(id)
		if !ok {
			return s.errNoEntry(op, id)
		}
		n = t.nodes[at]
		return nil
	})
	return n, err
}

// read returns a copy of a node's entry with its content filled in.
func (s *Session) read(n node) (Entry, error) {
	ctx := s.context()
	e, err := s.entryAt(ctx, &n)
	if err != nil {
		return Entry{}, err
	}
	c := e.clone()
	if err := s.setParent(&c, n); err != nil {
		return Entry{}, err
	}
	if _, err := resolve(ctx, s.store.Blobs(), &c, n.pos); err != nil {
		return Entry{}, err
	}
	return c, nil
}

// setParent sets the parent of an entry whose line does not say it to the one in the tree.
func (s *Session) setParent(e *Entry, n node) error {
	if !n.guessedParent && !n.attached {
		return nil
	}
	return s.withWhole(func(t *tree) error {
		at, ok := t.at(n.id)
		if !ok {
			return nil
		}
		parent := ""
		if up := t.nodes[at].parent; up != none {
			parent = t.nodes[up].id
		}
		e.moveTo(parent)
		return nil
	})
}

// moveTo gives an entry another parent than its line names; "" is none.
func (e *Entry) moveTo(parent string) {
	e.ParentID = nil
	if parent != "" {
		_, e.Extra, _ = e.Extra.take("parent_id") // it may have the wrong kind of value
		e.ParentID = &parent
	}
}

// Entries yields every entry of the session in the order of the log. What
// cannot be read is yielded as an entry of type TypeGap.
func (s *Session) Entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		nodes, err := s.snapshot()
		if err != nil {
			yield(Entry{}, err)
			return
		}
		s.each(nodes, func(i int) Entry { return gapEntry(nodes, i) }, yield)
	}
}

// Peek returns entries as they are in the log: content that is kept in blobs is
// not fetched. What cannot be read is an entry of type TypeGap; an id that the
// session does not have is ErrNotExist.
func (s *Session) Peek(ids ...string) ([]Entry, error) {
	if err := s.checkCurrent(); err != nil {
		return nil, err
	}
	nodes, err := s.findAll("peek", ids)
	if err != nil {
		return nil, err
	}
	decoded, err := s.ordered(nodes, s.keepFew(len(nodes)))
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(nodes))
	for i, e := range decoded {
		if e == nil {
			entries[i] = Entry{Type: TypeGap, ID: nodes[i].id}
		} else {
			entries[i] = e.clone()
		}
	}
	return entries, nil
}

// each reads nodes and yields them with their content; gap replaces what cannot be
// read.
func (s *Session) each(nodes []node, gap func(i int) Entry, yield func(Entry, error) bool) {
	for from := 0; from < len(nodes); {
		to := from + someNodes(nodes[from:])
		if !s.eachOf(nodes[from:to], s.keepFew(len(nodes)), func(i int) Entry { return gap(from + i) }, yield) {
			return
		}
		from = to
	}
}

// eachOf is each for nodes that are in memory together. It reports whether to go on.
func (s *Session) eachOf(nodes []node, keep func([]node, []cached), gap func(i int) Entry, yield func(Entry, error) bool) bool {
	defer budget.Part(s.context())()
	decoded, err := s.ordered(nodes, keep)
	if err != nil {
		yield(Entry{}, err)
		return false
	}
	for i, d := range decoded {
		e, done := Entry{}, budget.Part(s.context())
		if d == nil {
			e = gap(i)
		} else {
			e = d.clone()
			_, err = resolve(s.context(), s.store.Blobs(), &e, nodes[i].pos)
		}
		if err != nil {
			e = Entry{}
		}
		if !yield(e, err) || err != nil {
			return false
		}
		done()
	}
	return true
}

// someNodes returns how many of nodes are read at a time: few enough that their
// lines do not take much memory, unless a single one does.
func someNodes(nodes []node) int {
	const most, span = 256, 4 << 20
	n := 1
	for n < min(most, len(nodes)) && max(nodes[n].pos-nodes[0].pos, nodes[0].pos-nodes[n].pos) < span {
		n++
	}
	return n
}

// findAll returns the nodes of ids.
func (s *Session) findAll(op string, ids []string) ([]node, error) {
	nodes := make([]node, len(ids))
	for i, id := range ids {
		n, err := s.find(op, id)
		if err != nil {
			return nil, err
		}
		nodes[i] = n
	}
	return nodes, nil
}

// inOrder is entriesAt for nodes in any order.
func (s *Session) inOrder(nodes []node) ([]*Entry, error) {
	return s.ordered(nodes, s.cache.add)
}

// ordered is decoded for nodes in any order. One that is there more than once is read once.
func (s *Session) ordered(nodes []node, keep func([]node, []cached)) ([]*Entry, error) {
	entries, err := inOrderOf(nodes, func(sorted []node) ([]*Entry, error) { return s.decoded(s.context(), sorted, keep) })
	for i := 0; i < len(entries) && err == nil; i++ {
		if (nodes[i].guessedParent || nodes[i].attached) && entries[i] != nil {
			e := *entries[i]
			entries[i], err = &e, s.setParent(&e, nodes[i])
		}
	}
	return entries, err
}

// inOrderOf reads nodes in any order with a function that needs them sorted by position.
func inOrderOf(nodes []node, read func(sorted []node) ([]*Entry, error)) ([]*Entry, error) {
	sorted := make([]node, 0, len(nodes))
	at := make([]int, len(nodes))         // where the nodes are in sorted
	for _, i := range byPosition(nodes) { // gaps that connect added are at the end, not where they belong
		if n := len(sorted); n == 0 || sorted[n-1].pos != nodes[i].pos || sorted[n-1].id != nodes[i].id {
			sorted = append(sorted, nodes[i])
		}
		at[i] = len(sorted) - 1
	}
	decoded, err := read(sorted)
	if err != nil {
		return nil, err
	}
	entries := make([]*Entry, len(nodes))
	for i := range entries {
		entries[i] = decoded[at[i]]
	}
	return entries, nil
}

// byPosition returns the indexes of nodes in the order of the log.
func byPosition(nodes []node) []int {
	order := make([]int, len(nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(nodes[a].pos, nodes[b].pos) })
	return order
}

// Leaves returns the ids of the entries with which branches end, the oldest first. Entries
// that are only about the session (labels, names, custom entries) or move the leaf do not
// count: the last entry before them ends the branch, and a session that has nothing else has
// no branches.
func (s *Session) Leaves() ([]string, error) {
	var leaves []string
	err := s.withWhole(func(t *tree) error {
		goesOn := goesOn(t.nodes)
		for i := range t.nodes {
			if !goesOn[i] && !t.nodes[i].kind.isAside() {
				leaves = append(leaves, t.nodes[i].id)
			}
		}
		return nil
	})
	return leaves, err
}

// MessageCount returns how many messages the session has, on all branches.
func (s *Session) MessageCount() (int, error) {
	count := 0
	err := s.withWhole(func(t *tree) error {
		count = t.counts.kinds[kindMessage]
		return nil
	})
	return count, err
}

// Name returns the display name, or "" if the session has none.
func (s *Session) Name() (string, error) {
	var infos []node
	err := s.withWhole(func(t *tree) error {
		for _, at := range slices.Backward(t.listed[kindSessionInfo]) {
			infos = append(infos, t.nodes[at])
		}
		return nil
	})
	for i := 0; i < len(infos) && err == nil; i++ {
		var e *Entry
		if e, err = s.entryAt(s.context(), &infos[i]); err == nil {
			return e.SessionInfo.Name, nil
		}
		if errors.Is(err, ErrCorrupt) {
			err = nil // a damaged one does not hide the one before
		}
	}
	return "", err
}

// Labels returns the labels in force, by the ids of the entries they name.
func (s *Session) Labels() (map[string]string, error) {
	var nodes []node
	err := s.withWhole(func(t *tree) error {
		for _, at := range t.listed[kindLabel] {
			nodes = append(nodes, t.nodes[at])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	entries, err := s.entriesAt(s.context(), nodes)
	if err != nil {
		return nil, err
	}
	labels := make(map[string]string)
	for _, e := range entries {
		switch {
		case e == nil || e.Label.TargetID == "":
		case e.Label.Label == "":
			delete(labels, e.Label.TargetID)
		default:
			labels[e.Label.TargetID] = e.Label.Label
		}
	}
	return labels, nil
}
