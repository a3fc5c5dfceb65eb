package session

import (
	"iter"
	"slices"
)

// Each, EntryIDs, OutlinePath, PathTo and Backward go once nothing calls them.

func (s *Session) Backward(id string) iter.Seq2[Entry, error] { return s.Path(id) }

func (s *Session) PathTo(id string) ([]Entry, error) { return Forward(s.Path(id)) }

func (s *Session) EntryIDs() ([]string, error) {
	t, err := s.Shape()
	if err != nil {
		return nil, err
	}
	return slices.Collect(t.IDs()), nil
}

func (s *Session) OutlinePath(id string) ([]Entry, error) {
	nodes, err := s.pathTo(id)
	if err != nil {
		return nil, err
	}
	slices.Reverse(nodes)
	entries := make([]Entry, len(nodes))
	for i := range nodes {
		entries[i].ID, entries[i].Type = nodes[i].id, nodes[i].kind.entryType()
		if i > 0 {
			entries[i].ParentID = &nodes[i-1].id
		}
	}
	return entries, nil
}

func (s *Session) Each(ids ...string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		nodes, err := s.findAll("each", ids)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		s.each(nodes, func(i int) Entry { return Entry{Type: TypeGap, ID: ids[i]} }, yield)
	}
}
