package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/lease"
)

var (
	// ErrBusy means that a turn is under way.
	ErrBusy = errors.New("a turn is under way")
	// ErrClosed means that the agent was closed.
	ErrClosed = errors.New("the agent is closed")
	// ErrIdle means that no turn is under way that could be steered.
	ErrIdle = errors.New("no turn is under way; use Send")
)

// Agent drives a model in a session. Its methods may be called concurrently. During a
// turn, methods that change the conversation return ErrBusy, except for Steer, FollowUp,
// TakeBack and Decide, which are for then. While another agent works on the session, in this
// program or another, they return a *lease.HeldError that says who it is, or wait: see
// Options.Wait.
type Agent struct {
	keeper *Keeper
	events hub
	tracer Tracer

	mu     sync.Mutex // guards what follows
	busy   chan struct{}
	cancel context.CancelCauseFunc // ends the turn that is under way
	closed bool
	o      Options // what the next turn uses

	questions map[string]chan<- Decision // questions that Approve is being asked, by call: Decide may answer them

	// What follows belongs to the running turn, if there is one.

	memo   provider.Memo
	memoOf provider.Info // the model that memo is about
}

// New returns an agent that continues the conversation that a session is part of. The caller
// closes the session after the agent.
//
// If the conversation has several sessions, the agent sends what all of them have, and
// writes to the last one, whichever is given: see session.OpenChain. Agent.Session is the
// whole; the given session does not see what the agent writes then, unless it was opened
// with OpenChain.
func New(s *session.Session, o Options) (*Agent, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	keeper, err := newKeeper(s, o.keeper())
	if err != nil {
		return nil, err
	}
	a := &Agent{o: o, keeper: keeper}
	a.keeper.onEvent, a.keeper.hasListeners = a.events.publish, a.events.hasListeners
	if a.tracer = o.Tracer; a.tracer == nil {
		a.tracer = noTracer{}
	}
	return a, nil
}

// check refuses options that cannot work and fills in the defaults.
func (o *Options) check() error {
	if o.Model == nil || slices.Contains(o.Fallback, nil) {
		return invalid("an agent needs a model")
	}
	if err := checkTools(o.Tools); err != nil {
		return err
	}
	for name, n := range map[string]int64{
		"MaxSteps": int64(o.MaxSteps), "Parallel": int64(o.Parallel), "MaxOutput": int64(o.MaxOutput),
		"ToolTimeout": int64(o.ToolTimeout), "RetryWait": int64(o.RetryWait),
		"Budget.Tokens": int64(o.Budget.Tokens), "Budget.MicroUSD": int64(o.Budget.MicroUSD), "Budget.Time": int64(o.Budget.Time),
	} {
		if n < 0 {
			return invalid("%s must not be negative", name)
		}
	}
	kept := o.keeper()
	if err := kept.check(); err != nil {
		return err
	}
	o.MaxSteps = cmp.Or(o.MaxSteps, 200)
	o.Parallel = cmp.Or(o.Parallel, 8)
	o.Draft = kept.Draft
	o.ToolTimeout = cmp.Or(o.ToolTimeout, 10*time.Minute)
	o.Tools = slices.Clone(o.Tools)
	return nil
}

func checkTools(tools []Tool) error {
	for i := range tools {
		if tools[i].Run == nil {
			return invalid("the tool %q has no function that runs it", tools[i].Name)
		}
		if tools[i].Timeout < 0 {
			return invalid("the timeout of the tool %q must not be negative", tools[i].Name)
		}
	}
	return provider.CheckTools(definitions(tools))
}

func definitions(tools []Tool) []provider.Tool {
	list := make([]provider.Tool, len(tools))
	for i := range tools {
		list[i] = tools[i].Tool
	}
	return list
}

func invalid(format string, args ...any) error {
	return &session.Error{Op: "agent", Err: session.Invalidf(format, args...)}
}

// Session returns the conversation that the agent works on. Its Last is the session that the
// agent writes to.
func (a *Agent) Session() *session.Session { return a.keeper.log }

// Holder returns who works on the session now, or nil: an agent of another program, or one
// of this program, which may be this agent.
func (a *Agent) Holder(ctx context.Context) (*lease.Holder, error) {
	return a.keeper.place.Holder(ctx)
}

