package agent

import (
	"sync"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// counting measures how much of a window a conversation fills. Each agent has one, so
// Status shows the number that decides about compactions.
//
// The provider knows best. What it reported with an answer counts for everything up to
// that answer, as long as the conversation before it is the one that was sent. Only what
// came after it is counted here.
type counting struct {
	mu      sync.Mutex
	given   window.Counter
	planner *window.Planner
	info    provider.Info
	report  report // zero: none yet
	// scale is by how much the provider's count exceeds ours: 0 if not known. It outlives
	// the report, so that a compaction does not seem to help until the provider counts
	// again.
	scale float64
	// ask has the model's provider count a conversation; nil if it does not count. deaf says
	// that it was asked in vain.
	ask  func(*session.Context) (int, error)
	deaf bool
}

// maxScale limits what a provider's count is believed to say about ours.
const maxScale = 8

// scaled returns what the provider would say about a number that was counted here.
func (n *counting) scaled(tokens int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return int(float64(tokens) * max(1, n.scale))
}

// report is what a provider said about the size of a request and its answer.
type report struct {
	answer string              // the entry
	tokens int                 // of the request and the answer
	sent   session.Fingerprint // of the conversation in the request
	tools  int                 // the tokens of the tools in it, counted
}

func newCounting(c window.Counter) *counting { return &counting{given: c} }

// forget drops what is known about a model.
func (n *counting) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.planner, n.report = nil, report{}
}

// observe remembers what a provider reported with an answer to a request. If it reported
// nothing, the report about an earlier request remains the best estimate.
func (n *counting) observe(answer string, u *session.Usage, r *request) {
	if u == nil || u.Sent() == 0 || len(r.c.Fingerprints) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if estimate, err := n.estimate(r.c, r.Tools); err == nil && estimate > 0 {
		n.scale = min(float64(u.Sent())/float64(estimate), maxScale)
	}
	n.report = report{
		answer: answer, tokens: u.Context(), sent: r.c.Fingerprints[len(r.c.Fingerprints)-1], tools: toolTokens(r.Tools),
	}
}

// tokens returns the size of a context for a model that is offered tools.
func (n *counting) tokens(c *session.Context, info provider.Info, tools []provider.Tool) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.planner == nil || n.info != info {
		p, err := window.NewPlanner(window.Options{Counter: n.given, Provider: info.Provider, Model: info.Model, Images: window.AllImages})
		if err != nil {
			return 0, err
		}
		if n.info != info {
			n.scale = 0
		}
		n.planner, n.info = p, info
	}
	view, err := n.planner.Update(c)
	if err != nil {
		return 0, err
	}
	at := n.report.index(c)
	if at < 0 || len(view.Costs) != len(c.Entries) {
		return view.Report.Tokens + toolTokens(tools), nil
	}
	return n.report.tokens + toolTokens(tools) - n.report.tools + costOf(view.Costs[at+1:]), nil
}

func costOf(costs []window.Cost) (sum int) {
	for _, cost := range costs {
		sum += cost.Tokens
	}
	return sum
}

// countExactly returns the size of a context as the provider counts it, if that is worth a request:
// more than a sixteenth of it was only counted here. Otherwise, or if the provider does not say,
// it is the known size.
func (n *counting) countExactly(c *session.Context, tools []provider.Tool, known int) int {
	last := len(c.Entries) - 1
	ask := n.counter(c, known)
	if ask == nil || last < 1 || len(c.Fingerprints) <= last {
		return known
	}
	tokens, err := ask(c) // without the lock: it takes its time
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.deaf = err != nil; n.deaf || tokens <= 0 {
		return known
	}
	n.report = report{answer: c.Entries[last].ID, tokens: tokens, sent: c.Fingerprints[last-1], tools: toolTokens(tools)}
	return tokens
}

// counter returns who counts a context, or nil if nobody need.
func (n *counting) counter(c *session.Context, known int) func(*session.Context) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	guessed := known
	if n.report.index(c) >= 0 {
		guessed -= n.report.tokens
	}
	if n.deaf || guessed <= known/16 {
		return nil
	}
	return n.ask
}

// setCounter sets who counts for the provider.
func (n *counting) setCounter(ask func(*session.Context) (int, error)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ask, n.deaf = ask, false
}

// estimate returns the size of a context as it is counted here.
func (n *counting) estimate(c *session.Context, tools []provider.Tool) (int, error) {
	if n.planner == nil {
		return 0, nil // no size was asked for yet
	}
	view, err := n.planner.Update(c)
	if err != nil {
		return 0, err
	}
	return view.Report.Tokens + toolTokens(tools), nil
}

// toolTokens estimates the size of the tools in a request.
func toolTokens(tools []provider.Tool) int {
	sum := 0
	for i := range tools {
		sum += (len(tools[i].Name) + len(tools[i].Description) + len(tools[i].Schema)) / 4
	}
	return sum
}

// fixed returns the size of the part of a request that no compaction removes: the system
// messages and the tools, for a model.
func (n *counting) fixed(c *session.Context, info provider.Info, tools []provider.Tool) (system, all int) {
	for i := range c.Entries {
		if m := c.Entries[i].Message; m != nil && m.Role == session.RoleSystem {
			system += n.entry(c.Entries[i], info)
		}
	}
	return n.scaled(system), n.scaled(system + toolTokens(tools))
}

// entry returns the size of one entry for a model.
func (n *counting) entry(e session.Entry, info provider.Info) int {
	counter := n.given
	if counter == nil {
		counter = window.Estimate(info.Provider, info.Model)
	}
	return window.CountEntry(counter, info.Provider, &e).Tokens
}

// index returns the position of a report's answer in a context. It returns -1 if the
// report does not hold there: the answer is missing, or the entries before it are not
// those that were sent.
func (r *report) index(c *session.Context) int {
	if r.answer == "" {
		return -1
	}
	for i := len(c.Entries) - 1; i > 0; i-- {
		if c.Entries[i].ID == r.answer {
			if c.Fingerprints[i-1] == r.sent {
				return i
			}
			break
		}
	}
	return -1
}
