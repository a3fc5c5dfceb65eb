package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// An entry gets its place in the tree under the lock:
//
//	            id                       parent                   time
//	appended    the caller's, or made    the leaf of the batch    the caller's, or now
//	grafted     its own, must be new     its own, must exist      its own
//
// The leaf of a batch is that of the session at first, and then the last entry of the batch, or the
// entry that a move of the leaf leads to. References are looked up in the batch first, then in the
// tree, and then, if only the end of the log was read, in the whole log.

// assign gives an entry its id, its parent and its time, and makes sure that the entries it refers to
// exist. It is called with mu held for writing.
func (s *Session) assign(ctx context.Context, w *writing, b *batch, i int) error {
	e := &w.entries[i]
	graft := w.isGraft(i)
	if !graft {
		s.complete(w, e, b)
	}
	if err := s.checkID(ctx, w, b, i); err != nil {
		return err
	}
	if (graft || e.Type == TypeLeaf) && e.ParentID != nil {
		of, err := s.findRef(ctx, w, b, i, *e.ParentID, "parent")
		if err != nil {
			return err
		}
		if of == kindLeaf && !graft { // a leaf is never a move: see leafAfter
			to, err := s.leafAfter(ctx, b, *e.ParentID)
			if err != nil {
				return err
			}
			if e.ParentID = &to; to == "" {
				e.ParentID = nil
			}
		}
	}
	switch {
	case e.Message != nil:
		return nil
	case graft:
		return s.checkKept(ctx, b, e)
	}
	return s.checkRefs(ctx, w, b, i)
}

// checkKept makes sure that the entries exist that a grafted compaction says it keeps. Otherwise its
// list is left out, and readers search for them.
func (s *Session) checkKept(ctx context.Context, b *batch, e *Entry) error {
	if e.Compaction == nil || e.Compaction.State == nil || len(e.Compaction.State.Kept) == 0 {
		return nil
	}
	if err := s.loadWhole(ctx); err != nil {
		return err
	}
	for _, k := range e.Compaction.State.Kept {
		if _, ok := s.tree.at(k.ID); ok || b.index(k.ID) >= 0 {
			continue
		}
		c, state := *e.Compaction, *e.Compaction.State
		state.Kept = nil
		c.State, e.Compaction = &state, &c
		return nil
	}
	return nil
}

// leafAfter is tree.leafAfter for a tree that ends with the batch. It reads the whole log if
// it must.
func (s *Session) leafAfter(ctx context.Context, b *batch, id string) (string, error) {
	for i := b.index(id); i >= 0; i = b.index(id) {
		if b.heads[i].kind != kindLeaf {
			return id, nil
		}
		id = b.heads[i].parent
	}
	to, known := s.tree.leafAfter(id)
	if known {
		return to, nil
	}
	err := s.loadWhole(ctx)
	to, _ = s.tree.leafAfter(id)
	return to, err
}

// complete gives an entry its parent and its time. A move of the leaf has its parent from the caller:
// the entry that it leads to.
func (s *Session) complete(w *writing, e *Entry, b *batch) {
	if e.Type != TypeLeaf {
		e.ParentID = nil
		switch {
		case b.leaf == "":
		case w.alone:
			w.parent = b.leaf
			e.ParentID = &w.parent
		default:
			leaf := b.leaf
			e.ParentID = &leaf
		}
	}
	if e.Timestamp.IsZero() && !e.hasOddTime() {
		b.now = s.opts.Now().UTC()
		e.Timestamp = b.now
	}
}

// hasOddTime reports whether the entry was read with a time that is not one,
// which is kept.
func (e *Entry) hasOddTime() bool {
	_, _, odd := e.Extra.take("timestamp")
	return odd
}

