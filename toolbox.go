package coppice

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/agent/tools"
)

// ToolboxRequest says where tools work, and which of their calls need no approval.
type ToolboxRequest struct {
	// Dir is the directory in which they work. Default: the present one.
	Dir string `json:"dir,omitempty"`
	// Allow and Deny are rules: see tools.Rules.
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// Toolbox has the tools that a model may be given: the built-in ones, of which one
// searches the home. It may be used by several goroutines at once.
type Toolbox struct {
	home *Home
	r    ToolboxRequest

	mu    sync.Mutex   // guards the rest
	rules *tools.Rules // what is allowed by now
	given []string
}

// AllTools stands for all built-in tools.
const AllTools = "all"

// Toolbox returns the tools for a directory. A rule that makes no sense is
// session.ErrInvalid.
func (h *Home) Toolbox(r ToolboxRequest) (*Toolbox, error) {
	b := &Toolbox{home: h, r: r, given: slices.Clone(r.Allow)}
	var err error
	if b.rules, err = tools.NewRules(r.Dir, r.Allow, r.Deny); err != nil {
		return nil, &invalidError{err}
	}
	return b, nil
}

// Tools returns the tools with some names, or all. They obey the rules.
func (b *Toolbox) Tools(names ...string) ([]agent.Tool, error) {
	if slices.Contains(names, AllTools) {
		names = nil
	}
	rules, err := tools.NewRules(b.r.Dir, b.r.Allow, b.r.Deny)
	if err != nil {
		return nil, &invalidError{err}
	}
	list, err := tools.New(tools.Options{Dir: b.r.Dir, Names: names, Rules: rules, Search: b.search})
	if err != nil {
		return nil, &invalidError{err}
	}
	return list, nil
}

// search is how the search tool asks the home.
func (b *Toolbox) search(ctx context.Context, query string, limit int) ([]tools.Hit, error) {
	found, err := b.home.Search.Find(ctx, FindRequest{Query: query, Limit: limit})
	if err != nil {
		return nil, errors.New(Describe(err).Message)
	}
	hits := make([]tools.Hit, len(found.Hits))
	for i, h := range found.Hits {
		hits[i] = tools.Hit{Session: h.Session, Title: h.Title, Entry: h.Entry, Time: h.Time, Role: h.Role, Text: h.Snippet}
	}
	return hits, nil
}

// Allows reports whether a rule lets a call run without asking.
func (b *Toolbox) Allows(call agent.Call) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	d, _ := b.rules.Decide(call)
	return d == agent.Allow
}

// Allow adds a rule, which holds until the toolbox is dropped.
func (b *Toolbox) Allow(rule string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	given := append(slices.Clone(b.given), rule)
	rules, err := tools.NewRules(b.r.Dir, given, b.r.Deny)
	if err != nil {
		return &invalidError{err}
	}
	b.given, b.rules = given, rules
	return nil
}

// RuleFor returns the rule that allows calls like this one, or "" if there can be none.
func (b *Toolbox) RuleFor(call agent.Call) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rules.RuleFor(call)
}

// Rules returns the rules that allow calls by now.
func (b *Toolbox) Rules() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.given)
}
