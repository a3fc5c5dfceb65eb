package home

import (
	"context"
	"errors"
	"slices"

	"github.com/coppice-dev/coppice/agent/summary"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// DefaultKeepTokens is how much of the end of a conversation a compaction keeps by default.
// It is roughly what the current work needs.
const DefaultKeepTokens = window.DefaultKeep

// CompactRequest replaces the beginning of a conversation with a summary.
type CompactRequest struct {
	Session string `json:"session"`           // as a person names it: see Resolve
	Summary string `json:"summary,omitempty"` // what the model is sent instead; needed, unless Auto or DryRun is set
	// Auto lets a model write the summary: a new one, or an update of the one in force.
	// Default: Summary is used.
	Auto *AutoRequest `json:"auto,omitempty"`
	// KeepTokens is how much of the end to keep, at most, in tokens. Default: 20,000
	// (DefaultKeepTokens).
	KeepTokens *int `json:"keep_tokens,omitempty"`
	// FirstKept is the first entry to keep. Default: KeepTokens decides.
	FirstKept string `json:"first_kept,omitempty"`
	// DryRun plans, and writes nothing.
	DryRun bool `json:"dry_run,omitempty"`
}

// CompactResult says what a compaction replaces and what it keeps.
type CompactResult struct {
	Session      string      `json:"session"`
	FirstKept    string      `json:"first_kept"`
	Cut          string      `json:"cut"` // turn or step
	TokensBefore int         `json:"tokens_before"`
	TokensKept   int         `json:"tokens_kept"`
	Over         int         `json:"over"`       // how many more than KeepTokens
	Estimated    bool        `json:"estimated"`  // some entries had no recorded count
	StandsFor    int         `json:"stands_for"` // how many entries of the path the summary replaces
	Summarise    []PlanEntry `json:"summarise"`  // what the summary must cover
	Kept         []PlanEntry `json:"kept"`
	Counter      string      `json:"counter"`         // which counter counted entries without a recorded count
	Entry        string      `json:"entry,omitempty"` // the compaction; "" after a dry run
	Auto         *AutoResult `json:"auto,omitempty"`  // if a model wrote the summary
}

// PlanEntry is an entry in the plan of a compaction.
type PlanEntry struct {
	ID     string        `json:"id"`
	Kind   string        `json:"kind"` // the role of a message, else the type
	Tokens int           `json:"tokens"`
	Source window.Source `json:"source"` // how it was counted
	Text   string        `json:"text"`   // on one line
}

// Compact replaces the beginning of a conversation with a summary: from there on, the model
// is sent the summary instead. The conversation keeps everything, and Revert takes the
// compaction back. A conversation with several sessions is compacted as a whole: the
// compaction goes to the last one.
//
// It returns session.ErrNothingToCompact if there is nothing to leave out, and a
// *session.CutError if the conversation cannot be cut at FirstKept. If a model should write
// the summary and does not, nothing is written.
func (e *Entries) Compact(ctx context.Context, r CompactRequest) (*CompactResult, error) {
	return call(ctx, e.home, "entries.compact", r, e.compact)
}

func (e *Entries) compact(ctx context.Context, r CompactRequest) (*CompactResult, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if !r.DryRun {
		e.home.beforeWriting(ctx)
	}
	c, err := e.home.openFor(ctx, OpenRequest{Session: r.Session})
	if err != nil {
		return nil, err
	}
	result, err := e.home.compact(ctx, c, r)
	return result, errors.Join(forCaller("compact", c.Handle, err), c.Close())
}

func (r *CompactRequest) check() error {
	switch {
	case r.Auto != nil && r.Summary != "":
		return exclude("summary", "auto")
	case orNone(r.Summary) == "" && r.Auto == nil && !r.DryRun:
		return wrong("summary", "a compaction needs a {summary} or {auto}; {dry_run} shows what it must cover")
	case r.KeepTokens != nil && r.FirstKept != "":
		return exclude("first_kept", "keep_tokens")
	}
	if r.KeepTokens != nil {
		if err := notNegative("keep_tokens", *r.KeepTokens); err != nil {
			return err
		}
	}
	return checkUTF8("summary", r.Summary)
}

func (h *Home) compact(ctx context.Context, c *Conversation, r CompactRequest) (*CompactResult, error) {
	s := c.WithContext(ctx)
	counter, err := counterOf(s)
	if err != nil {
		return nil, err
	}
	plan, err := planCompaction(s, r, counter)
	if err != nil {
		return nil, explainPlan(c.Handle, err, s, counter)
	}
	result := &CompactResult{
		Session: s.ID(), FirstKept: plan.FirstKept, Cut: plan.Kind.String(),
		TokensBefore: plan.TokensBefore, TokensKept: plan.TokensKept, Over: plan.Over,
		Estimated: counter.estimates(plan.Summarise) || counter.estimates(plan.Kept), StandsFor: plan.StandsFor,
		Summarise: counter.planned(plan.Summarise), Kept: counter.planned(plan.Kept), Counter: counter.Name(),
	}
	switch {
	case r.DryRun:
	case r.Auto != nil:
		result.Entry, result.Auto, err = h.autoCompact(ctx, c.Handle, s, plan, r.Auto)
	default:
		result.Entry, err = s.AppendCompaction(r.Summary, plan.FirstKept, plan.TokensBefore)
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// autoCompact lets a model write the summary that a plan needs.
func (h *Home) autoCompact(ctx context.Context, name string, s *session.Session, plan *session.CompactionPlan, r *AutoRequest) (string, *AutoResult, error) {
	a, err := h.author(ctx, r, writesSummary)
	if err != nil {
		return "", nil, err
	}
	a.announceIn(s)
	made, err := summary.Compaction(ctx, a.model, plan, a.opts)
	if err != nil {
		return "", nil, a.failed(ctx, "compact", name, s, made, err)
	}
	entry, err := a.write(ctx, s, func() (string, error) { return made.Append(s, plan) })
	return entry, a.result(made), err
}

// planCompaction finds the cut.
func planCompaction(s *session.Session, r CompactRequest, counter tokenCounter) (*session.CompactionPlan, error) {
	if r.FirstKept != "" {
		first, err := ResolveEntry(s, r.FirstKept)
		if err != nil {
			return nil, err
		}
		return s.PlanCompaction(session.PlanOptions{FirstKept: first, Count: counter.entry})
	}
	keep := DefaultKeepTokens
	if r.KeepTokens != nil {
		keep = *r.KeepTokens
	}
	return s.PlanCompaction(session.PlanOptions{KeepTokens: keep, Count: counter.entry})
}

// explainPlan adds what would help if there is nothing to compact: keeping less, but only if
// anything can be left out at all.
func explainPlan(name string, err error, s *session.Session, counter tokenCounter) error {
	if !errors.Is(err, session.ErrNothingToCompact) {
		return err
	}
	hint := ""
	if _, err := s.PlanCompaction(session.PlanOptions{KeepTokens: 0, Count: counter.entry}); err == nil {
		hint = "keep fewer tokens, or name the first entry to keep"
	}
	return &session.Error{Op: "compact", Name: name, Err: err, Hint: hint}
}

// tokenCounter uses the recorded count of an entry and, if there is none, counts as the model
// in force does.
type tokenCounter struct {
	window.Counter
	whose string                 // the provider and the model
	known map[string]window.Cost // of the entries in the context, as a window counts them
}

func counterOf(s *session.Session) (tokenCounter, error) {
	c, err := s.Context(session.ContextOptions{Shared: true})
	if err != nil {
		return tokenCounter{}, err
	}
	counter, err := counterNamed("", c.Provider, c.Model)
	if err != nil {
		return tokenCounter{}, err
	}
	whole, err := measuredBy(c, counter)
	if err != nil {
		return tokenCounter{}, err
	}
	known := make(map[string]window.Cost, len(whole.Entries))
	for i := range whole.Entries {
		known[whole.Entries[i].ID] = whole.Costs[i]
	}
	return tokenCounter{counter, c.Provider + "/" + c.Model, known}, nil
}

func (t tokenCounter) cost(e *session.Entry) window.Cost {
	if cost, ok := t.known[e.ID]; ok {
		return cost
	}
	return window.CountEntry(t.Counter, t.whose, e)
}

func (t tokenCounter) entry(e session.Entry) int { return t.cost(&e).Tokens }

// estimates reports whether the size of any of the entries is a guess.
func (t tokenCounter) estimates(entries []session.Entry) bool {
	return slices.ContainsFunc(entries, func(e session.Entry) bool { return t.cost(&e).By == window.Estimated })
}

// planned describes entries.
func (t tokenCounter) planned(entries []session.Entry) []PlanEntry {
	list := make([]PlanEntry, len(entries))
	for i := range entries {
		cost := t.cost(&entries[i])
		list[i] = PlanEntry{entries[i].ID, render.Kind(&entries[i]), cost.Tokens, cost.By, render.Gist(&entries[i], 0)}
	}
	return list
}
