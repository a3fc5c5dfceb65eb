package home

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/upkeep"
)

// RemoveRequest says which conversation to remove.
type RemoveRequest struct {
	Session string `json:"session"`         // as a person names it: see Resolve
	Link    bool   `json:"link,omitempty"`  // only the session that is named
	Force   bool   `json:"force,omitempty"` // even if it is pinned, or too damaged to check
}

// RemoveResult is what is now in the trash.
type RemoveResult struct {
	Title    string   `json:"title"`
	Sessions []string `json:"sessions"` // of the conversation, in its order
	// Subagents are the sessions of the subagents that it started, which go with it.
	Subagents []string `json:"subagents,omitempty"`
	Removals  []string `json:"removals"` // the name of each removal
}

// Remove moves a conversation, with the sessions of the subagents that it started, to the trash,
// from which Restore brings them back. A pinned one stays: the error is an *upkeep.PinnedError.
// If an error interrupts it, Remove also returns the sessions that are gone.
func (s *Sessions) Remove(ctx context.Context, r RemoveRequest) (*RemoveResult, error) {
	return call(ctx, s.home, "sessions.remove", r, s.remove)
}

func (s *Sessions) remove(ctx context.Context, r RemoveRequest) (*RemoveResult, error) {
	h := s.home
	h.beforeReplacing(ctx)
	names, err := h.linksOf(ctx, r.Session, r.Link)
	if err != nil {
		return nil, err
	}
	// Refuse what must be refused before using the index, which may fail for its own reasons.
	if err := (upkeep.RemoveRequest{Sessions: names, Force: r.Force}).Check(ctx, h.store); err != nil {
		return nil, err
	}
	result := &RemoveResult{Title: titleIn(ctx, h.store, names[0]), Sessions: names}
	if !r.Link {
		if result.Subagents, err = h.startedUnder(ctx, names); err != nil {
			return nil, err
		}
	}
	every := slices.Concat(names, result.Subagents)
	result.Removals, err = upkeep.Remove(ctx, h.store, upkeep.RemoveRequest{Sessions: every, Force: r.Force})
	if err != nil {
		stay := func(name string) bool { return !slices.Contains(every[len(every)-len(result.Removals):], name) }
		result.Sessions, result.Subagents = slices.DeleteFunc(slices.Clone(names), stay), slices.DeleteFunc(result.Subagents, stay)
	}
	return result, err
}

// startedUnder returns the sessions of all subagents that some sessions started, and of those
// that the subagents started. Only the index knows them; without it there are none.
func (h *Home) startedUnder(ctx context.Context, names []string) (started []string, err error) {
	ix, err := h.index(ctx)
	if err != nil {
		return nil, ctx.Err()
	}
	for todo := slices.Clone(names); len(todo) > 0; todo = todo[1:] {
		children, err := startedIn(ctx, ix, todo[0])
		if err != nil {
			return nil, err
		}
		for _, child := range children {
			if !slices.Contains(names, child) && !slices.Contains(started, child) {
				started, todo = append(started, child), append(todo, child)
			}
		}
	}
	return started, nil
}

// Removal is a session in the trash.
type Removal struct {
	ID      string    `json:"id"` // names the removal
	Session string    `json:"session"`
	Title   string    `json:"title"`
	Removed time.Time `json:"removed"`
	Size    int64     `json:"size"`
}

// TrashRequest says what to list.
type TrashRequest struct {
	Begin string `json:"begin,omitempty"` // only removals whose names begin like this
}

// TrashResult is what is in the trash.
type TrashResult struct {
	Removals []Removal `json:"removals"` // latest first
}

// Trash lists what is in the trash.
func (u *Upkeep) Trash(ctx context.Context, r TrashRequest) (*TrashResult, error) {
	return call(ctx, u.home, "upkeep.trash", r, u.trash)
}

func (u *Upkeep) trash(ctx context.Context, r TrashRequest) (*TrashResult, error) {
	b, err := u.home.openBin(ctx)
	if err != nil {
		return nil, err
	}
	result := &TrashResult{Removals: []Removal{}}
	for _, item := range b.items {
		if !strings.HasPrefix(item.ID, r.Begin) {
			continue
		}
		result.Removals = append(result.Removals, Removal{item.ID, item.Name, titleIn(ctx, b.sealed, item.ID), item.Removed, item.Size})
	}
	return result, b.close()
}

// RestoreRequest says what to bring back.
type RestoreRequest struct {
	// Session is the name of a removal, or of a session as a person names it, which means its
	// latest removal. "last" is the latest removal of all, and "@2" the one before it.
	Session string `json:"session"`
	Link    bool   `json:"link,omitempty"` // only the session that is named
}

// RestoreResult is what was restored.
type RestoreResult struct {
	Session string `json:"session"`
	Removal string `json:"removal"`
	// With are the other sessions of its conversation, and those of subagents, that came
	// back with it.
	With []string `json:"with,omitempty"`
}

