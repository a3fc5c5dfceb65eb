package session

import "slices"

// Graft appends entries that were written elsewhere. Each keeps its own id, parent and
// time, which must all be set (a nil parent makes a root). A parent must be in the session
// already or come earlier among the entries. All of them are written with one write and one
// sync, or none. ErrExist means that an id is taken, ErrNotExist that a parent is missing.
// Afterwards the leaf is the last of them, or wherever that one moves it.
//
// What another program wrote may be odd, and is kept: unknown roles, results without a call,
// labels of nothing. What would mislead a reader is refused as everywhere: an entry or a
// block that does not match its type, and a compaction that separates a tool call from its
// result.
func (s *Session) Graft(entries ...Entry) error {
	_, err := s.put(&writing{op: "graft", entries: slices.Clone(entries), graft: true})
	return err
}

// Has reports whether the session has an entry of an id.
func (s *Session) Has(id string) (bool, error) {
	has := false
	err := s.withWhole(func(t *tree) error {
		_, has = t.at(id)
		return nil
	})
	return has, err
}
