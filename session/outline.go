package session

import (
	"cmp"
	"slices"
)

// The first bytes of each line describe the session's tree. They are read when it is
// opened, so drawing a tree is cheap, and only the visible entries need decoding.

// EntryIDs returns the ids of all entries in the order of the log, including those that
// only move the leaf. Missing entries come last.
func (s *Session) EntryIDs() ([]string, error) {
	nodes, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(nodes))
	for i := range nodes {
		ids[i] = nodes[i].id
	}
	return ids, nil
}

// Peek returns entries as they are in the log: content that is kept in blobs is
// not fetched. What cannot be read is an entry of type TypeGap; an id that the
// session does not have is ErrNotExist.
func (s *Session) Peek(ids ...string) ([]Entry, error) {
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

// byPosition returns the indexes of nodes in the order of the log.
func byPosition(nodes []node) []int {
	order := make([]int, len(nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(nodes[a].pos, nodes[b].pos) })
	return order
}
