package home

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/agent/tools"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// toolbox has the tools that the model of a chat may be given: the built-in ones, including
// one that searches the home, and those of MCP servers. It may be used by several
// goroutines at once.
type toolbox struct {
	dir     string
	own     []agent.Tool
	servers []Tools
	rules   *tools.Rules // all tools obey them
	// warnings say which servers cannot be used, and why.
	warnings []string
	waited   bool // for a server that was slow to start

	mu      sync.Mutex // guards what follows
	allowed []string   // the rules that allow calls by now
}

// AllTools means all built-in tools, and NoTools none.
const (
	AllTools = "all"
	NoTools  = "none"
)

// newToolbox returns the tools for a directory, and starts the servers. An invalid rule is
// session.ErrInvalid, and so is one for a tool that does not exist, unless its name has a *.
// A server that does not start is left out, with a warning.
func newToolbox(ctx context.Context, dir string, r *ChatRequest, servers []server, search tools.SearchFunc, notify func(context.Context, Notice)) (*toolbox, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, wrongAs("cwd", fmt.Errorf("there is no directory %s here; name the one in which tools should work", dir))
	}
	b := &toolbox{dir: dir, allowed: slices.Clone(r.Allow)}
	var err error
	if b.rules, err = tools.NewRules(dir, r.Allow, r.Deny); err != nil {
		return nil, b.wrong(r, err, func(*tools.Rules) error { return nil })
	}
	// The tools remember what the model has read, so they are made only once.
	b.own, err = tools.New(tools.Options{Dir: dir, Rules: b.rules, Search: search, Keep: r.Env})
	if err != nil {
		return nil, err
	}
	for _, one := range servers {
		connected, err := one.connect(ctx, dir, func() {
			b.waited = true
			notify(ctx, Notice{Kind: ServerStarting, Server: cmp.Or(one.Name, one.shown)})
		})
		switch {
		case ctx.Err() != nil:
			return nil, errors.Join(err, b.close())
		case err != nil:
			b.warnings = append(b.warnings, fmt.Sprintf("there are no tools from %s: %v", one.shown, err))
		default:
			b.servers = append(b.servers, connected)
		}
	}
	known := b.names()
	check := func(rules *tools.Rules) error { return rules.Check(known) }
	switch err := check(b.rules); {
	case err == nil:
	case len(b.warnings) > 0: // it may be for a tool of a server that is missing
		b.warnings = append(b.warnings, err.Error())
	default:
		return nil, errors.Join(b.wrong(r, err, check), b.close())
	}
	return b, nil
}

// wrong names the field with the invalid rule.
func (b *toolbox) wrong(r *ChatRequest, why error, check func(*tools.Rules) error) error {
	rules, err := tools.NewRules(b.dir, r.Allow, nil)
	if err != nil || check(rules) != nil {
		return wrongAs("allow", why)
	}
	return wrongAs("deny", why)
}

