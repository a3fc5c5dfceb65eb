package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-dev/coppice/store"
)

// Update writes several entries as one: fn hands them to tx, and when it returns, all of them
// are written with one write and one sync, or none is. Use it to append at a certain place
// while others write to the same session:
//
//	err := s.Update(ctx, func(tx *session.Tx) error {
//		tx.Branch(question) // wherever the leaf is now
//		if err := tx.Expect(question); err != nil {
//			return err // it was answered already
//		}
//		answer = tx.Append(entry)
//		return nil
//	})
//
// Whatever fn reads from the session or from tx is still true when its entries are written.
// If another writer was faster, in this process or another, Update reads its entries and
// calls fn again with a new Tx. So fn may run several times. It must change only tx and
// variables that it assigns on every run, and must not write to the session in any other
// way. An error from fn is also checked against the latest state: if others have written,
// fn runs again before Update returns the error. After an error nothing is written, and the
// leaf is where it was.
//
// A power cut during the write may leave only the first lines, as with any append that has
// not returned. Order the entries so that the first ones alone do no harm.
//
// Like an append, an update can end in ErrUnknown, and in ErrConflict if others always come
// first. Updates of one session wait for each other, so fn must not begin another one.
func (s *Session) Update(ctx context.Context, fn func(tx *Tx) error) error {
	return s.WithContext(ctx).update("update", true, fn)
}

// Tx is what one Update will write. If there is something wrong with an entry, Update returns
// the error.
type Tx struct {
	s       *Session
	again   bool      // fn is called again after a conflict
	from    string    // the leaf that the entries are written after
	leaf    string    // after the entries so far
	own     string    // the leaf of the session when the Tx was begun
	logLeaf string    // that of its log
	end     store.Pos // up to here it had read the log

	w       writing
	origins []origin // of the entries of w
}

// origin is where an entry comes from.
type origin uint8

const (
	given    origin = iota // the caller made it, perhaps with an id
	madeHere               // a Tx gave it its id, which is new
	grafted                // it grew elsewhere: see Graft
)

func (w *writing) origin(i int) origin {
	switch {
	case w.tx != nil:
		return w.tx.origins[i]
	case w.graft:
		return grafted
	}
	return given
}

func (w *writing) isGraft(i int) bool { return w.origin(i) == grafted }

// startLeaf returns the leaf that the first entry follows. leaf is the session's.
func (w *writing) startLeaf(leaf string) string {
	if w.tx != nil {
		return w.tx.from
	}
	return leaf
}

// Leaf returns the entry that the next one will follow, or "" if it will be a root.
func (tx *Tx) Leaf() string { return tx.leaf }

// Expect returns an error that matches ErrConflict, and names both entries, unless the next
// entry would follow the given one at the end of its branch. That end is the leaf of the
// session or, where Branch has moved to, an entry that nothing follows. So Branch(id) and
// then Expect(id) mean: after this entry, if it is still the last one there. Remarks after
// the entry (labels, names, custom entries) do not count.
func (tx *Tx) Expect(entryID string) error {
	if tx.leaf == entryID && tx.from == entryID {
		return nil
	}
	return tx.s.withWhole(func(t *tree) error {
		if !t.onlyRemarksAfter(entryID, tx.leaf) {
			return tx.errConflict("the conversation ends with entry %q, not %q", tx.leaf, entryID)
		}
		if next, ok := t.next(entryID); ok && !t.onlyRemarksAfter(entryID, tx.from) {
			return tx.errConflict("entry %q already follows %q", next, entryID)
		}
		return nil
	})
}

func (tx *Tx) errConflict(format string, entries ...any) error {
	return &Error{
		Op: tx.w.op, Name: tx.s.name, Kind: ErrConflict,
		Err:  fmt.Errorf(format+"; nothing was written", entries...),
		Hint: "look at what was added, then try again",
	}
}

// Branch moves the leaf to an entry, which may be one of this Tx: the next one will follow it.
// "" is before the first entry. After the update, the leaf of the session is there, too.
func (tx *Tx) Branch(entryID string) {
	if tx.leaf != entryID || len(tx.w.entries) == 0 && tx.logLeaf != entryID { // else it is there, and the log says so
		tx.moveTo(entryID)
	}
}

func (tx *Tx) moveTo(entryID string) {
	move := Entry{Type: TypeLeaf, Leaf: &LeafEntry{FromID: tx.leaf}}
	if entryID != "" {
		move.ParentID = &entryID
	}
	tx.Append(move)
}

// Append adds an entry of any type after the leaf, as Session.AppendEntry does, and makes it the
// leaf. It returns the entry's id.
func (tx *Tx) Append(e Entry) string {
	from := given
	if e.ID == "" {
		from = madeHere
		if e.Timestamp.IsZero() && !e.hasOddTime() {
			e.Timestamp = tx.s.opts.Now().UTC()
		}
		if tx.s.opts.ownIDs {
			e.ID = ids.next(e.Timestamp)
		} else {
			e.ID = tx.s.opts.NewID(e.Type)
		}
	}
	tx.add(e, from)
	return e.ID
}

