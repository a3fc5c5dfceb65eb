package coppice

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/render"
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
	Removals []string `json:"removals"` // the name of each removal
}

// Remove moves a conversation to the trash, from which Restore brings it back. A pinned
// one stays: the error is an *upkeep.PinnedError. If an error interrupts it, Remove
// also returns the sessions that are gone.
func (s *Sessions) Remove(ctx context.Context, r RemoveRequest) (*RemoveResult, error) {
	h := s.home
	h.beforeWriting(ctx)
	names, err := h.linksOf(ctx, r.Session, r.Link)
	if err != nil {
		return nil, err
	}
	result := &RemoveResult{Title: titleIn(ctx, h.store, names[0]), Sessions: names}
	result.Removals, err = upkeep.Remove(ctx, h.store, upkeep.RemoveRequest{Sessions: names, Force: r.Force})
	if err != nil {
		result.Sessions = names[len(names)-len(result.Removals):]
	}
	return result, err
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
	items, err := u.home.store.Trash(ctx)
	if err != nil {
		return nil, err
	}
	// Removed sessions are kept as they were in the store, so their titles can be read.
	trashed, err := u.home.store.ReadTrash()
	if err != nil {
		return nil, err
	}
	result := &TrashResult{Removals: []Removal{}}
	for _, item := range items {
		if !strings.HasPrefix(item.ID, r.Begin) {
			continue
		}
		result.Removals = append(result.Removals, Removal{item.ID, item.Name, titleIn(ctx, trashed, item.ID), item.Removed, item.Size})
	}
	return result, trashed.Close()
}

// RestoreRequest says what to bring back.
type RestoreRequest struct {
	// Session is the name of a removal, or the id or key of a session, which means its
	// latest removal; or the beginning of any of these.
	Session string `json:"session"`
}

// RestoreResult is what was restored.
type RestoreResult struct {
	Session string `json:"session"`
	Removal string `json:"removal"`
}

// Restore brings back a removed session under its id. It returns session.ErrExist if
// the home has a session with that id again.
func (u *Upkeep) Restore(ctx context.Context, r RestoreRequest) (*RestoreResult, error) {
	u.home.beforeWriting(ctx)
	item, err := u.resolveTrashed(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	err = u.home.store.Restore(ctx, item.ID)
	if errors.Is(err, session.ErrExist) {
		return nil, &session.Error{
			Op: "restore", Name: item.Name, Kind: session.ErrExist, Err: errors.New("a session with that id exists"),
			Hint: "remove that one first; the one in the trash is still there",
		}
	}
	if err != nil {
		return nil, err
	}
	return &RestoreResult{Session: item.Name, Removal: item.ID}, nil
}

// resolveTrashed returns the removal that a person named.
func (u *Upkeep) resolveTrashed(ctx context.Context, given string) (store.Trashed, error) {
	items, err := u.home.store.Trash(ctx)
	if err != nil {
		return store.Trashed{}, err
	}
	if given == "" {
		return store.Trashed{}, invalid("the session's name is empty")
	}
	// If a session was removed several times, the latest removal is meant, and that comes
	// first in items.
	for _, name := range []string{given, idOfKey(given)} {
		for _, item := range items {
			if name != "" && (item.ID == name || item.Name == name) {
				return item, nil
			}
		}
	}
	latest, names := latestOf(items, func(item store.Trashed) bool {
		return strings.HasPrefix(item.ID, given) || len(render.IDsNamed(given, []string{item.Name})) > 0
	})
	if len(names) == 0 {
		found, err := u.trashedByKey(ctx, given)
		if err != nil {
			return store.Trashed{}, err
		}
		latest, names = latestOf(items, func(item store.Trashed) bool { return slices.Contains(found, item.ID) })
	}
	name, err := theOne("session in the trash", given, names, func(some []string) ([]string, error) {
		short := render.ShortIDs(names)
		for i, name := range some {
			some[i] = short.Shown(name)
		}
		return some, nil
	})
	return latest[name], err
}

// latestOf returns the latest removal of each session that is meant, and the sessions.
func latestOf(items []store.Trashed, meant func(store.Trashed) bool) (map[string]store.Trashed, []string) {
	latest := make(map[string]store.Trashed)
	var names []string
	for _, item := range items {
		if _, seen := latest[item.Name]; !seen && meant(item) {
			latest[item.Name] = item
			names = append(names, item.Name)
		}
	}
	return latest, names
}

// trashedByKey returns the removals of sessions with a key that does not determine their ids.
func (u *Upkeep) trashedByKey(ctx context.Context, key string) ([]string, error) {
	trashed, err := u.home.store.ReadTrash()
	if err != nil {
		return nil, err
	}
	found, err := sessionsByKey(ctx, trashed, key)
	return found, errors.Join(err, trashed.Close())
}

// EmptyTrashRequest says what to delete for good: All, OlderThan or Before. One that says
// nothing is refused.
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
	if r.OlderThan < 0 {
		return nil, invalid("an age of %v is negative", r.OlderThan)
	}
	if !r.All && r.OlderThan == 0 && r.Before.IsZero() {
		return nil, invalid("nothing says what to delete for good; set all, older_than or before")
	}
	before := r.Before
	if before.IsZero() {
		before = time.Now().Add(-time.Duration(r.OlderThan))
	}
	var gone []store.Trashed
	var err error
	if r.DryRun {
		gone, err = u.home.store.Trash(ctx)
		gone = slices.DeleteFunc(gone, func(item store.Trashed) bool { return !item.Removed.Before(before) })
	} else {
		u.home.beforeWriting(ctx)
		gone, err = u.home.store.EmptyTrash(ctx, before)
	}
	result := &EmptyTrashResult{Removals: []string{}, Before: before.UTC()}
	for _, item := range gone {
		result.Removals = append(result.Removals, item.ID)
		result.Size += item.Size
	}
	return result, err
}
