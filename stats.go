package coppice

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/index"
)

// StatsRequest says of what to count.
type StatsRequest struct {
	Session string    `json:"session,omitempty"` // as a person names it; "" is all of them
	Since   time.Time `json:"since,omitzero"`
	Until   time.Time `json:"until,omitzero"`
	// Location is where a day begins at midnight. Default: time.Local.
	Location *time.Location `json:"-"`
}

// Usage is what some responses cost.
type Usage struct {
	Key          string `json:"key,omitempty"` // the day, model or session that it is of
	Responses    int64  `json:"responses"`
	Input        int64  `json:"input"`
	CacheRead    int64  `json:"cache_read"`
	CacheWrite   int64  `json:"cache_write"`
	Output       int64  `json:"output"`
	Reasoning    int64  `json:"reasoning"` // of the output
	Recorded     int64  `json:"recorded"`  // tokens that were recorded with messages and that no provider reported
	CostMicroUSD int64  `json:"cost_micro_usd"`
	Unpriced     int64  `json:"unpriced_responses"` // whose cost is not known
}

// Tokens is how many tokens were billed or recorded.
func (u *Usage) Tokens() int64 {
	as := index.Usage(*u)
	return as.Tokens()
}

// StatsResult is what was counted.
type StatsResult struct {
	Session  string            `json:"session,omitempty"`
	Context  *int64            `json:"context_tokens,omitempty"` // of the session that was asked for
	Shared   int64             `json:"shared_tokens,omitempty"`  // tokens of responses that count in older sessions
	Messages int64             `json:"messages"`
	Total    Usage             `json:"total"`
	Days     []Usage           `json:"days"`
	Models   []Usage           `json:"models"`   // the one with most tokens first
	Sessions []Usage           `json:"sessions"` // the dearest first; none if one session was asked for
	Titles   map[string]string `json:"-"`        // of the first few of them
	Tools    []Count           `json:"tools"`
	Roles    []Count           `json:"roles"`
	Hours    [24]int64         `json:"hours"`
	Weekdays [7]int64          `json:"weekdays"`
	Topics   []string          `json:"topics"`
}

const (
	maxTopics = 12
	maxTitles = 5 // of the dearest sessions
)

// Stats counts tokens, cost, messages, tools and topics. A response that is in
// several sessions, because one was forked from the other, counts once.
func (s *Search) Stats(ctx context.Context, r StatsRequest) (*StatsResult, error) {
	ix, err := s.home.index(ctx)
	if err != nil {
		return nil, err
	}
	o := index.StatsOptions{Since: r.Since, Until: r.Until, Location: r.Location}
	if o.Location == nil {
		o.Location = time.Local
	}
	c := counting{ix: ix, opts: o, result: &StatsResult{}}
	spent := int64(0)
	if r.Session != "" {
		found, err := s.home.indexed(ctx, r.Session)
		if err != nil {
			return nil, err
		}
		c.opts.Session, c.result.Session, c.result.Context = found.ID, found.ID, &found.Context
		if r.Since.IsZero() && r.Until.IsZero() {
			spent = found.Tokens
		}
	}
	if err := c.count(ctx); err != nil {
		return nil, err
	}
	c.result.Shared = max(spent-c.result.Total.Tokens(), 0)
	return c.result, nil
}

// counting collects a StatsResult.
type counting struct {
	ix     *index.Index
	opts   index.StatsOptions
	result *StatsResult
}

func (c *counting) count(ctx context.Context) (err error) {
	total, err := c.usage(ctx, "")
	if err != nil {
		return err
	}
	if len(total) > 0 {
		c.result.Total = total[0]
	}
	if c.result.Days, err = c.usage(ctx, index.ByDay); err != nil {
		return err
	}
	if c.result.Models, err = c.usage(ctx, index.ByModel); err != nil {
		return err
	}
	slices.SortStableFunc(c.result.Models, func(a, b Usage) int { return cmp.Compare(b.Tokens(), a.Tokens()) })
	c.result.Sessions = []Usage{}
	if c.opts.Session == "" {
		if err := c.countSessions(ctx); err != nil {
			return err
		}
	}
	activity, err := c.ix.Activity(ctx, c.opts)
	if err != nil {
		return err
	}
	c.result.Messages, c.result.Hours, c.result.Weekdays = activity.Messages, activity.Hours, activity.Weekdays
	c.result.Tools, c.result.Roles = orEmpty(activity.Tools), orEmpty(activity.Roles)
	topics, err := c.ix.Topics(ctx, c.opts, maxTopics)
	c.result.Topics = make([]string, len(topics))
	for i, topic := range topics {
		c.result.Topics[i] = topic.Word
	}
	return err
}

func (c *counting) usage(ctx context.Context, by index.By) ([]Usage, error) {
	sums, err := c.ix.Usage(ctx, index.UsageOptions{
		By: by, Since: c.opts.Since, Until: c.opts.Until, Session: c.opts.Session, Location: c.opts.Location,
	})
	list := make([]Usage, len(sums))
	for i := range sums {
		list[i] = Usage(sums[i])
	}
	return list, err
}

// countSessions finds the sessions that cost most.
func (c *counting) countSessions(ctx context.Context) (err error) {
	if c.result.Sessions, err = c.usage(ctx, index.BySession); err != nil {
		return err
	}
	slices.SortStableFunc(c.result.Sessions, func(a, b Usage) int {
		return cmp.Or(cmp.Compare(b.CostMicroUSD, a.CostMicroUSD), cmp.Compare(b.Tokens(), a.Tokens()))
	})
	c.result.Titles = make(map[string]string)
	for _, u := range c.result.Sessions[:min(len(c.result.Sessions), maxTitles)] {
		found, err := c.ix.Conversation(ctx, u.Key)
		if err != nil {
			return err
		}
		c.result.Titles[u.Key] = found.Title
	}
	return nil
}
