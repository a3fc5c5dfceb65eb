package clean

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/store"
)

// pending is the note of the changes of a sweep, store.PendingNote. It exists from before
// the first change until after the last, so that whatever a crash interrupts is finished
// later: see Finish.
type pending struct {
	// Blobs must be deleted. Without this list, a crash between rewriting a log and
	// deleting the blobs that it no longer names would leave them with nothing that leads
	// to them.
	Blobs []store.Ref `json:"blobs"`
	// Sessions are those being swept, unless All is set.
	Sessions []string `json:"sessions,omitempty"`
	All      bool     `json:"all,omitempty"`
}

func (p *pending) add(ref store.Ref) {
	if !slices.Contains(p.Blobs, ref) {
		p.Blobs = append(p.Blobs, ref)
	}
}

// readPending returns the changes that an interrupted Apply still has to make.
func (s *Sweep) readPending(ctx context.Context) (p pending, err error) {
	found, err := readPending(ctx, s.store)
	if s.begun = found != nil; s.begun {
		p = *found
	}
	return p, err
}

func readPending(ctx context.Context, st store.Store) (*pending, error) {
	data, err := st.Notes("").Read(ctx, store.PendingNote)
	if errors.Is(err, store.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p := &pending{}
	if err := json.Unmarshal(data, p); err != nil && json.Unmarshal(data, &p.Blobs) != nil { // older versions wrote only the list of blobs
		return nil, fmt.Errorf("%s: %w", st.Parts().Where(store.PartNote, store.PendingNote), err)
	}
	p.Blobs = slices.DeleteFunc(p.Blobs, func(ref store.Ref) bool { _, ok := ref.Hex(); return !ok })
	return p, nil
}

// notePending notes the changes that are about to be made, together with those that were not
// finished before.
func (s *Sweep) notePending(ctx context.Context) error {
	if s.pending.All = s.pending.All || len(s.opts.Sessions) == 0; s.pending.All {
		s.pending.Sessions = nil
	} else {
		s.pending.Sessions = append(s.pending.Sessions, s.opts.Sessions...)
		slices.Sort(s.pending.Sessions)
		s.pending.Sessions = slices.Compact(s.pending.Sessions)
	}
	data, err := json.Marshal(s.pending)
	if err != nil {
		return err
	}
	return s.store.Notes("").Write(ctx, store.PendingNote, data)
}

// forgetPending ends a sweep, unless an earlier one of more sessions was interrupted.
func (s *Sweep) forgetPending(ctx context.Context) error {
	if s.pending.All && len(s.opts.Sessions) > 0 {
		return nil
	}
	for _, name := range s.pending.Sessions {
		if s.listed[name] && len(s.opts.Sessions) > 0 && !slices.Contains(s.opts.Sessions, name) {
			return nil
		}
	}
	return s.store.Notes("").Remove(ctx, store.PendingNote)
}

// Unfinished reports whether a sweep was interrupted, so that some of its secrets may
// still be there.
func Unfinished(ctx context.Context, st store.Store) (bool, error) {
	p, err := readPending(ctx, st)
	return p != nil, err
}

// Finish makes the changes that an interrupted sweep still has to make. It takes out what that sweep
// had found, and nothing else. The options Sessions and Listed are ignored. The receipt
// is nil if there was nothing to do.
func Finish(ctx context.Context, st store.Store, o Options) (*Receipt, error) {
	p, err := readPending(ctx, st)
	if p == nil || err != nil {
		return nil, err
	}
	o.Listed, o.Sessions = true, nil
	names, err := store.Names(ctx, st)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !p.All && slices.Contains(p.Sessions, name) {
			o.Sessions = append(o.Sessions, name)
		}
	}
	s, err := LookWith(ctx, st, o) // if those sessions are gone, in all: something may still name the blobs
	if err != nil {
		return nil, err
	}
	return s.Apply(ctx)
}