// checkID makes sure that an entry has an id that no other has. An id of our own
// is new: no table need be asked.
func (s *Session) checkID(ctx context.Context, w *writing, b *batch, i int) error {
	e := &w.entries[i]
	switch {
	case w.isGraft(i) && e.ID == "":
		return s.refuse(w, i, ErrInvalid, errors.New("an entry has no id; entries from elsewhere must have one"))
	case w.isGraft(i) && e.Timestamp.IsZero() && !e.hasOddTime():
		return s.refuse(w, i, ErrInvalid, errors.New("an entry has no time; entries from elsewhere must have one"))
	case e.ID == "" && b.now != (time.Time{}) && s.opts.ownIDs:
		e.ID, w.ownIDs = ids.next(b.now), true
		return nil
	case e.ID == "", w.origin(i) == madeHere:
		if e.ID == "" {
			e.ID, w.ownIDs = s.opts.NewID(e.Type), true
		}
		if e.ID == "" || len(e.ID) > maxID || !utf8.ValidString(e.ID) {
			return s.refuse(w, i, ErrInvalid, fmt.Errorf("Options.NewID made the id %.80q", e.ID))
		}
		return nil
	}
	if err := s.loadWhole(ctx); err != nil {
		return err
	}
	if _, taken := s.tree.at(e.ID); taken || b.index(e.ID) >= 0 {
		return s.refuse(w, i, ErrExist, nil)
	}
	return nil
}

// findRef returns the kind of an entry that entry i refers to, as its parent or its target for
// example. It reads the whole log if it must.
func (s *Session) findRef(ctx context.Context, w *writing, b *batch, i int, id, as string) (kind, error) {
	if at := b.index(id); at >= 0 {
		return b.heads[at].kind, nil
	}
	at, ok := s.tree.at(id)
	if !ok {
		if err := s.loadWhole(ctx); err != nil {
			return 0, err
		}
		if at, ok = s.tree.at(id); !ok {
			return 0, s.errNoRef(w, i, id, as)
		}
	}
	return s.tree.nodes[at].kind, nil
}

// errNoRef is the error for a reference to an entry that does not exist.
func (s *Session) errNoRef(w *writing, i int, id, as string) error {
	if len(w.entries) == 1 && !w.isNamed(i) {
		return s.errNoEntry(w.op, id)
	}
	return &Error{Op: w.op, Name: s.name, Kind: ErrNotExist, Err: fmt.Errorf("entry %.80q, the %s of %s", id, as, w.which(i))}
}

// checkRefs makes sure that the entries that an entry refers to exist, where checkInLog has
// not done so.
func (s *Session) checkRefs(ctx context.Context, w *writing, b *batch, i int) (err error) {
	k, _ := w.entries[i].payload()
	w.entries[i].eachRef(func(as ref, id *string) {
		switch {
		case err != nil || kinds[k].inLog != inLogNever:
		case as == refTarget:
			err = s.checkTarget(ctx, w, b, i, *id)
		case as == refFrom && *id != "":
			_, err = s.findRef(ctx, w, b, i, *id, "from_id")
		}
	})
	return err
}

// checkTarget makes sure that the entry exists that another one acts on: anywhere, or on the path if
// it has an effect only there.
func (s *Session) checkTarget(ctx context.Context, w *writing, b *batch, i int, id string) error {
	k, _ := w.entries[i].payload()
	of, err := s.findRef(ctx, w, b, i, id, "target")
	rule := kinds[k].target
	if err != nil || rule == nil {
		return err
	}
	if !slices.Contains(rule.kinds, of) {
		return s.refuse(w, i, ErrInvalid, fmt.Errorf("entry %q is of type %s; %s", id, of.entryType(), rule.words))
	}
	if s.isOnPath(b, id) {
		return nil
	}
	if err := s.loadWhole(ctx); err != nil {
		return err
	}
	if !s.isOnPath(b, id) {
		return s.refuse(w, i, ErrInvalid, fmt.Errorf("entry %q is not on the path to the leaf %q", id, b.leaf))
	}
	return nil
}

// isOnPath reports whether an entry is on the path to the leaf of the batch. It looks at runs of
// entries that follow one another: a batch has few, however long it is.
func (s *Session) isOnPath(b *batch, id string) bool {
	target, leaf := b.index(id), b.leaf
	for at := b.index(leaf); at >= 0; at = b.index(leaf) {
		if target >= b.runs[at] && target <= at {
			return true
		}
		leaf = b.heads[b.runs[at]].parent
	}
	return target < 0 && s.tree.isOnPath(id, leaf)
}
