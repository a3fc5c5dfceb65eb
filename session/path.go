package session

import (
	"bytes"
	"iter"
	"slices"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// Path yields the path to an entry ("" is the leaf) from that entry back to its root.
// It reads the log from the end and stops where the caller does, so the last entries of a
// long session cost as little as those of a short one, and it holds one block of entries in memory
// at a time. Because of that it may not notice that a line repeats the id of an earlier one: Forward
// does. An unreadable entry is yielded with the type TypeGap; an id that the session does not have is
// ErrNotExist.
func (s *Session) Path(id string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := s.checkCurrent(); err != nil {
			yield(Entry{}, err)
			return
		}
		want := id // each use of the iterator begins at the leaf of that moment
		s.mu.RLock()
		if want == "" {
			want = s.tree.leaf
		}
		closed, whole, end := s.closed, s.tree.isWhole(), s.tree.end
		s.mu.RUnlock()
		switch {
		case closed:
			yield(Entry{}, s.errClosed("read"))
			return
		case want == "":
			return // there is no entry yet
		}
		if !whole {
			done := false
			if want, done = s.pathLines(end, want, yield); done {
				return
			}
		}
		s.pathNodes(want, yield)
	}
}

// Forward returns the path to an entry ("" is the leaf) from its root to that entry. It goes by the
// tree of the whole log.
func (s *Session) Forward(id string) ([]Entry, error) {
	if err := s.checkCurrent(); err != nil {
		return nil, err
	}
	nodes, err := s.pathTo(id)
	if err != nil {
		return nil, err
	}
	slices.Reverse(nodes)
	gap := func(i int) Entry {
		e := Entry{Type: TypeGap, ID: nodes[i].id}
		if i > 0 {
			e.ParentID = &nodes[i-1].id
		}
		return e
	}
	entries := make([]Entry, 0, len(nodes))
	s.each(nodes, gap, func(e Entry, failed error) bool {
		entries, err = append(entries, e), failed
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// pathLines reads the path from the lines of the log. It gives up where the lines alone
// do not show how the path continues: at a damaged line, if an entry comes after its child, or
// where a session of a chain begins. It then returns the entry that it was looking for; the whole
// tree knows where that is.
func (s *Session) pathLines(end store.Pos, want string, yield func(Entry, error) bool) (rest string, done bool) {
	ctx := s.context()
	chain := severalIn(s.log)
	for line, err := range s.log.Backward(ctx, end) {
		if err != nil {
			yield(Entry{}, err)
			return "", true
		}
		h, ok := rawjson.ScanHead(line.Data)
		if !ok || line.Cut || string(h.Type) == string(TypeSession) || chain != nil && !chain.isOwn(line.Pos) {
			break
		}
		if string(h.ID) != want {
			continue
		}
		e, err := decodeEntry(bytes.Clone(line.Data))
		if err != nil || !h.HasParent {
			break
		}
		if _, err := resolve(ctx, s.store.Blobs(), e, line.Pos); err != nil {
			yield(Entry{}, err)
			return "", true
		}
		if !yield(*e, nil) || e.ParentID == nil || *e.ParentID == "" {
			return "", true
		}
		want = *e.ParentID
	}
	return want, false
}

// pathNodes reads the path by the tree. How many entries the caller will want is
// unknown, so it reads one at first and then more at a time.
func (s *Session) pathNodes(id string, yield func(Entry, error) bool) {
	nodes, err := s.pathTo(id)
	if err != nil {
		yield(Entry{}, err)
		return
	}
	const most = 256
	for want := 1; len(nodes) > 0; want = min(2*want, most) {
		some, before := nodes[:min(want, someNodes(nodes))], nodes[1:]
		gap := func(i int) Entry {
			e := Entry{Type: TypeGap, ID: some[i].id}
			if i < len(before) {
				e.ParentID = &before[i].id
			}
			return e
		}
		stopped := false
		s.each(some, gap, func(e Entry, err error) bool {
			stopped = !yield(e, err) || err != nil
			return !stopped
		})
		if stopped {
			return
		}
		nodes = nodes[len(some):]
	}
}

// pathTo returns the nodes from an entry back to its root; "" is the leaf.
func (s *Session) pathTo(id string) (nodes []node, err error) {
	err = s.withWhole(func(t *tree) error {
		if id == "" {
			id = t.leaf
		}
		path, ok := t.path(id)
		if !ok {
			return s.errNoEntry("read the path in", id)
		}
		nodes = make([]node, len(path))
		for i, at := range path {
			nodes[i] = t.nodes[at]
		}
		return nil
	})
	return nodes, err
}
