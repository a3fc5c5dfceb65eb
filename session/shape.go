package session

import (
	"fmt"
	"iter"
	"slices"
)

// Shape is the tree of a session at one moment, by numbers: its entries are numbered from 0 in
// the order of the log, missing ones last. The first bytes of each line describe the tree, so it
// is known without reading the entries. A shape shares the memory of the session, so a tree of any
// size can be looked at without a copy. Peek and Entries read entries by their numbers.
type Shape struct {
	s        *Session
	tree     *tree // only to be compared: see Grew
	nodes    []node
	leaf     int32
	labels   int
	revision int
}

// Shape returns the tree of the session as it is now. It reads no entries.
func (s *Session) Shape() (*Shape, error) {
	if err := s.checkCurrent(); err != nil {
		return nil, err
	}
	shape := &Shape{s: s}
	err := s.withWhole(func(t *tree) error {
		shape.tree, shape.nodes = t, t.nodes[:len(t.nodes):len(t.nodes)] // nodes that were added never change
		shape.labels, shape.revision = len(t.listed[kindLabel]), t.revision
		if shape.leaf = none; t.leaf != "" {
			shape.leaf, _ = t.at(t.leaf)
		}
		return nil
	})
	return shape, err
}

// Len returns how many entries there are.
func (t *Shape) Len() int { return len(t.nodes) }

// Leaf returns the number of the entry that the next one will follow, or -1.
func (t *Shape) Leaf() int32 { return t.leaf }

// ID returns the id of an entry.
func (t *Shape) ID(n int32) string { return t.nodes[n].id }

// IDs returns the ids of all entries in the order of their numbers, including those that only move
// the leaf.
func (t *Shape) IDs() []string {
	ids := make([]string, len(t.nodes))
	for i := range t.nodes {
		ids[i] = t.nodes[i].id
	}
	return ids
}

// Path returns the entries from the root to one; -1 is the place before all of them.
func (t *Shape) Path(n int32) []int32 {
	var path []int32
	for ; n != none; n = t.nodes[n].parent {
		path = append(path, n)
	}
	slices.Reverse(path)
	return path
}

// PathTo is Path by an id; "" is the place before all entries. An id that no entry had at that
// moment is ErrNotExist.
func (t *Shape) PathTo(id string) ([]int32, error) {
	n := t.Index(id)
	if n < 0 && id != "" {
		return nil, t.s.errNoEntry("read the path in", id)
	}
	return t.Path(n), nil
}

// Parent returns the entry before one, or -1 if it is a root. It may have a higher number, if
// the log is damaged.
func (t *Shape) Parent(n int32) int32 { return t.nodes[n].parent }

// Type returns the type of an entry, if this version knows it.
func (t *Shape) Type(n int32) EntryType { return t.nodes[n].kind.entryType() }

// Role returns the role of a message if it is RoleUser, RoleAssistant or RoleSystem, and "" for
// any other. known is false if only the entry itself says it.
func (t *Shape) Role(n int32) (role MessageRole, known bool) {
	switch t.nodes[n].speaker {
	case speakerUser:
		return RoleUser, true
	case speakerModel, speakerSilent:
		return RoleAssistant, true
	case speakerSystem:
		return RoleSystem, true
	}
	return "", t.nodes[n].speaker != speakerUnknown || t.nodes[n].kind != kindMessage
}

// Index returns the number of an entry, or -1 if it had none at that moment.
func (t *Shape) Index(id string) int32 {
	at := none
	_ = t.s.withWhole(func(now *tree) error { // it fails only if the session is closed
		if n, ok := now.at(id); ok && int(n) < len(t.nodes) && t.nodes[n].id == id { // the tree may be another by now
			at = n
		}
		return nil
	})
	return at
}

// Numbers returns the numbers of entries: see Index.
func (t *Shape) Numbers(ids []string) []int32 {
	numbers := make([]int32, len(ids))
	for i, id := range ids {
		numbers[i] = t.Index(id)
	}
	return numbers
}

// Grew reports whether nothing but new entries at the end distinguishes the shape from an older
// one of the same session.
func (t *Shape) Grew(older *Shape) bool {
	return t.tree == older.tree && t.revision == older.revision && len(t.nodes) >= len(older.nodes)
}

// Relabelled reports whether labels were given or taken since an older shape of the same session.
func (t *Shape) Relabelled(older *Shape) bool { return t.labels != older.labels }

// Peek is Session.Peek by numbers, none of which may be there twice. It keeps nothing in memory,
// however often it is called. A number that no entry has is ErrNotExist. isWanted, if it is not nil,
// looks at the line of each entry; those that are not wanted have no type. The parent of an entry
// is the one that its line names: Parent has that of the tree.
func (t *Shape) Peek(numbers []int32, isWanted func(line []byte) bool) ([]Entry, error) {
	nodes, err := t.some("peek", numbers)
	if err != nil {
		return nil, err
	}
	var unwanted Entry
	decoded, err := inOrderOf(nodes, func(sorted []node) ([]*Entry, error) {
		entries := make([]*Entry, len(sorted))
		err := t.s.decodeLines(t.s.context(), sorted, func(i int) bool { return sorted[i].kind == kindGap }, func(i int, line []byte) bool {
			if isWanted == nil || isWanted(line) {
				return true
			}
			entries[i] = &unwanted
			return false
		}, func(i int, e cached) { entries[i] = e.entry })
		return entries, err
	})
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(nodes))
	for i, e := range decoded {
		if e == nil {
			entries[i] = gapEntry(t.nodes, int(numbers[i]))
		} else {
			entries[i] = *e
		}
	}
	return entries, nil
}

// Entries yields entries by their numbers, in that order. Their content is fetched one by one, so
// that no more than one is in memory, however large they are. What cannot be read is yielded as an
// entry of type TypeGap; a number that no entry has is ErrNotExist.
func (t *Shape) Entries(numbers []int32) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		nodes, err := t.some("read", numbers)
		if err == nil {
			err = t.s.checkCurrent() // the cache may have removed entries
		}
		if err != nil {
			yield(Entry{}, err)
			return
		}
		t.s.each(nodes, func(i int) Entry { return gapEntry(t.nodes, int(numbers[i])) }, yield)
	}
}

// some returns the nodes of numbers.
func (t *Shape) some(op string, numbers []int32) ([]node, error) {
	nodes := make([]node, len(numbers))
	for i, n := range numbers {
		if n < 0 || int(n) >= len(t.nodes) {
			return nil, &Error{Op: op, Name: t.s.name, Kind: ErrNotExist, Err: fmt.Errorf("entry number %d", n)}
		}
		nodes[i] = t.nodes[n]
	}
	err := t.s.withWhole(func(now *tree) error {
		if now == t.tree {
			return nil
		}
		for i := range nodes { // the logs of a chain were joined again: positions have changed
			at, ok := now.at(nodes[i].id)
			if !ok {
				return t.s.errNoEntry(op, nodes[i].id)
			}
			nodes[i] = now.nodes[at]
		}
		return nil
	})
	return nodes, err
}