// begin takes the conversation for a turn or another change. The returned context
// ends with ctx or with Close. The caller calls end.
func (a *Agent) begin(ctx context.Context) (_ *turn, end func(), err error) {
	t, free, err := a.reserve(ctx)
	if err != nil {
		return nil, nil, err
	}
	release, err := t.Keeper.acquire(t.ctx, t.stop)
	if err != nil {
		free()
		return nil, nil, err
	}
	return t, func() {
		release()
		free()
	}, nil
}

// reserve takes the agent for a turn. The caller calls free.
func (a *Agent) reserve(ctx context.Context) (_ *turn, free func(), _ error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return nil, nil, ErrClosed
	case a.busy != nil:
		return nil, nil, ErrBusy
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	a.busy, a.cancel = done, cancel
	t := &turn{Agent: a, Keeper: a.keeper, opts: a.o}
	t.ctx, t.stop = ctx, cancel
	t.useOptions()
	t.tools = make(map[string]*Tool, len(t.opts.Tools))
	for i := range t.opts.Tools {
		t.tools[t.opts.Tools[i].Name] = &t.opts.Tools[i]
	}
	return t, func() {
		cancel(nil)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.busy, a.cancel = nil, nil
		if t.last != nil { // a subscriber that sees the turn end may begin the next at once
			t.publish(*t.last)
		}
		close(done)
	}, nil
}

// change runs f while no turn is under way.
func (a *Agent) change(ctx context.Context, f func(*turn) error) error {
	t, end, err := a.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return t.afterCatchUp(f)
}

// Cancel ends the running turn, if there is one, with a cause. What has arrived is
// kept.
func (a *Agent) Cancel(cause error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cancel != nil {
		a.cancel(cause)
	}
}

// Close ends a running turn, waits for it, and ends the subscriptions. It does not
// close the session.
func (a *Agent) Close() error {
	a.mu.Lock()
	a.closed = true
	busy := a.busy
	if a.cancel != nil {
		a.cancel(ErrClosed)
	}
	a.mu.Unlock()
	if busy != nil {
		<-busy
	}
	a.events.close()
	return nil
}

// Subscribe returns the events from now on. Up to buffer events wait for a slow
// subscriber (default: 1024). Further ones are left out, and an event of type Missed
// says how many. Waiting pieces of the same text are joined, so no text is lost. A turn
// waits for no subscriber before its end; there it waits until those that are being read
// have been read, for two seconds at most.
func (a *Agent) Subscribe(buffer int) *Subscription { return a.events.subscribe(buffer) }

// SetModel changes the model, from the next request on. The log records it when the model is
// asked.
func (a *Agent) SetModel(m provider.Model) error {
	if m == nil {
		return invalid("an agent needs a model")
	}
	return a.set(func(o *Options) {
		o.Model = m
		a.memo = provider.Memo{}
		a.keeper.backoff = backoff{}
		a.keeper.count.forget()
	})
}

// SetThinking changes the thinking level, from the next request on; "" leaves it as the
// session has it.
func (a *Agent) SetThinking(level string) error {
	if err := provider.CheckThinking(level); err != nil {
		return err
	}
	return a.set(func(o *Options) { o.Thinking = level })
}

// SetTools changes the tools, from the next request on.
func (a *Agent) SetTools(tools ...Tool) error {
	if err := checkTools(tools); err != nil {
		return err
	}
	return a.set(func(o *Options) { o.Tools = slices.Clone(tools) })
}

// SetSystem changes the instructions, from the next turn on.
func (a *Agent) SetSystem(text string) error {
	return a.set(func(o *Options) { o.System = text })
}

func (a *Agent) set(change func(*Options)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return ErrClosed
	case a.busy != nil:
		return ErrBusy
	}
	change(&a.o)
	return nil
}

// Status describes the agent. During a turn it may be a step behind.
func (a *Agent) Status() (Status, error) {
	a.mu.Lock()
	o, busy := a.o, a.busy != nil
	a.mu.Unlock()
	info := o.Model.Info()
	status := Status{
		Session: a.keeper.log.SessionOf(""), Leaf: a.keeper.log.LeafID(), Provider: info.Provider, Model: info.Model,
		Window: o.Compaction.window(info), Busy: busy,
	}
	c, err := a.keeper.log.Context(session.ContextOptions{Shared: true})
	if err != nil {
		return status, err
	}
	status.Thinking = thinking(o.Thinking, c)
	if status.Tokens, err = a.keeper.count.tokens(c, info, definitions(o.Tools)); err != nil {
		return status, err
	}
	status.Spent, err = session.SpentIn(a.keeper.log)
	return status, err
}
