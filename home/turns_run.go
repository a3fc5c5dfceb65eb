package home

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

const (
	// maxTurns is how many turns may run at once in a home.
	maxTurns = 256
	// keepTurn is how long a turn that has ended can still be heard.
	keepTurn = 5 * time.Minute
)

// turnTable has the turns of a home: those that run, and those that ended a short time ago.
type turnTable struct {
	number  atomic.Int64   // of the last event
	running sync.WaitGroup // the turns that run

	mu     sync.Mutex // guards what follows
	runs   map[string]*Turn
	active map[*Turn]bool // those that run, even before they have a session
	closed bool
}

func newTurnTable() *turnTable {
	return &turnTable{runs: make(map[string]*Turn), active: make(map[*Turn]bool)}
}

// nextNumber returns the number of an event. Numbers are times in microseconds where that is
// possible, so that they also rise from one opening of the home to the next.
func (t *turnTable) nextNumber() int64 {
	for {
		last := t.number.Load()
		next := max(last+1, time.Now().UnixMicro())
		if t.number.CompareAndSwap(last, next) {
			return next
		}
	}
}

func (t *turnTable) get(name string) *Turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.runs[name]
}

func (t *turnTable) all() map[string]*Turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.runs)
}

// add adds a turn. It refuses it if another one runs in the same conversation.
func (t *turnTable) add(op, name string, run *Turn) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return &session.Error{Op: op, Name: name, Err: store.ErrClosed}
	case len(t.active) >= maxTurns:
		return &session.Error{
			Op: op, Name: name, Kind: provider.ErrLimited, Err: fmt.Errorf("%d turns are running in this home, which is the limit", len(t.active)),
			Hint: "try again when some have ended",
		}
	}
	if err := t.put(op, name, run); err != nil {
		return err
	}
	t.active[run] = true
	t.running.Add(1)
	return nil
}

// name registers a turn under the name of its conversation, which may have been created in
// the meantime.
func (t *turnTable) name(op, name string, run *Turn) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.put(op, name, run)
}

func (t *turnTable) put(op, name string, run *Turn) error {
	other := t.runs[name]
	switch {
	case name == "":
		return nil
	case other != run && other.isRunning():
		return &session.Error{
			Op: op, Name: name, Kind: session.ErrLocked, Err: fmt.Errorf("a turn has been running there since %s", other.began.Local().Format(time.DateTime)),
			Hint: "steer it, stop it, or wait until it has ended",
		}
	}
	t.runs[name] = run
	return nil
}

// remove forgets that a turn runs, and after a while the turn.
func (t *turnTable) remove(name string, run *Turn) {
	t.mu.Lock()
	delete(t.active, run)
	t.mu.Unlock()
	time.AfterFunc(keepTurn, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.runs[name] == run {
			delete(t.runs, name)
		}
	})
}

// close ends all turns and waits for them.
func (t *turnTable) close() {
	t.mu.Lock()
	t.closed = true
	for run := range t.active {
		run.stop(errHomeClosed)
	}
	t.mu.Unlock()
	t.running.Wait()
}

// errHomeClosed is the error of a turn that ended with its home. It matches context.Canceled,
// as ErrStopped does.
var errHomeClosed error = homeClosed{}

type homeClosed struct{ stopped }

func (homeClosed) Error() string { return "the program that ran the turn was ended" }

// Turn is a turn of a home: a Chat begins it, or an operation of Turns. Stop may be called at any
// time, by several goroutines.
type Turn struct {
	*turnRecord
	table   *turnTable
	home    *Home
	options *TurnOptions
	chat    *Chat // of which it is a turn; nil means that it opens one
	bare    bool  // the model has no tools
	began   time.Time
	stop    context.CancelCauseFunc
	passed  chan struct{} // has an element when the agent's events up to its question were recorded

	// using is held while the worker is in use. The worker is nil before the turn has begun
	// and after its end.
	using  sync.RWMutex
	worker *agent.Agent

	mu       sync.Mutex   // guards what follows
	name     string       // of the conversation; "" if it has none yet
	box      *toolbox     // nil if there are no tools but the program's own
	facts    *TurnFacts   // nil before there is a chat
	own      []agent.Tool // the tools of the program around the chat
	question *turnQuestion
	ending   *TurnEvent // what the agent said last
}

// turnQuestion is a call that waits for a decision.
type turnQuestion struct {
	call   agent.Call
	answer chan agent.Decision // takes one
}

// turnFunc is what an agent does in a turn.
type turnFunc func(ctx context.Context, a *agent.Agent) (*agent.Outcome, error)

// runTurn runs a turn and listens to it. The turn has a goroutine of its own, because it goes on
// when its caller leaves, unless the caller asked for the opposite (TurnOptions.Attached):
//
//	begin ─▶ run ─▶ runAgent ─▶ do             opens the chat, and lets the agent work
//	             recordEvent ─▶ turnRecord     keeps the agent's events
//	                            Listen         sends them, at the pace of each listener
func (t *Turns) runTurn(ctx context.Context, op string, o *TurnOptions, send func(TurnEvent) error, do turnFunc) (*TurnResult, error) {
	if err := o.check(ctx); err != nil {
		return nil, err
	}
	run := t.home.newTurn(o, nil)
	if o.Session != "" {
		var err error
		if run.name, _, err = t.home.chain(ctx, o.Session); err != nil {
			return nil, err
		}
	}
	if err := run.begin(WithNotify(context.WithoutCancel(ctx), run.notice), op, do); err != nil {
		return nil, err
	}
	result, err := run.Listen(ctx, send)
	if o.Attached && !run.isDone() { // the caller went away
		run.Stop()
		<-run.done
	}
	return result, err
}

