package home

import (
	"context"
	"os"
	"slices"

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
	// Value is a string to look for, in every spelling, instead of what looks like a secret.
	// Without Sessions it is looked for everywhere. With Apply it can never be written again,
	// even if it was not found.
	Value string `json:"value,omitempty"`
	// Known looks only for secrets that were taken out of this home before, which an import may
	// have brought back at the same moment. It excludes Value and Keep.
	Known bool `json:"known,omitempty"`
	// Keep are the IDs of secrets that stay where they are, as a request without Apply has
	// given them. One that is not found is an error, and nothing is changed.
	Keep []string `json:"keep,omitempty"`
}

// Redact looks for secrets and, with Apply, takes them out of everything in the home.
// If taking them out fails half-way, Redact also returns what was done; the next
// operation that writes does the rest first: see Unfinished.
func (u *Upkeep) Redact(ctx context.Context, r RedactRequest) (*upkeep.RedactResult, error) {
	return call(ctx, u.home, "upkeep.redact", r, u.redact)
}

func (u *Upkeep) redact(ctx context.Context, r RedactRequest) (*upkeep.RedactResult, error) {
	h := u.home
	switch {
	case r.Known && r.Value != "":
		return nil, exclude("value", "known")
	case r.Known && len(r.Keep) > 0:
		return nil, exclude("keep", "known")
	case r.Value != "" && len(r.Sessions) == 0:
		r.All = true
	}
	if (len(r.Sessions) > 0) == r.All {
		return nil, wrong("sessions", "either {sessions} or {all} is needed")
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
		h.beforeReplacing(ctx)
		defer h.loadGuard(ctx) // for sessions that are open now and written to later
	}
	dropped := false
	result, err := upkeep.Redact(ctx, h.store, upkeep.RedactRequest{
		Sessions: names, Known: r.Known, Value: r.Value, Keep: r.Keep, Apply: r.Apply, Progress: h.reporter(ctx),
		DropIndex: func(ctx context.Context) (bool, error) {
			had, err := h.site.dropIndexes(ctx)
			dropped = err == nil
			return len(had) > 0, err
		},
		RebuildIndex: func(ctx context.Context) (string, error) {
			ix, err := h.index(ctx)
			if err != nil {
				return "", err
			}
			return ix.Where(), nil
		},
	})
	if result != nil {
		h.addIndexes(result.Receipt, dropped)
	}
	return result, err
}

// addIndexes adds to a receipt, if there is one, where indexes were deleted and which are
// left. It tries to delete the temporary ones of killed processes even if there was nothing
// to redact: one may have been in use during an earlier redaction.
func (h *Home) addIndexes(r *clean.Receipt, dropped bool) {
	if r == nil {
		return
	}
	if dropped && h.settings.cache != "" {
		r.Searched = append(r.Searched, h.settings.cache)
	}
	r.Searched = append(r.Searched, os.TempDir())
	r.Left = append(r.Left, h.temporaryLeft()...)
}

// temporaryLeft deletes the temporary indexes that were left behind, and returns those that
// remain, except for the home's own.
func (h *Home) temporaryLeft() []clean.Left {
	h.opening.Lock()
	defer h.opening.Unlock()
	return slices.DeleteFunc(sweepTemporary(h.store.Where()), func(l clean.Left) bool { return h.ixTemp != nil && l.Path == h.ixTemp.dir })
}

// UnfinishedResult says whether a redaction was interrupted.
type UnfinishedResult struct {
	Unfinished bool `json:"unfinished"`
}

// Unfinished reports whether a redaction was interrupted, so that some of the secrets
// are still there.
func (u *Upkeep) Unfinished(ctx context.Context) (*UnfinishedResult, error) {
	return ask(ctx, u.home, "upkeep.unfinished", u.unfinished)
}

func (u *Upkeep) unfinished(ctx context.Context) (*UnfinishedResult, error) {
	left, err := clean.Unfinished(ctx, u.home.store)
	return &UnfinishedResult{left}, err
}
