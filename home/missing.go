package home

import (
	"context"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// What cannot be read of a conversation is named by every operation that would have returned
// it. A reader gets the rest, and then an error that matches ErrIncomplete, or a result that
// lists what is missing.

// MissingContent is content that cannot be read.
type MissingContent struct {
	Entry string `json:"entry"`          // "" for a line of the log that may have been any entry
	Blob  string `json:"blob,omitempty"` // "" if the entry itself cannot be read
	Why   string `json:"why,omitempty"`  // what is wrong with the log there, if it is that
}

// missingIn lists the faults for which a context lacks content.
func missingIn(problems []session.Problem) (missing []MissingContent) {
	for _, p := range problems {
		switch p.Kind {
		case session.ProblemBlob:
			missing = append(missing, MissingContent{Entry: p.EntryID, Blob: string(p.Blob)})
		case session.ProblemDamaged:
			missing = append(missing, MissingContent{Entry: p.EntryID, Why: p.Detail})
		}
	}
	return missing
}

// missingOfAll lists what a copy of all lines of a session lacks: what damage hides, and entries of
// which only the first bytes can be read. It does not look at blobs.
func missingOfAll(ctx context.Context, s *session.Session) ([]MissingContent, error) {
	damage, err := session.Damage(s)
	if err != nil {
		return nil, err
	}
	var missing []MissingContent
	for _, p := range damage {
		missing = append(missing, MissingContent{Entry: p.EntryID, Why: p.Detail})
	}
	shape, err := s.Shape()
	if err != nil {
		return nil, err
	}
	for e, err := range eachPeeked(ctx, s) {
		if err != nil {
			return nil, err
		}
		if e.Type == session.TypeGap && shape.Type(shape.Index(e.ID)) != session.TypeGap {
			missing = append(missing, MissingContent{Entry: e.ID, Why: "its first bytes can be read, the rest cannot"})
		}
	}
	return missing, nil
}

// losses collects the unreadable content of the entries that an operation returned. It is safe
// for concurrent use.
type losses struct {
	mu   sync.Mutex
	lost []session.Problem
	has  map[MissingContent]bool
}

// note notes a blob that cannot be read, or an entry if there is no error.
func (l *losses) note(entry string, blob store.Ref, err error) {
	p := session.Problem{Kind: session.ProblemDamaged, EntryID: entry, Detail: "the entry cannot be read"}
	if blob != "" {
		p = session.Problem{Kind: session.ProblemBlob, EntryID: entry, Blob: blob, Detail: "its content is missing", Err: err}
	}
	if err != nil {
		p.Detail = err.Error()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if key := (MissingContent{Entry: entry, Blob: string(blob)}); !l.has[key] {
		if l.has == nil {
			l.has = make(map[MissingContent]bool)
		}
		l.has[key] = true
		l.lost = append(l.lost, p)
	}
}

// look notes the missing content of an entry that was read.
func (l *losses) look(e *session.Entry) {
	if e.Type == session.TypeGap {
		l.note(e.ID, "", nil)
	}
	for _, blob := range e.Missing() {
		l.note(e.ID, blob, nil)
	}
}

func (l *losses) all() []session.Problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lost)
}

// missing returns the unreadable content of the conversation: the damage to its log if all of it
// was wanted, and what the entries lack that were read.
func (c *Conversation) missing(all bool) (missing []session.Problem, err error) {
	if all {
		if missing, err = session.Damage(c.Session); err != nil {
			return nil, err
		}
	}
	named := make(map[string]bool) // as damaged themselves
	for _, p := range missing {
		named[p.EntryID] = named[p.EntryID] || p.Kind == session.ProblemDamaged
	}
	for _, p := range c.unreadable.all() {
		if p.Blob != "" || !named[p.EntryID] {
			missing = append(missing, p)
		}
	}
	return missing, nil
}
