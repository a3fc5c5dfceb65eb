package clean

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/store"
)

// Adopt lists in a store the secrets that were taken out of another one, and takes them out of the store,
// too: of its sessions, their copies and blobs. If it knew everything already, the receipt is
// nil. If Adopt or the machine fails, Finish does the rest. Of the options, Progress and
// DropDerived count.
func Adopt(ctx context.Context, st, from store.Store, o Options) (*Receipt, error) {
	theirs, err := readList(ctx, from)
	if err != nil {
		return nil, err
	}
	ours, err := readList(ctx, st)
	if err != nil || !ours.add(*theirs) {
		return nil, err
	}
	s := &Sweep{store: st}
	if s.pending, err = s.readPending(ctx); err != nil {
		return nil, err
	}
	// The note comes first: with the list alone, nobody would know that the sessions have not
	// been searched for it.
	if err := s.notePending(ctx); err != nil {
		return nil, err
	}
	err = st.Notes("").Change(ctx, store.RedactedNote, func(old []byte) ([]byte, error) {
		l := &list{}
		if len(old) > 0 {
			if err := l.parse(old); err != nil {
				return nil, fmt.Errorf("%s: %w", listPlace(st), err)
			}
		}
		l.add(*theirs)
		return json.Marshal(l)
	})
	if err != nil {
		return nil, err
	}
	return Finish(ctx, st, o)
}

// add adds the digests of another list and reports whether any is new. Digests that were made
// with different keys cannot be compared, so there is a list for each key.
func (l *list) add(other list) (grown bool) {
	for _, one := range append([]list{{Key: other.Key, Values: other.Values}}, other.Others...) {
		if len(one.Values) == 0 {
			continue
		}
		grown = l.of(one.Key).merge(one.Values) || grown
	}
	return grown
}

// of returns the list for a key.
func (l *list) of(key []byte) *list {
	if l.Key == nil {
		l.Key = key
	}
	if bytes.Equal(l.Key, key) {
		return l
	}
	at := slices.IndexFunc(l.Others, func(o list) bool { return bytes.Equal(o.Key, key) })
	if at < 0 {
		at = len(l.Others)
		l.Others = append(l.Others, list{Key: key})
	}
	return &l.Others[at]
}

// merge adds the digests of a list with the same key.
func (l *list) merge(values []digest) (grown bool) {
	for _, d := range values {
		at := slices.IndexFunc(l.Values, func(old digest) bool { return bytes.Equal(old.MAC, d.MAC) })
		switch {
		case at < 0:
			l.Values, grown = append(l.Values, d), true
		case l.Values[at].Word && !d.Word: // until now only where a rule found it
			l.Values[at], grown = d, true
		}
	}
	l.sort()
	return grown
}

// sort gives the digests an order that reveals nothing.
func (l *list) sort() {
	slices.SortFunc(l.Values, func(a, b digest) int { return bytes.Compare(a.MAC, b.MAC) })
}
