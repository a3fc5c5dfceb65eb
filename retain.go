package coppice

import (
	"context"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/upkeep"
)

// RetainRequest says which sessions may stay.
type RetainRequest struct {
	// OlderThan removes the sessions that were active longer ago; 0 means that
	// none goes because of its age.
	OlderThan time.Duration `json:"older_than,omitempty"`
	// MaxCount removes all but so many of those that were active last; nil means
	// that none goes because there are too many.
	MaxCount *int `json:"max_count,omitempty"`
	DryRun   bool `json:"dry_run,omitempty"` // only say what would be removed
}

// Retired is a session that was removed because of its age or of its rank.
type Retired struct {
	ID      string    `json:"id"`
	Title   string    `json:"title"`
	Updated time.Time `json:"updated"`
	Size    int64     `json:"size"`
	Reason  string    `json:"reason"`
	Removal string    `json:"removal,omitempty"` // the name of the removal; "" in a dry run
}

// RetainResult is what went, or would go.
type RetainResult struct {
	Sessions []Retired `json:"sessions"` // the oldest first
	Size     int64     `json:"size"`
	Pinned   int       `json:"pinned"` // so many stay only because they are pinned
	// Failed are the sessions that could not be read or removed. They stay.
	Failed []Failure `json:"failed"`
}

// Failure is a session with which something did not work while the rest was done.
type Failure struct {
	Session string `json:"session"`
	Error   string `json:"error"`
	Err     error  `json:"-"`
}

func newFailure(name string, err error) Failure {
	return Failure{Session: name, Error: err.Error(), Err: err}
}

// Retain moves old sessions to the trash. A session is as old as what was last
// said in its conversation; tags, pins and imports make none younger. Pinned ones
// stay and do not count. Beside an error that comes in the middle it returns what
// was done until then.
func (u *Upkeep) Retain(ctx context.Context, r RetainRequest) (*RetainResult, error) {
	rule := upkeep.Rule{OlderThan: r.OlderThan, MaxCount: -1}
	if r.MaxCount != nil {
		rule.MaxCount = *r.MaxCount
	}
	if r.OlderThan < 0 || r.MaxCount != nil && *r.MaxCount < 0 || r.OlderThan == 0 && r.MaxCount == nil {
		return nil, invalid("give an age greater than zero, or how many sessions to keep")
	}
	if !r.DryRun {
		u.home.beforeWriting(ctx)
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
	return result, nil
}

func (u *Upkeep) retire(ctx context.Context, c upkeep.Choice, r RetainRequest) (Retired, error) {
	went := Retired{
		ID: c.Name, Title: titleIn(ctx, u.home.store, c.Name), Updated: c.Active.UTC(), Size: c.Size,
		Reason: "older than " + ageText(r.OlderThan),
	}
	if c.Reason == upkeep.TooMany {
		went.Reason = fmt.Sprintf("not among the %d latest", *r.MaxCount)
	}
	if r.DryRun {
		return went, nil
	}
	// This looks at the pin once more: choosing may have taken a while.
	removals, err := upkeep.Remove(ctx, u.home.store, upkeep.RemoveRequest{Sessions: []string{c.Name}})
	if err == nil {
		went.Removal = removals[0]
	}
	return went, err
}
