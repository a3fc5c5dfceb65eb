package home

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/agent/mcp"
	"github.com/coppice-dev/coppice/agent/tools"
)

// ToolboxRequest says where tools work, and which of their calls need no approval.
type ToolboxRequest struct {
	// Dir is the directory in which they work. Default: the present one.
	Dir string `json:"dir,omitempty"`
	// Servers are MCP servers whose tools are offered: command lines for the shell, or
	// addresses that begin with http:// or https://.
	Servers []string `json:"servers,omitempty"`
	// Allow and Deny are rules: see tools.Rules.
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

// Toolbox has the tools that a model may be given: the built-in ones, of which one
// searches the home, and those of MCP servers. It may be used by several goroutines at
// once. Close it after use.
type Toolbox struct {
	home    *Home
	r       ToolboxRequest
	servers []*mcp.Server

	mu    sync.Mutex   // guards the rest
	rules *tools.Rules // what is allowed by now
	given []string
}

// AllTools stands for all built-in tools.
const AllTools = "all"

// Toolbox returns the tools for a directory, and starts the servers. A rule that makes no
// sense is session.ErrInvalid, and so is one for a tool that does not exist, unless its name
// has a *.
func (h *Home) Toolbox(ctx context.Context, r ToolboxRequest) (*Toolbox, error) {
	b := &Toolbox{home: h, r: r, given: slices.Clone(r.Allow)}
	var err error
	if b.rules, err = tools.NewRules(r.Dir, r.Allow, r.Deny); err != nil {
		return nil, &invalidError{err}
	}
	for _, where := range r.Servers {
		server, err := mcp.Connect(ctx, serverOptions(where, r.Dir))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("MCP server %s: %w", where, err), b.Close())
		}
		b.servers = append(b.servers, server)
	}
	if err := b.rules.Check(b.names()); err != nil {
		return nil, errors.Join(&invalidError{err}, b.Close())
	}
	return b, nil
}

// names returns the names of all tools that there are, in use or not.
func (b *Toolbox) names() []string {
	names := tools.Names()
	var lists [][]agent.Tool
	for _, s := range b.servers {
		lists = append(lists, s.Tools())
	}
	lists = append(lists, mcp.Join(lists...)) // by other names if two are the same
	for _, t := range slices.Concat(lists...) {
		if !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}

func serverOptions(where, dir string) mcp.Options {
	o := mcp.Options{Dir: dir}
	switch {
	case strings.HasPrefix(where, "http://"), strings.HasPrefix(where, "https://"):
		o.URL = where
	case runtime.GOOS == "windows":
		o.Command = []string{"cmd", "/c", where}
	default:
		o.Command = []string{"/bin/sh", "-c", where}
	}
	return o
}

// Close ends the servers.
func (b *Toolbox) Close() error {
	var errs []error
	for _, s := range b.servers {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// Tools returns the built-in tools with some names, or AllTools, and those of the servers.
// They obey the rules that the toolbox was made with; Allows knows later ones as well.
func (b *Toolbox) Tools(names ...string) ([]agent.Tool, error) {
	rules, err := tools.NewRules(b.r.Dir, b.r.Allow, b.r.Deny)
	if err != nil {
		return nil, &invalidError{err}
	}
	var lists [][]agent.Tool
	if len(names) > 0 {
		if slices.Contains(names, AllTools) {
			names = nil
		}
		own, err := tools.New(tools.Options{Dir: b.r.Dir, Names: names, Rules: rules, Search: b.search})
		if err != nil {
			return nil, &invalidError{err}
		}
		lists = append(lists, own)
	}
	for _, s := range b.servers {
		lists = append(lists, rules.Apply(s.Tools()...))
	}
	return mcp.Join(lists...), nil
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
	if err == nil {
		err = rules.Check(b.names())
	}
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

// WhyNoRule returns why RuleFor has no rule for a call, or nil if it has one.
func (b *Toolbox) WhyNoRule(call agent.Call) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rules.WhyNoRule(call)
}

// Rules returns the rules that allow calls by now.
func (b *Toolbox) Rules() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.given)
}
