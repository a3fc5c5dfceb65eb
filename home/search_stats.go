package home

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// StatsRequest says what to count.
type StatsRequest struct {
	Session string `json:"session,omitempty"` // as a person names it; "" means all of them
	// Since and Until are the time to count. They are rounded down to a quarter of an hour,
	// which is what the index counts by. Default: all of it.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// TimeZone is where a day begins at midnight: a name such as "Europe/Lisbon" or
	// "UTC". Default: that of the machine that counts.
	TimeZone string `json:"time_zone,omitempty"`
	// By is what the bins are divided by: model, project or agent. Default: model.
	By string `json:"by,omitempty"`
	// Bin is how long a bin is: day, week (from Monday) or month. Default: a day or, if there are
	// more than Columns, a week or a month. There are at most 10,000 days or weeks.
	Bin     string `json:"bin,omitempty"`
	Columns int    `json:"columns,omitempty"` // how many bins there is room for; 0 means 60
}

// Usage is what some responses cost: on a day, by a model, in a session (Key says which), or
// in all.
type Usage = index.Usage

// CostOf returns what responses cost, in words: "$1.20", "at least $1.20" if the cost of
// some is not known, or "cost unknown".
func CostOf(u *Usage) string { return render.Cost(u.CostMicroUSD, u.Unpriced > 0 || u.Recorded > 0) }

// ShortCost is CostOf for a narrow column: "$1.20", "$1.20+" if the cost of some responses is not
// known, or "?".
func ShortCost(u *Usage) string {
	text := CostOf(u)
	if rest, ok := strings.CutPrefix(text, "at least "); ok {
		return rest + "+"
	}
	if !strings.HasPrefix(text, "$") {
		return "?"
	}
	return text
}

// ShortTokens says how many tokens a session has, in a narrow column: "1.2M", or "–" if nobody
// counted them.
func ShortTokens(s *SessionInfo) string {
	if s.TokensFrom == "" {
		return "–"
	}
	return render.Count(s.Tokens)
}

// StatsResult is what was counted.
type StatsResult struct {
	Session  string            `json:"session,omitempty"`
	Context  *int64            `json:"context_tokens,omitempty"` // of the session that was asked for, if a provider said so
	Shared   int64             `json:"shared_tokens,omitempty"`  // tokens of responses that are counted in older sessions
	Messages int64             `json:"messages"`
	Total    Usage             `json:"total"`
	Cached   *int              `json:"cached_percent,omitempty"` // how much of all input came from the cache; missing if there was none
	Days     []Usage           `json:"days"`
	Bin      string            `json:"bin"`      // day, week or month
	Bins     []StatsBin        `json:"bins"`     // of the whole time, also those without usage
	Parts    []Usage           `json:"parts"`    // what the bins are divided into: the most tokens first, and the rest as one
	Rest     int               `json:"rest"`     // how many are in that last one; 0 if there is none
	Active   []ActiveDay       `json:"active"`   // the days on which something was said, in order
	Models   []Usage           `json:"models"`   // most tokens first
	Projects []Usage           `json:"projects"` // by directory, named by as much of its end as distinguishes it; most tokens first
	Agents   []Usage           `json:"agents"`   // by the program that the sessions come from
	Sessions []Usage           `json:"sessions"` // most expensive first; none if one session was asked for
	Tools    []Count           `json:"tools"`
	Failed   []Count           `json:"failed"` // the calls that failed, by tool
	Spent    render.Elapsed    `json:"spent"`  // where the time went
	Roles    []Count           `json:"roles"`
	Hours    [24]int64         `json:"hours"`
	Weekdays [7]int64          `json:"weekdays"`
	Topics   []string          `json:"topics"`
	Titles   map[string]string `json:"titles,omitempty"` // of the first few of Sessions
}

const (
	maxTopics = 12
	maxTitles = 12 // of the most expensive sessions
)

// Stats counts tokens, cost, messages, tools and topics. A response that is in several
// sessions, because one was forked from the other, counts once.
func (s *Search) Stats(ctx context.Context, r StatsRequest) (*StatsResult, error) {
	return call(ctx, s.home, "search.stats", r, s.stats)
}

