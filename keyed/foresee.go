package keyed

import (
	"context"
	"strconv"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// with returns the view that the conversation will have after changes that are not written
// yet. Messages and a summary are simply added. For anything else only a session knows what
// remains, so the changes are applied to a copy in memory. That happens only while a store
// cannot be written to.
func (v view) with(changes []change, blobs store.Blobs) view {
	v.items = v.items[:len(v.items):len(v.items)] // clipped: the written view continues in the same memory
	for n, c := range changes {
		switch c := c.(type) {
		case *addition:
			e := c.entry
			e.ID = "unwritten " + strconv.Itoa(n) // must differ from the others
			v = v.after(e)
		case *rewrite:
			if c.isSummary() {
				v.summary, v.updated = *c.summary, c.at
			} else if next, err := v.foresee(c.entries(v), blobs); err == nil {
				v = next
			}
		}
	}
	return v
}

// isSummary reports whether only the summary changes.
func (r *rewrite) isSummary() bool {
	return r.summary != nil && r.truncate == nil && r.replace == nil && r.keepFrom == ""
}

// overlay is a store in memory with another store's blobs.
type overlay struct {
	*memory.Store
	blobs store.Blobs
}

func (o overlay) Blobs() store.Blobs { return o.blobs }

// foresee returns the view that the conversation will have after entries.
func (v view) foresee(entries []session.Entry, blobs store.Blobs) (view, error) {
	if len(entries) == 0 {
		return v, nil
	}
	const inLine = -1 // no blobs, because nothing may be written to the store
	opts := &session.Options{BlobThreshold: inLine}
	s, err := session.Create(context.Background(), overlay{memory.New(nil), blobs}, session.Header{}, opts)
	if err != nil {
		return v, err
	}
	defer s.Close()
	if err := s.Graft(v.asPath()...); err != nil {
		return v, err
	}
	if _, err := s.AppendAll(entries...); err != nil {
		return v, err
	}
	next, _, err := viewAt(s, "")
	return next, err
}

// asPath returns the entries of the view one after the other, as if they were a whole
// session. What a merge brought counts as said after it.
func (v view) asPath() []session.Entry {
	path := make([]session.Entry, 0, len(v.items))
	var last *string
	for i := range v.items {
		e := v.items[i].entry
		if e.Merge != nil {
			merge := *e.Merge
			merge.EntryIDs = nil
			e.Merge = &merge
		}
		if v.items[i].merged {
			e.ID = "merged " + strconv.Itoa(i)
		}
		e.ParentID = last
		last = &e.ID
		path = append(path, e)
	}
	return path
}
