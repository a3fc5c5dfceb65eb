package home

import (
	"context"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
)

// DistinctRequest names sessions, some perhaps twice.
type DistinctRequest struct {
	Sessions []string `json:"sessions"`       // as a person names them
	Link     bool     `json:"link,omitempty"` // each session once, not each conversation
}

// DistinctResult has the ids of the sessions that were named.
type DistinctResult struct {
	Sessions []string `json:"sessions"`
}

// Distinct returns the ids of the sessions that a person named, each conversation once
// (with Link, each session once). A name that means nothing stays as it was given, so
// that the operation reports it.
//
// All names are resolved before anything is done: "@1" and "@2" must not change their
// meaning when the first session is removed.
func (s *Sessions) Distinct(ctx context.Context, r DistinctRequest) (*DistinctResult, error) {
	return call(ctx, s.home, "sessions.distinct", r, s.distinct)
}

func (s *Sessions) distinct(ctx context.Context, r DistinctRequest) (*DistinctResult, error) {
	return &DistinctResult{s.home.distinct(ctx, r.Sessions, r.Link)}, nil
}

func (h *Home) distinct(ctx context.Context, given []string, link bool) []string {
	if len(given) < 2 {
		return given // a single name has nothing to be compared with
	}
	seen := make(map[string]bool)
	var distinct []string
	for _, one := range given {
		meant := one
		if name, err := h.resolve(ctx, one); err == nil {
			one, meant = name, name
			if found, err := h.indexed(ctx, name); err == nil && !link {
				meant = found.ID
			}
		}
		if !seen[meant] {
			seen[meant] = true
			distinct = append(distinct, one)
		}
	}
	return distinct
}

// maxNear is how many of the latest conversations are searched for a similar name.
const maxNear = 1000

// nearSessions returns a hint that lists conversations the user may have meant, because their
// id, key or title is similar, or "" if there are none.
func (h *Home) nearSessions(ctx context.Context, given string) string {
	if len(given) < 2 {
		return "" // every other letter would be one mistake away
	}
	ix, err := h.index(ctx)
	if err != nil {
		return ""
	}
	latest, _, err := ix.List(ctx, index.ListOptions{Desc: true, Fold: true, Limit: maxNear})
	if err != nil {
		return ""
	}
	var known []string
	meant := make(map[string]*index.Session) // by what may be typed
	for i := range latest {
		s := &latest[i]
		part := session.RandomPart(s.Name)
		for _, typed := range []string{s.Name[:min(len(s.Name), len(given))], part[:min(len(part), len(given))], s.Key, s.Title} {
			if meant[typed] == nil {
				known, meant[typed] = append(known, typed), s
			}
		}
	}
	var near []string
	for _, typed := range index.Nearest(given, known) {
		s := meant[typed]
		short, err := h.short(ctx, s.Name)
		if err != nil {
			return ""
		}
		text := named(short.Shown(s.Name), s.Title)
		if !slices.Contains(near, text) {
			near = append(near, text)
		}
	}
	if len(near) == 0 {
		return ""
	}
	return "did you mean: " + strings.Join(near, ", ")
}