// Restore brings back a removed session under its id, and with it what was removed of its
// conversation and of the subagents that this started. It returns session.ErrExist if the
// home has a session with that id again.
func (u *Upkeep) Restore(ctx context.Context, r RestoreRequest) (*RestoreResult, error) {
	return call(ctx, u.home, "upkeep.restore", r, u.restore)
}

func (u *Upkeep) restore(ctx context.Context, r RestoreRequest) (*RestoreResult, error) {
	u.home.beforeReplacing(ctx)
	b, err := u.home.openBin(ctx)
	if err != nil {
		return nil, err
	}
	defer b.close()
	item, err := b.resolve(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	var family []store.Trashed
	if !r.Link {
		family = b.family(ctx, item) // as long as all of them can be read there
	}
	err = u.home.store.Trash().Restore(ctx, item.ID)
	if errors.Is(err, session.ErrExist) {
		return nil, &session.Error{
			Op: "restore", Name: item.Name, Kind: session.ErrExist, Err: errors.New("a session with that id exists"),
			Hint: "remove that one first; the one in the trash is still there",
		}
	}
	if err != nil {
		return nil, err
	}
	result := &RestoreResult{Session: item.Name, Removal: item.ID}
	for _, other := range family {
		if other.ID == item.ID {
			continue
		}
		err := u.home.store.Trash().Restore(ctx, other.ID)
		if errors.Is(err, session.ErrExist) {
			continue // it exists again
		}
		if err != nil {
			return result, err
		}
		result.With = append(result.With, other.Name)
	}
	return result, nil
}

// DistinctRemovals is Sessions.Distinct for the trash: it returns the names of the removals
// that are meant, without those that another one brings back with it.
func (u *Upkeep) DistinctRemovals(ctx context.Context, r DistinctRequest) (*DistinctResult, error) {
	return call(ctx, u.home, "upkeep.distinct_removals", r, u.distinctRemovals)
}

func (u *Upkeep) distinctRemovals(ctx context.Context, r DistinctRequest) (*DistinctResult, error) {
	b, err := u.home.openBin(ctx)
	if err != nil {
		return nil, err
	}
	defer b.close()
	seen := make(map[string]bool)
	var distinct []string
	for _, name := range r.Sessions {
		item, err := b.resolve(ctx, name)
		if err != nil {
			distinct = append(distinct, name)
			continue
		}
		if seen[item.ID] {
			continue
		}
		distinct, seen[item.ID] = append(distinct, item.ID), true
		for _, other := range b.family(ctx, item) {
			seen[other.ID] = seen[other.ID] || !r.Link
		}
	}
	return &DistinctResult{distinct}, nil
}

// EmptyTrashRequest says what to delete for good: All, OlderThan or Before. One of them is
// required.
type EmptyTrashRequest struct {
	All       bool `json:"all,omitempty"`        // everything
	OlderThan Age  `json:"older_than,omitempty"` // only what was removed longer ago
	// Before, if set, is used instead of OlderThan: only what was removed before that
	// moment. A face that asks a person first passes on the Before of the dry run, so that
	// nothing is deleted that the person did not see.
	Before time.Time `json:"before,omitzero"`
	DryRun bool      `json:"dry_run,omitempty"` // only say what would be deleted
}

// EmptyTrashResult is what was deleted, or would be.
type EmptyTrashResult struct {
	Removals []string  `json:"removals"`
	Size     int64     `json:"size"`
	Before   time.Time `json:"before"` // only what was removed before that moment
}

// EmptyTrash deletes what is in the trash for good. If an error interrupts it, it also
// returns what it has deleted.
func (u *Upkeep) EmptyTrash(ctx context.Context, r EmptyTrashRequest) (*EmptyTrashResult, error) {
	return call(ctx, u.home, "upkeep.empty_trash", r, u.emptyTrash)
}

func (u *Upkeep) emptyTrash(ctx context.Context, r EmptyTrashRequest) (*EmptyTrashResult, error) {
	if err := notNegative("older_than", r.OlderThan); err != nil {
		return nil, err
	}
	if !r.All && r.OlderThan == 0 && r.Before.IsZero() {
		return nil, wrong("all", "say what to delete for good: set {all}, {older_than} or {before}")
	}
	before := r.Before
	if before.IsZero() {
		before = time.Now().Add(-time.Duration(r.OlderThan))
	}
	var gone []store.Trashed
	var err error
	if r.DryRun {
		gone, err = u.home.store.Trash().List(ctx)
		gone = slices.DeleteFunc(gone, func(item store.Trashed) bool { return !item.Removed.Before(before) })
	} else {
		u.home.beforeWriting(ctx)
		if gone, err = u.home.store.Trash().Empty(ctx, before); len(gone) > 0 {
			_ = u.home.builtIndex(ctx) // so that their words are no longer in it; otherwise the next list sees to that
		}
	}
	if err != nil && len(gone) == 0 {
		return nil, err
	}
	result := &EmptyTrashResult{Removals: []string{}, Before: before.UTC()}
	for _, item := range gone {
		result.Removals = append(result.Removals, item.ID)
		result.Size += item.Size
	}
	return result, err
}
