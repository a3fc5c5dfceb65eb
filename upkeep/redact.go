package upkeep

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
)

// Secret is one secret in a store, with the places where it is. It does not contain the
// secret itself.
type Secret struct {
	// ID names it for RedactRequest.Keep. It says where the secret is, not what it is.
	ID   string `json:"id"`
	Kind string `json:"kind"`
	// Preview shows a person which secret is meant without revealing it.
	Preview string `json:"preview"`
	// Count is how often it occurs. An occurrence in a blob, or in the source that sessions
	// were imported from, counts once, however many entries have it.
	Count  int     `json:"count"`
	Places []Place `json:"places"`
}

// Place is where a secret is.
type Place struct {
	Session string    `json:"session"` // "" if it is in a blob that nothing refers to
	Entry   string    `json:"entry,omitempty"`
	Path    string    `json:"path,omitempty"` // of the string in the entry, or of the reference to the blob
	Blob    store.Ref `json:"blob,omitempty"` // the blob that has it
	Kept    bool      `json:"kept,omitempty"` // it is in what an import kept of its source
	Also    int       `json:"also,omitempty"` // how many other places have the same blob or source
	File    string    `json:"file,omitempty"` // the copy of the session that has it
	Count   int       `json:"count"`          // how often
}

// RedactRequest says where to look for secrets, and whether to take them out.
type RedactRequest struct {
	// Sessions are those to look at. Empty means all of them, and removed ones in the
	// trash.
	Sessions []string
	// Known looks only for secrets that were taken out of the store before: see
	// clean.Options.Listed.
	Known bool
	// Value, if set, is what to look for instead of secrets: see clean.Options.Value.
	Value string
	// Keep are the IDs of secrets that stay, as an earlier call without Apply has given them:
	// see clean.Options.Keep.
	Keep []string
	// Apply takes out what was found. It cannot be undone.
	Apply bool
	// DropIndex deletes every index of the store and reports whether there was one: see
	// clean.Options.DropDerived. RebuildIndex builds one again and returns where it is.
	// Both may be nil if the store has no index.
	DropIndex    func(ctx context.Context) (bool, error)
	RebuildIndex func(ctx context.Context) (string, error)
	// Progress, if not nil, is called with the progress of the work.
	Progress func(doing string, done, total int64)
}

// RedactResult is what was found and done.
type RedactResult struct {
	Secrets []Secret     `json:"secrets"`
	Unread  []clean.Left `json:"unread"` // places that could not be searched
	// Receipt is what was done; nil if Apply was not set. Its Left lists the places that
	// still have a secret.
	Receipt *clean.Receipt `json:"receipt,omitempty"`
	// Index is where the index was rebuilt, "" if there was none.
	Index string `json:"index,omitempty"`
}

// Redact looks for secrets and, with Apply, takes them out of everything in the store.
// If taking them out fails half-way, Redact also returns what was done. Every file is
// then whole, and clean.Finish does the rest.
func Redact(ctx context.Context, st store.Store, r RedactRequest) (*RedactResult, error) {
	had := false
	drop := func(ctx context.Context) error {
		if r.DropIndex == nil {
			return nil
		}
		was, err := r.DropIndex(ctx)
		had = had || was
		return err
	}
	sweep, err := clean.LookWith(ctx, st, clean.Options{Sessions: r.Sessions, Listed: r.Known, Value: r.Value, Keep: r.Keep, Progress: r.Progress, DropDerived: drop})
	if err != nil {
		return nil, err
	}
	result := &RedactResult{Secrets: group(sweep.Secrets), Unread: append([]clean.Left{}, sweep.Unread...)}
	if !r.Apply {
		return result, nil
	}
	if result.Receipt, err = sweep.Apply(ctx); err != nil {
		return result, err
	}
	if had && r.RebuildIndex != nil {
		result.Index, err = r.RebuildIndex(ctx)
	}
	return result, err
}

// group collects what is known about each secret, most frequent first.
func group(found []clean.Secret) []Secret {
	secrets := []Secret{}
	at := make(map[uint64]int)
	for _, f := range found {
		i, known := at[f.Same]
		if !known {
			i = len(secrets)
			at[f.Same] = i
			secrets = append(secrets, Secret{ID: f.ID, Kind: f.Kind, Preview: f.Preview})
		}
		s := &secrets[i]
		s.Count++
		if saysMore(f.Preview, s.Preview) {
			s.Kind, s.Preview = f.Kind, f.Preview
		}
		s.add(Place{Session: f.Session, Entry: f.Entry, Path: f.Path, Blob: f.Blob, Kept: f.Kept, Also: f.Also, File: f.File})
	}
	for _, s := range secrets { // places in what people said come before copies of it
		slices.SortStableFunc(s.Places, func(a, b Place) int { return rank(a) - rank(b) })
	}
	slices.SortStableFunc(secrets, func(a, b Secret) int { return cmp.Compare(b.Count, a.Count) })
	return secrets
}

func rank(p Place) int {
	switch {
	case p.File != "" || p.Session == "":
		return 2
	case p.Kept:
		return 1
	}
	return 0
}

// saysMore reports whether a preview says more than another. If a secret was found
// only by its value, there is nothing to show before it.
func saysMore(preview, than string) bool {
	const nothing = "…"
	return strings.HasPrefix(than, nothing) && !strings.HasPrefix(preview, nothing)
}

// add counts a place. The findings of one place come in a row.
func (s *Secret) add(p Place) {
	p.Count = 1
	if n := len(s.Places); n > 0 {
		last := s.Places[n-1]
		count := last.Count
		if last.Count = 1; last == p {
			s.Places[n-1].Count = count + 1
			return
		}
	}
	s.Places = append(s.Places, p)
}