func (h *Home) newTurn(o *TurnOptions, of *Chat) *Turn {
	r := &Turn{
		turnRecord: newTurnRecord(h.turns.nextNumber), table: h.turns, home: h, options: o, chat: of, bare: o.isBare(),
		began: time.Now(), passed: make(chan struct{}, 1),
	}
	if of != nil {
		r.bare = len(of.tools) == 0
		r.copyChat(of)
	}
	return r
}

// copyChat copies the facts about its chat that a turn needs: the chat may change while the turn
// runs.
func (r *Turn) copyChat(c *Chat) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.name, r.box, r.facts, r.own = c.c.Handle, c.box, c.facts(), c.own
}

// setToolbox lets the turn use the tools that its chat has got since it began.
func (r *Turn) setToolbox(box *toolbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.box = box
}

// isBare says that the turn has no tools.
func (o *TurnOptions) isBare() bool {
	return len(o.Servers) == 0 && (len(o.Tools) == 0 || slices.Contains(o.Tools, NoTools))
}

// check refuses invalid options, and those that a caller may not use.
func (o *TurnOptions) check(ctx context.Context) error {
	switch {
	case o.Questions != "" && !slices.Contains([]Questions{AskListeners, AskAnyone, LeaveThem, DenyThem}, o.Questions):
		return wrong("questions", "{questions} is %q; it must be %s, %s, %s or %s", o.Questions, AskListeners, AskAnyone, LeaveThem, DenyThem)
	case !isConfined(ctx):
		return nil
	case len(o.Servers) > 0:
		return confined("servers")
	case !o.isBare():
		return confined("tools")
	case len(o.Context) > 0:
		return confined("context")
	}
	return nil
}

// begin lets the turn run until it is done or ctx ends. The caller has to listen.
func (r *Turn) begin(ctx context.Context, op string, do turnFunc) error {
	ctx, r.stop = context.WithCancelCause(ctx)
	if err := r.table.add(op, r.name, r); err != nil {
		r.stop(err)
		return err
	}
	if r.chat != nil {
		r.chat.turn.Store(r)
	}
	go r.run(ctx, op, do)
	return nil
}

// run takes the turn, from the opening of the chat to its end.
func (r *Turn) run(ctx context.Context, op string, do turnFunc) {
	defer r.table.running.Done()
	defer r.stop(nil)
	result := &TurnResult{Session: r.name}
	chat, err := r.chat, error(nil)
	if chat == nil {
		if chat, err = r.home.newChat(ctx, r.options, nil, r.bare); err == nil {
			defer chat.Close() // what was done is in the log, whatever it returns
			chat.turn.Store(r)
			if err = chat.start(ctx); err == nil {
				r.copyChat(chat)
			}
		}
	}
	if err == nil {
		err = r.runAgent(ctx, op, chat, result, do)
	}
	r.use(nil)
	r.mu.Lock()
	ending := r.ending
	r.question = nil
	r.mu.Unlock()
	r.table.remove(result.Session, r)
	r.end(ending, result, err)
}

// runAgent lets the agent of a chat take the turn.
func (r *Turn) runAgent(ctx context.Context, op string, chat *Chat, result *TurnResult, do turnFunc) error {
	result.Session = chat.c.Handle
	r.use(chat.agent)
	if err := r.table.name(op, chat.c.Handle, r); err != nil {
		return err
	}
	news := chat.agent.Subscribe(0)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for e := range news.Events(context.Background()) {
			r.recordEvent(e)
		}
	}()
	out, err := do(ctx, chat.agent)
	news.Close()
	<-heard
	if out != nil {
		result.Outcome = *out
	}
	return chat.Explain(err)
}

// recordEvent records an event of the agent.
func (r *Turn) recordEvent(e agent.Event) {
	told := TurnEvent{Event: e, Error: described(e.Err)}
	switch e.Type {
	case agent.TurnStart:
		r.mu.Lock()
		told.Facts = r.facts
		r.mu.Unlock()
	case agent.ToolWaiting: // recorded when it can be answered: see approve
		r.pass()
		return
	case agent.Missed:
		r.pass() // the question may be among them
	case agent.TurnEnd: // recorded when the next turn can begin
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ending = &told
		return
	}
	r.record(told)
}

// pass signals that everything before a question was recorded.
func (r *Turn) pass() {
	select {
	case r.passed <- struct{}{}:
	default:
	}
}

func (r *Turn) notice(n Notice) {
	r.record(TurnEvent{Event: agent.Event{Type: TurnNotice, Time: time.Now(), Session: n.Session}, Notice: &n})
}

// facts returns which model answers in the chat, and with which tools.
func (c *Chat) facts() *TurnFacts {
	info := c.chosen.Model.Info()
	facts := &TurnFacts{Provider: info.Provider, Model: info.Model, From: c.chosen.From, Was: c.chosen.Was, Dir: c.dir, Warnings: c.Warnings()}
	for i := range c.tools {
		facts.Tools = append(facts.Tools, c.tools[i].Name)
	}
	if p := c.Project(); p != nil && !p.Trusted {
		facts.Untrusted = p
	}
	return facts
}
