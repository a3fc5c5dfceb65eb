package home

import (
	"context"

	"github.com/coppice-dev/coppice/upkeep"
)

// CheckRequest says what to check.
type CheckRequest struct {
	// Sessions are those to check, as a person names them, with the others of their
	// conversations. Empty means all of them, and everything else in the home.
	Sessions []string `json:"sessions,omitempty"`
}

// Check looks for faults in the home and changes nothing. It sends every finding as it is
// made: damage and oddities are in the findings, not in the error.
func (u *Upkeep) Check(ctx context.Context, r CheckRequest, send func(upkeep.Finding) error) (*upkeep.CheckResult, error) {
	return follow(ctx, u.home, "upkeep.check", r, send, u.check)
}

func (u *Upkeep) check(ctx context.Context, r CheckRequest, send func(upkeep.Finding) error) (*upkeep.CheckResult, error) {
	var names []string
	for _, given := range r.Sessions {
		links, err := u.home.linksOf(ctx, given, false)
		if err != nil {
			return nil, err
		}
		names = append(names, links...)
	}
	index, err := indexFiles()
	if err != nil {
		return nil, err
	}
	return upkeep.Check(ctx, u.home.store, upkeep.CheckRequest{
		Sessions: names, Index: u.home.indexPath(), VerifyIndex: index.Verify, Each: send,
	})
}

// RepairRequest says which session to repair.
type RepairRequest struct {
	Session string `json:"session"`           // as a person names it: see Resolve
	DryRun  bool   `json:"dry_run,omitempty"` // only say what would be done
}

// Repair repairs what it can in a session without guessing, and keeps the original: see
// upkeep.Repair.
func (u *Upkeep) Repair(ctx context.Context, r RepairRequest) (*upkeep.RepairResult, error) {
	return call(ctx, u.home, "upkeep.repair", r, u.repair)
}

func (u *Upkeep) repair(ctx context.Context, r RepairRequest) (*upkeep.RepairResult, error) {
	name, err := u.home.resolve(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	if !r.DryRun {
		u.home.beforeReplacing(ctx) // a repair would copy secrets that an unfinished redaction left
	}
	return upkeep.Repair(ctx, u.home.store, upkeep.RepairRequest{Session: name, DryRun: r.DryRun})
}

// TidyRequest says what to delete.
type TidyRequest struct {
	Stale  bool `json:"stale,omitempty"`   // left behind by interrupted programs
	Blobs  bool `json:"blobs,omitempty"`   // content that nothing refers to
	DryRun bool `json:"dry_run,omitempty"` // only say what would be deleted
}

// TidyResult is what was deleted, or would be.
type TidyResult struct {
	Stale []upkeep.Action `json:"stale"`
	Blobs []upkeep.Action `json:"blobs"`
}

// Tidy deletes what is no longer needed. If an error interrupts it, it also returns what it
// has deleted.
func (u *Upkeep) Tidy(ctx context.Context, r TidyRequest) (*TidyResult, error) {
	return call(ctx, u.home, "upkeep.tidy", r, u.tidy)
}

func (u *Upkeep) tidy(ctx context.Context, r TidyRequest) (*TidyResult, error) {
	if !r.DryRun {
		u.home.beforeWriting(ctx)
	}
	var stale, blobs []upkeep.Action
	var err error
	if r.Stale {
		stale, err = upkeep.RemoveStale(ctx, u.home.store, r.DryRun)
	}
	if r.Blobs && err == nil {
		blobs, err = upkeep.RemoveBlobs(ctx, u.home.store, r.DryRun)
	}
	if !r.DryRun && err == nil {
		u.home.archiveIdle(ctx)
	}
	return &TidyResult{Stale: orEmpty(stale), Blobs: orEmpty(blobs)}, err
}
