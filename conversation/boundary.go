package conversation

import (
	"github.com/coppice-dev/coppice/internal/boundary"
	"github.com/coppice-dev/coppice/session"
)

// due reports whether a link must be continued before an entry is added to it.
func (l *link) due(e *session.Entry, limit int) bool {
	p := boundary.Part{Entries: l.entries, Copies: l.copies, Pairs: &l.pairs.Pairs}
	return p.Due(e, limit)
}

// carry returns what a continuation of a link begins with. next is the message that it is
// for, or nil.
func (l *link) carry(limit int, next *session.Entry) []session.Entry {
	p := boundary.Part{
		ID: l.id, Entries: l.entries, IsCopy: l.isCopy, Copies: l.copies, Pairs: &l.pairs.Pairs, Cleared: l.cleared,
		Before: l.before, Own: l.tokens(),
	}
	if l.title != "" {
		p.Settings = append(p.Settings, titled(l.title))
	}
	if len(l.metadata) > 0 {
		p.Settings = append(p.Settings, session.Custom(customMetadata, l.metadata))
	}
	if l.config != (Config{}) {
		if changes, err := (&link{}).configChanges(l.config); err == nil {
			p.Settings = append(p.Settings, changes...)
		}
	}
	return p.Carry(limit, next)
}
