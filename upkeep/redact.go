package upkeep

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

// Secret is one secret in a store and the places where it stands. The secret
// itself is not in it.
type Secret struct {
	Kind string `json:"kind"`
	// Preview tells a person which secret is meant without telling it.
	Preview string `json:"preview"`
	// Count is how often it stands somewhere. What stands in a blob, or in the
	// source that sessions were imported from, counts once, however many entries
	// have it.
	Count  int     `json:"count"`
	Places []Place `json:"places"`
}

// Place is where a secret stands.
type Place struct {
	Session string    `json:"session"` // "" if it stands in a blob that nothing refers to
	Entry   string    `json:"entry,omitempty"`
	Path    string    `json:"path,omitempty"` // of the string in the entry, or of what refers to the blob
	Blob    store.Ref `json:"blob,omitempty"` // it stands in this blob
	Kept    bool      `json:"kept,omitempty"` // it stands in what was kept of the source of an import
	Also    int       `json:"also,omitempty"` // so many other places have the same blob or source
	File    string    `json:"file,omitempty"` // it stands in this copy of the session
	Count   int       `json:"count"`          // how often
}

// RedactRequest says where to look for secrets, and whether to take them out.
type RedactRequest struct {
	// Sessions are those to look at. Empty means all of them, and what the trash
	// has of removed ones.
	Sessions []string
	// Apply takes out what was found. Nothing brings it back.
	Apply bool
	// DropIndex deletes every index of the store and reports whether there was
	// one: see clean.Options.DropDerived. RebuildIndex makes one again and returns
	// where it is. Both may be nil if the store has no index.
	DropIndex    func(ctx context.Context) (bool, error)
	RebuildIndex func(ctx context.Context) (string, error)
	// Progress, if it is not nil, hears how far the work has come.
	Progress func(doing string, done, total int64)
}

// RedactResult is what was found and done.
type RedactResult struct {
	Secrets []Secret     `json:"secrets"`
	Unread  []clean.Left `json:"unread"` // the places that could not be looked at
	// Receipt is what was done, nil if that was not asked for. Its Left says where
	// a secret is still to be found.
	Receipt *clean.Receipt `json:"receipt,omitempty"`
	// Index is where the index was rebuilt, "" if there was none.
	Index string `json:"index,omitempty"`
}

// Redact looks for secrets and, with Apply, takes them out of everything that the
// store has. Beside an error of taking them out it returns what was done;
// every file is then whole, and clean.Finish does the rest.
func Redact(ctx context.Context, st *file.Store, r RedactRequest) (*RedactResult, error) {
	had := false
	drop := func(ctx context.Context) error {
		if r.DropIndex == nil {
			return nil
		}
		was, err := r.DropIndex(ctx)
		had = had || was
		return err
	}
	sweep, err := clean.LookWith(ctx, st, clean.Options{Sessions: r.Sessions, Progress: r.Progress, DropDerived: drop})
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

// group puts together what is known of each secret, the one that stands in most
// places first.
func group(found []clean.Secret) []Secret {
	secrets := []Secret{}
	at := make(map[uint64]int)
	for _, f := range found {
		i, known := at[f.Same]
		if !known {
			i = len(secrets)
			at[f.Same] = i
			secrets = append(secrets, Secret{Kind: f.Kind, Preview: f.Preview})
		}
		s := &secrets[i]
		s.Count++
		if tellsMore(f.Preview, s.Preview) {
			s.Kind, s.Preview = f.Kind, f.Preview
		}
		s.add(Place{Session: f.Session, Entry: f.Entry, Path: f.Path, Blob: f.Blob, Kept: f.Kept, Also: f.Also, File: f.File})
	}
	for _, s := range secrets { // what a person said comes before what only repeats it
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

// tellsMore reports whether a preview is better than another one: where only its
// value told that something is a secret, there is nothing to show before it.
func tellsMore(preview, than string) bool {
	const nothing = "…"
	return strings.HasPrefix(than, nothing) && !strings.HasPrefix(preview, nothing)
}

// add counts a place. The findings of one place come one after the other.
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