func (s *Search) stats(ctx context.Context, r StatsRequest) (*StatsResult, error) {
	if err := r.checkBins(); err != nil {
		return nil, err
	}
	o := index.StatsOptions{Since: r.Since, Until: r.Until, Location: time.Local, By: dividers[r.By]}
	if r.TimeZone != "" {
		var err error
		if o.Location, err = time.LoadLocation(r.TimeZone); err != nil {
			return nil, wrong("time_zone", "{time_zone} is %q; it must be a name such as Europe/Berlin", r.TimeZone)
		}
	}
	ctx = s.home.catchUpOnce(ctx)
	ix, err := s.home.index(ctx)
	if err != nil {
		return nil, err
	}
	c := counting{ix: ix, opts: o, asked: r, result: &StatsResult{}}
	spent := int64(0)
	if r.Session != "" {
		found, err := s.home.indexed(ctx, r.Session)
		if err != nil {
			return nil, err
		}
		c.opts.Session, c.result.Session = found.ID, found.ID
		if found.Context > 0 {
			c.result.Context = &found.Context
		}
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
	asked  StatsRequest
	result *StatsResult
}

func (c *counting) count(ctx context.Context) error {
	stats, err := c.ix.Stats(ctx, c.opts)
	if err != nil {
		return err
	}
	r := c.result
	r.Total = stats.Total
	r.Cached = cachedPercent(r.Total.CacheRead, r.Total.Tokens()-r.Total.Output-r.Total.Recorded)
	r.Days, r.Models = orEmpty(stats.Days), orEmpty(stats.Models)
	r.Projects, r.Agents = byProject(stats.Dirs), orEmpty(stats.Agents)
	for _, list := range [][]Usage{r.Models, r.Projects, r.Agents} {
		slices.SortStableFunc(list, func(a, b Usage) int { return cmp.Compare(b.Tokens(), a.Tokens()) })
	}
	r.Sessions = []Usage{}
	if c.opts.Session == "" {
		r.Sessions = orEmpty(stats.Sessions)
		if err := c.nameSessions(ctx); err != nil {
			return err
		}
	}
	if err := c.divide(stats); err != nil {
		return err
	}
	activity := &stats.Activity
	r.Active = activeDays(activity.Days)
	r.Messages, r.Hours, r.Weekdays = activity.Messages, activity.Hours, activity.Weekdays
	r.Failed = orEmpty(stats.Failed)
	for _, t := range stats.Times {
		r.Spent.Add(t.Role, t.Tool, t.Millis)
	}
	r.Tools, r.Roles = orEmpty(activity.Tools), orEmpty(activity.Roles)
	topics, err := c.ix.Topics(ctx, c.opts, maxTopics)
	r.Topics = make([]string, len(topics))
	for i, topic := range topics {
		r.Topics[i] = topic.Word
	}
	return err
}

// cachedPercent returns how much of the input came from the cache, rounded to a whole number, but
// 100 only if all of it did. It is nil if there was no input.
func cachedPercent(cached, input int64) *int {
	if input <= 0 {
		return nil
	}
	percent := render.PercentOf(cached, input)
	return &percent
}

// byProject names directories as a list of sessions does.
func byProject(dirs []index.Usage) []Usage {
	list := orEmpty(dirs)
	paths := make([]string, len(list))
	for i := range list {
		paths[i] = list[i].Key
	}
	names := render.ShortDirs(paths)
	for i := range list {
		list[i].Key = names.Name(list[i].Key)
	}
	return list
}

// nameSessions puts the most expensive sessions first and finds their titles.
func (c *counting) nameSessions(ctx context.Context) error {
	slices.SortStableFunc(c.result.Sessions, func(a, b Usage) int {
		return cmp.Or(cmp.Compare(b.CostMicroUSD, a.CostMicroUSD), cmp.Compare(b.Tokens(), a.Tokens()))
	})
	c.result.Titles = make(map[string]string)
	for _, u := range c.result.Sessions[:min(len(c.result.Sessions), maxTitles)] {
		found, err := c.ix.Conversation(ctx, u.Key)
		if errors.Is(err, session.ErrNotExist) {
			continue // removed since it was counted; the money is spent anyway
		}
		if err != nil {
			return err
		}
		c.result.Titles[u.Key] = found.Title
	}
	return nil
}
