package home

import (
	"context"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/upkeep"
)

// RetainRequest says which sessions to keep.
type RetainRequest struct {
	// OlderThan removes the sessions that have been inactive for longer; 0 removes none
	// because of its age.
	OlderThan Age `json:"older_than,omitempty"`
	// MaxCount keeps only this many of the most recently active. Default: none is
	// removed because there are too many.
	MaxCount *int `json:"max_count,omitempty"`
	DryRun   bool `json:"dry_run,omitempty"` // only say what would be removed
}

// Retired is a session that was removed because of its age or because there were too many.
type Retired struct {
	ID      string    `json:"id"`
	Title   string    `json:"title"`
	Updated time.Time `json:"updated"`
	Size    int64     `json:"size"`
	Reason  string    `json:"reason"`
	Removal string    `json:"removal,omitempty"` // the name of the removal; "" in a dry run
}

// RetainResult is what was removed, or would be.
type RetainResult struct {
	Sessions []Retired `json:"sessions"` // oldest first
	Size     int64     `json:"size"`
	Pinned   int       `json:"pinned"` // how many stay only because they are pinned
	// Failed are the sessions that could not be read or removed. They stay.
	Failed []Failure `json:"failed"`
}

// Failure is a session for which something failed while the rest was done.
type Failure struct {
	Session string     `json:"session"`
	Error   string     `json:"error"`
	Cause   *ErrorInfo `json:"cause"` // the same error in parts
}

func newFailure(name string, err error) Failure {
	return Failure{Session: name, Error: err.Error(), Cause: described(err)}
}

// Retain moves old sessions to the trash. The age of a session counts from the last
// message of its conversation; tags, pins and imports do not make it younger. Pinned
// sessions stay and do not count. If an error interrupts it, Retain also returns what
// was done until then.
func (u *Upkeep) Retain(ctx context.Context, r RetainRequest) (*RetainResult, error) {
	return call(ctx, u.home, "upkeep.retain", r, u.retain)
}

func (u *Upkeep) retain(ctx context.Context, r RetainRequest) (*RetainResult, error) {
	rule := upkeep.Rule{OlderThan: time.Duration(r.OlderThan), MaxCount: -1}
	if r.MaxCount != nil {
		rule.MaxCount = *r.MaxCount
		if err := notNegative("max_count", rule.MaxCount); err != nil {
			return nil, err
		}
	}
	if err := notNegative("older_than", r.OlderThan); err != nil {
		return nil, err
	}
	if r.OlderThan == 0 && r.MaxCount == nil {
		return nil, wrong("older_than", "{older_than} is %v, which would remove every session; if you mean that, set {max_count} to 0", r.OlderThan)
	}
	if !r.DryRun {
		u.home.beforeReplacing(ctx)
	}
	result := &RetainResult{Sessions: []Retired{}, Failed: []Failure{}}
	all, err := upkeep.Survey(ctx, u.home.store, func(name string, err error) {
		result.Failed = append(result.Failed, newFailure(name, err))
	})
	if err != nil {
		return result, err
	}
	going, pinned := rule.Choose(all, time.Now())
	result.Pinned = pinned
	for _, choice := range going {
		if err := ctx.Err(); err != nil {
			return result, err
		}
		went, err := u.retire(ctx, choice, r)
		if err != nil && ctx.Err() != nil {
			return result, ctx.Err()
		}
		if err != nil {
			result.Failed = append(result.Failed, newFailure(choice.Name, err))
			continue
		}
		result.Sessions = append(result.Sessions, went)
		result.Size += went.Size
	}
	if !r.DryRun {
		u.home.archiveIdle(ctx)
	}
	return result, nil
}

func (u *Upkeep) retire(ctx context.Context, c upkeep.Choice, r RetainRequest) (Retired, error) {
	went := Retired{
		ID: c.Name, Title: titleIn(ctx, u.home.store, c.Name), Updated: c.Active.UTC(), Size: c.Size,
		Reason: "older than " + r.OlderThan.String(),
	}
	if c.Reason == upkeep.TooMany {
		went.Reason = fmt.Sprintf("not among the %d latest", *r.MaxCount)
	}
	if r.DryRun {
		return went, nil
	}
	// Remove checks the pin again, because choosing may have taken a while.
	removals, err := upkeep.Remove(ctx, u.home.store, upkeep.RemoveRequest{Sessions: []string{c.Name}})
	if err == nil {
		went.Removal = removals[0]
	}
	return went, err
}
