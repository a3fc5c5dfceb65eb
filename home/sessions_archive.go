package home

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/upkeep"
)

// ArchiveRequest says what to compress: one conversation, or all that are old.
type ArchiveRequest struct {
	Session string `json:"session,omitempty"` // as a person names it: see Resolve
	Link    bool   `json:"link,omitempty"`    // only the session that is named
	// OlderThan, without a Session, selects every conversation whose last message is older.
	OlderThan Age `json:"older_than,omitempty"`
}

// Archived is a session that is now compressed.
type Archived struct {
	ID      string `json:"id"`
	Already bool   `json:"already,omitempty"` // it was compressed before
	Was     int64  `json:"was"`               // its size before
	Size    int64  `json:"size"`
}

// ArchiveResult is what is compressed now.
type ArchiveResult struct {
	Sessions []Archived `json:"sessions"`
	Failed   []Failure  `json:"failed"` // sessions that could not be compressed or read
}

// Archive compresses conversations. They are listed, read and searched as before, and the
// first append brings the plain file back. If an error interrupts it, Archive also returns
// what was done until then.
func (s *Sessions) Archive(ctx context.Context, r ArchiveRequest) (*ArchiveResult, error) {
	return call(ctx, s.home, "sessions.archive", r, s.archive)
}

func (s *Sessions) archive(ctx context.Context, r ArchiveRequest) (*ArchiveResult, error) {
	h := s.home
	if err := notNegative("older_than", r.OlderThan); err != nil {
		return nil, err
	}
	if r.Session != "" && r.OlderThan > 0 {
		return nil, exclude("session", "older_than")
	}
	archiver, ok := store.As[store.Archiver](h.store)
	if !ok {
		return nil, h.unsupported("archive", "no archive")
	}
	h.beforeReplacing(ctx)
	before, err := h.stats(ctx)
	if err != nil {
		return nil, err
	}
	result := &ArchiveResult{Sessions: []Archived{}, Failed: []Failure{}}
	var names []string
	if r.OlderThan == 0 {
		names, err = h.linksOf(ctx, r.Session, r.Link)
	} else {
		names, err = h.inactive(ctx, time.Duration(r.OlderThan), before, result)
	}
	if err != nil {
		return result, err
	}
	err = h.archiveAll(ctx, archiver, names, before, result)
	// Describe what was done even if the caller is no longer waiting for more.
	after, statErr := h.stats(context.WithoutCancel(ctx))
	for i := range result.Sessions {
		result.Sessions[i].Size = after[result.Sessions[i].ID].Size
	}
	return result, errors.Join(err, statErr)
}

// archiveAll compresses sessions until the context ends.
func (h *Home) archiveAll(ctx context.Context, archiver store.Archiver, names []string, before map[string]store.Stat, result *ArchiveResult) error {
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		already := before[name].Archived
		if !already {
			err := archiver.Archive(ctx, name)
			if err != nil && ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				result.Failed = append(result.Failed, newFailure(name, err))
				continue
			}
		}
		result.Sessions = append(result.Sessions, Archived{ID: name, Already: already, Was: before[name].Size})
	}
	return nil
}

// inactive returns the plain sessions of conversations that were idle for a
// while. The time of the file does not matter, because tags, pins and imports write to
// files too.
func (h *Home) inactive(ctx context.Context, olderThan time.Duration, stats map[string]store.Stat, result *ArchiveResult) ([]string, error) {
	all, err := upkeep.Survey(ctx, h.store, func(name string, err error) {
		result.Failed = append(result.Failed, newFailure(name, err))
	})
	cutoff := time.Now().Add(-olderThan)
	var names []string
	for _, s := range all {
		if s.Active.Before(cutoff) && !stats[s.Name].Archived {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names, err
}

// stats returns what the store's list says about each session.
func (h *Home) stats(ctx context.Context) (map[string]store.Stat, error) {
	stats := make(map[string]store.Stat)
	all, err := store.All(ctx, h.store)
	for _, l := range all {
		stats[l.Name] = l.Stat
	}
	return stats, err
}

// Unarchived is a session that is a plain file again.
type Unarchived struct {
	ID   string `json:"id"`
	Path string `json:"path"`
}

// UnarchiveResult is what is plain again.
type UnarchiveResult struct {
	Sessions []Unarchived `json:"sessions"`
	Failed   []Failure    `json:"failed"`
}

// Unarchive brings back the plain files of a conversation. If an error interrupts it, it also
// returns what was done until then.
func (s *Sessions) Unarchive(ctx context.Context, r OpenRequest) (*UnarchiveResult, error) {
	return call(ctx, s.home, "sessions.unarchive", r, s.unarchive)
}

func (s *Sessions) unarchive(ctx context.Context, r OpenRequest) (*UnarchiveResult, error) {
	h := s.home
	archiver, ok := store.As[store.Archiver](h.store)
	if !ok {
		return nil, h.unsupported("unarchive", "no archive")
	}
	h.beforeReplacing(ctx)
	names, err := h.linksOf(ctx, r.Session, r.Link)
	if err != nil {
		return nil, err
	}
	result := &UnarchiveResult{Sessions: []Unarchived{}, Failed: []Failure{}}
	for _, name := range names {
		err := archiver.Unarchive(ctx, name)
		if err != nil && ctx.Err() != nil {
			return result, ctx.Err()
		}
		if err != nil {
			result.Failed = append(result.Failed, newFailure(name, err))
			continue
		}
		result.Sessions = append(result.Sessions, Unarchived{name, h.store.Parts().Where(store.PartLog, name)})
	}
	return result, nil
}
