package coppice

import (
	"context"

	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/upkeep"
)

// RedactRequest says where to look for secrets, and whether to take them out.
type RedactRequest struct {
	// Sessions are those to look at, as a person names them, each with its whole
	// conversation.
	Sessions []string `json:"sessions,omitempty"`
	Link     bool     `json:"link,omitempty"`  // only the sessions that are named
	All      bool     `json:"all,omitempty"`   // instead of Sessions: all of them, and removed ones in the trash
	Apply    bool     `json:"apply,omitempty"` // take out what was found; it cannot be undone
	// Value is a string to look for, in every spelling, instead of what looks like a
	// secret. Without Sessions it is looked for everywhere. With Apply it does not come
	// back, even if it was found nowhere.
	Value string `json:"value,omitempty"`
}

// Redact looks for secrets and, with Apply, takes them out of everything in the home.
// If taking them out fails half-way, Redact also returns what was done; the next
// operation that writes does the rest first: see Unfinished.
func (u *Upkeep) Redact(ctx context.Context, r RedactRequest) (*upkeep.RedactResult, error) {
	h := u.home
	if r.Value != "" && len(r.Sessions) == 0 {
		r.All = true
	}
	if (len(r.Sessions) > 0) == r.All {
		return nil, invalid("give sessions, or ask for all of them")
	}
	var names []string
	for _, given := range r.Sessions {
		links, err := h.linksOf(ctx, given, r.Link)
		if err != nil {
			return nil, err
		}
		names = append(names, links...)
	}
	if r.Apply {
		h.beforeWriting(ctx)
		defer h.loadGuard() // for sessions that are open now and written to later
	}
	return upkeep.Redact(ctx, h.store, upkeep.RedactRequest{
		Sessions: names, Value: r.Value, Apply: r.Apply, Progress: h.reportProgress,
		DropIndex: func(ctx context.Context) (bool, error) {
			had, err := h.dropIndexes(ctx)
			return len(had) > 0, err
		},
		RebuildIndex: func(ctx context.Context) (string, error) {
			ix, err := h.index(ctx)
			if err != nil {
				return "", err
			}
			return ix.Path(), nil
		},
	})
}

// Unfinished reports whether a redaction was interrupted, so that some of the secrets
// are still there.
func (u *Upkeep) Unfinished() (bool, error) { return clean.Unfinished(u.home.store) }
