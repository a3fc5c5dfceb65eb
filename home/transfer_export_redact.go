package home

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
)

// redactedCopy returns a copy of a conversation in memory, without its secrets. Renderers get the
// copy, so that none of them can show a secret that another one would have caught.
func redactedCopy(ctx context.Context, c *Conversation) (*session.Session, error) {
	entries := func(yield func(session.Entry, error) bool) {
		for e, err := range c.eachAsOne(ctx) {
			if err == nil {
				c.Fill(&e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
	st, err := openScratch(ctx, "")
	if err != nil {
		return nil, err
	}
	return copyEntries(ctx, st, c.Session, entries, &session.Options{Clean: clean.Append, BlobThreshold: -1})
}

// copyEntries makes a copy of a session from its entries, with the same leaf.
func copyEntries(ctx context.Context, to store.Store, s *session.Session, entries iter.Seq2[session.Entry, error], o *session.Options) (*session.Session, error) {
	copied, err := session.Create(ctx, to, s.Header(), o)
	if err != nil {
		return nil, err
	}
	if err = graftAll(copied.WithContext(ctx), s, entries); err == nil {
		err = moveLeaf(copied, s)
	}
	if err != nil {
		return nil, errors.Join(err, copied.Close())
	}
	return copied, nil
}

// graftAll copies the entries of a session one by one, in the order of its log. A note
// replaces a missing entry that others follow, as in a fork.
func graftAll(to, from *session.Session, entries iter.Seq2[session.Entry, error]) error {
	for e, err := range entries {
		if err != nil {
			return err
		}
		if e.Type == session.TypeGap {
			continue
		}
		if e.ParentID != nil {
			if has, err := graftGaps(to, from, *e.ParentID, e.Timestamp); err != nil {
				return err
			} else if !has {
				e.ParentID = nil
			}
		}
		err = to.Graft(e)
		if _, isCut := errors.AsType[*session.CutError](err); isCut { // another program wrote it
			err = graftMoved(to, e, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// graftMoved grafts a compaction that was refused with another cut, if there is one.
func graftMoved(to *session.Session, e session.Entry, refused error) error {
	if e.ParentID == nil {
		return refused
	}
	path, err := to.Forward(*e.ParentID)
	if err != nil {
		return err
	}
	if moved, ok := session.MoveCut(path, e); ok {
		return to.Graft(moved)
	}
	return refused
}

// graftGaps adds notes in place of a missing entry and missing ones before it, and reports
// whether something has that id now. (An entry that only comes later in the log is not
// missing.)
func graftGaps(to, from *session.Session, id string, at time.Time) (bool, error) {
	if has, err := to.Has(id); has || err != nil {
		return has, err
	}
	shape, path, err := pathIn(from, id)
	if err != nil {
		return false, err
	}
	for i := 0; i < len(path) && err == nil; i++ {
		var has bool
		if has, err = to.Has(shape.ID(path[i])); has || err != nil {
			continue
		}
		var there []session.Entry
		if there, err = shape.Peek(path[i:i+1], nil); err != nil || there[0].Type != session.TypeGap {
			return false, err
		}
		err = to.Graft(session.Entry{
			Type: session.TypeCustom, ID: there[0].ID, ParentID: there[0].ParentID, Timestamp: at,
			Custom: &session.CustomEntry{CustomType: session.CustomGap, Data: map[string]any{"session": from.ID()}},
		})
	}
	return err == nil && len(path) > 0, err
}

// moveLeaf gives a copy the leaf of its original, or the nearest before it that could be
// copied.
func moveLeaf(copied, from *session.Session) error {
	leaf := from.LeafID()
	if leaf == "" || leaf == copied.LeafID() {
		return nil
	}
	shape, err := from.Shape()
	if err != nil {
		return err
	}
	for n := shape.Index(leaf); n >= 0; n = shape.Parent(n) {
		id := shape.ID(n)
		has, err := copied.Has(id)
		switch {
		case err != nil:
			return err
		case has && id != copied.LeafID():
			return copied.Branch(id)
		case has:
			return nil
		}
	}
	return nil
}