// Graft adds entries that were written elsewhere, each under its own parent: see
// Session.Graft. The last of them is the leaf.
func (tx *Tx) Graft(entries ...Entry) {
	for _, e := range entries {
		tx.add(e, grafted)
	}
}

func (tx *Tx) add(e Entry, from origin) {
	tx.w.entries, tx.origins = append(tx.w.entries, e), append(tx.origins, from)
	if tx.leaf = e.ID; e.Type == TypeLeaf {
		tx.leaf = deref(e.ParentID)
	}
}

// isCurrent reports whether the session is as it was when the Tx was begun. It is called with
// mu held.
func (tx *Tx) isCurrent() bool { return tx.s.tree.end == tx.end && tx.s.tree.leaf == tx.own }

// begin returns an empty Tx at the leaf of the log, unless the session is to stay on a branch
// of its own: after a conflict that was reported, and with GrowBranch.
func (s *Session) begin(op string, again bool) (*Tx, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	tx := &Tx{s: s, again: again, from: s.tree.leaf, own: s.tree.leaf, logLeaf: s.tree.logLeaf, end: s.tree.end}
	if again && !s.apart && s.opts.OnConflict != GrowBranch {
		tx.from = tx.logLeaf
	}
	tx.leaf = tx.from
	tx.w.op, tx.w.tx = op, tx
	return tx, s.checkOpen(op)
}

// update is Update. Without again, an append of another process is a conflict, with which
// Options.OnConflict deals.
func (s *Session) update(op string, again bool, fn func(tx *Tx) error) error {
	if fn == nil {
		return &Error{Op: op, Name: s.name, Kind: ErrInvalid, Err: errors.New("there is no function to call: give one that appends to the Tx")}
	}
	blobs := heldBlobs{store: s.store}
	defer blobs.release() // only after the lines that name them are in the log
	commit, err := s.tryUpdate(op, again, fn, &blobs)
	if err != nil {
		return err
	}
	return s.await(commit)
}

// last writes what fn says, without again, and returns the leaf after that.
func (s *Session) last(op string, fn func(tx *Tx)) (leaf string, err error) {
	err = s.update(op, false, func(tx *Tx) error {
		fn(tx)
		leaf = tx.leaf
		return nil
	})
	if err != nil {
		return "", err
	}
	return leaf, nil
}

// tryUpdate calls fn and writes its entries, until no other writer comes in between.
func (s *Session) tryUpdate(op string, again bool, fn func(tx *Tx) error, blobs *heldBlobs) (func() error, error) {
	if again {
		if err := s.updating.LockContext(s.context()); err != nil {
			return nil, err
		}
		defer s.updating.Unlock()
	}
	for n := 1; ; n++ {
		tx, err := s.begin(op, again)
		if err != nil {
			return nil, err
		}
		var commit func() error
		if err = fn(tx); err == nil {
			_, commit, err = s.start(&tx.w, blobs)
		}
		if err == nil || !again && err != errLeafMoved {
			return commit, err
		}
		if again {
			if err := s.mayTryAgain(tx, err, n); err != nil {
				return nil, err
			}
		}
	}
}

// mayTryAgain reads the entries that others wrote since a Tx was begun. If there is nothing, the error
// with which it ended is final.
func (s *Session) mayTryAgain(tx *Tx, err error, n int) error {
	ctx := s.context()
	if ctx.Err() != nil || err != errLeafMoved && MustReopen(err) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && s.tree.end == tx.end {
		if absorbErr := s.absorbAll(ctx); absorbErr != nil {
			return errors.Join(hideMoved(err), absorbErr)
		}
	}
	switch moved := err == errLeafMoved; {
	case moved && tx.isCurrent():
		return s.errShorter()
	case tx.isCurrent():
		return err
	case n == maxConflicts && moved:
		return &ConflictError{Leaf: s.tree.leaf, Theirs: s.tree.logLeaf, Err: &Error{Op: tx.w.op, Name: s.name, Kind: ErrConflict}}
	case n == maxConflicts:
		return err
	}
	return nil
}

// absorbAll is absorb, and continues with the sessions that continue a chain: an update is
// written to the last one.
func (s *Session) absorbAll(ctx context.Context) error {
	err := s.absorb(ctx)
	if chain, ok := s.log.(*chainLog); ok && err == nil {
		err = s.followChain(ctx, chain)
	}
	return err
}

// hideMoved returns an error, or nil if it is only for us.
func hideMoved(err error) error {
	if err == errLeafMoved {
		return nil
	}
	return err
}