// names returns the names of all tools that there are, in use or not.
func (b *toolbox) names() []string {
	names := tools.Names()
	var lists [][]agent.Tool
	for _, s := range b.servers {
		lists = append(lists, s.Tools())
	}
	lists = append(lists, agent.JoinTools(lists...)) // renamed if two are the same
	for _, t := range slices.Concat(lists...) {
		if !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}

// server is an MCP server that a chat should use. Its command starts in the directory of the
// chat, unless it names another one.
type server struct {
	ToolServer
	shown string // in errors: its command line may have a key in it
}

// slowStart is how long a server may take to start before the person reads what they wait for.
const slowStart = time.Second

// connect starts the server.
func (s *server) connect(ctx context.Context, dir string, slow func()) (connected Tools, err error) {
	if parts.Connect == nil {
		return nil, missingPart("connect", "MCP")
	}
	to := s.ToolServer
	to.Dir = cmp.Or(to.Dir, dir)
	done := make(chan struct{})
	go func() {
		defer close(done)
		connected, err = parts.Connect(ctx, to)
	}()
	select {
	case <-done:
	case <-time.After(slowStart):
		slow()
		<-done
	}
	return connected, err
}

// serverName is a name that a person gave to a server.
var serverName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([\w-]+):\s+`) })

// serversOf returns the servers of a request, and those of a project that is trusted.
func serversOf(r *ChatRequest, p *Project) (all []server) {
	for _, where := range r.Servers {
		one := server{shown: where}
		if m := serverName().FindStringSubmatch(where); m != nil {
			one.Name, where = m[1], where[len(m[0]):]
		} else if words := strings.Fields(where); len(words) > 0 && !strings.Contains(words[0], "://") {
			one.Name = strings.TrimSuffix(filepath.Base(words[0]), ".exe")
		}
		switch {
		case strings.HasPrefix(where, "http://"), strings.HasPrefix(where, "https://"):
			one.URL = where
		case runtime.GOOS == "windows":
			one.Command = []string{"cmd", "/c", where}
		default:
			one.Command = []string{"/bin/sh", "-c", where}
		}
		all = append(all, one)
	}
	if p != nil && p.Trusted {
		for _, one := range p.servers {
			one.shown = one.Name
			all = append(all, one)
		}
	}
	return all
}

// close ends the servers.
func (b *toolbox) close() error {
	var errs []error
	for _, s := range b.servers {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// tools returns the built-in tools with some names, or AllTools, and those of the servers.
// They obey the rules of the toolbox, also those that are added later.
func (b *toolbox) tools(names []string) ([]agent.Tool, error) {
	switch {
	case slices.Contains(names, NoTools):
		names = nil
	case slices.Contains(names, AllTools):
		names = tools.Names()
	}
	var own []agent.Tool
	for _, name := range names {
		i := slices.IndexFunc(b.own, func(t agent.Tool) bool { return t.Name == name })
		if i < 0 {
			return nil, session.Invalidf("there is no tool %q: the tools are %s", name, strings.Join(tools.Names(), ", "))
		}
		if !slices.ContainsFunc(own, func(t agent.Tool) bool { return t.Name == name }) {
			own = append(own, b.own[i])
		}
	}
	lists := [][]agent.Tool{own}
	for _, s := range b.servers {
		lists = append(lists, b.rules.Apply(s.Tools()...))
	}
	return agent.JoinTools(lists...), nil
}

// search searches the home for the search tool. It leaves out the current turn: the question
// itself would come first.
func (c *Chat) search(ctx context.Context, query string, limit int) ([]tools.Hit, error) {
	turn, err := c.currentTurn()
	if err != nil {
		return nil, err
	}
	found, err := c.home.Search.Find(ctx, FindRequest{Query: query, Limit: limit + len(turn)})
	if err != nil {
		return nil, errors.New(Describe(err).Message)
	}
	var hits []tools.Hit
	for _, h := range found.Hits {
		if !slices.Contains(turn, h.Entry) && len(hits) < limit {
			hits = append(hits, tools.Hit{Session: h.Session, Title: h.Title, Entry: h.Entry, Time: h.Time, Role: h.Role, Text: h.Snippet})
		}
	}
	return hits, nil
}

// currentTurn returns the entries from the last thing that the user said to the leaf.
func (c *Chat) currentTurn() (ids []string, err error) {
	if c.c == nil {
		return nil, nil
	}
	shape, err := c.c.Shape()
	if err != nil {
		return nil, err
	}
	for n := shape.Leaf(); n >= 0; n = shape.Parent(n) {
		ids = append(ids, shape.ID(n))
		entries, err := c.c.Peek(shape.ID(n))
		if err != nil || entries[0].BeginsTurn() {
			return ids, err
		}
	}
	return ids, nil
}

// allow adds rules, which all tools obey from now on, and returns those that allow calls by now. If
// one is invalid, it adds none.
func (b *toolbox) allow(rules ...string) ([]string, error) {
	alone, err := tools.NewRules(b.dir, rules, nil)
	if err == nil {
		err = alone.Check(b.names())
	}
	for i := 0; i < len(rules) && err == nil; i++ {
		err = b.rules.Allow(rules[i])
	}
	if err != nil {
		return nil, session.Invalidf("%w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = append(b.allowed, rules...)
	return slices.Clone(b.allowed), nil
}

// edits returns the changes to files that a call asks for, or nil if it does something else.
// For a call of a built-in tool, they have line numbers and the lines around them, as the
// file is now.
func (b *toolbox) edits(call agent.Call) []render.Edit {
	edits := render.Edits(session.ToolUseJSON(call.ID, call.Name, call.Input).ToolUse)
	before, after, ok := tools.Preview(b.dir, call)
	if ok && len(edits) == 1 {
		edits[0].Hunks = render.Diff(before, after)
	}
	return edits
}

// allows reports whether the rules allow a call by now.
func (b *toolbox) allows(call agent.Call) bool {
	d, _ := b.rules.Decide(call)
	return d == agent.Allow
}

// rulesFor returns the rules that allow calls like this one, or why there are none.
func (b *toolbox) rulesFor(call agent.Call) ([]string, error) { return b.rules.RulesFor(call) }
