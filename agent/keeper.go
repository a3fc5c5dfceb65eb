package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/lease"
	"github.com/coppice-dev/coppice/window"
)

// Keeper records in a session what a loop does: an Agent's, or your own with a model that
// this module does not know. The loop decides, and the keeper records it before anything
// depends on it. So a program that dies at any moment, and starts again, continues where it
// was, and no call runs twice unless it may be repeated.
//
// Between Begin and End no other loop works on the session. In between, a loop calls Prompt
// with what the user says, or Restore to continue where the last one stopped. Then it
// repeats:
//
//   - Context returns what to send to the model, with what others have queued for it: see
//     Agent.Steer. If the window is nearly full, it first replaces the beginning by a
//     summary.
//   - Draft takes what arrives of the answer, so that a crash loses little of it.
//   - Answer takes the whole answer and returns the calls to run; Failed takes the part
//     of an answer that arrived before it broke off.
//   - ToolStart comes before each call runs, and ToolEnd takes its result.
//
// When a method returns without an error, everything it was passed is durable. The methods may be
// called concurrently, as tools that run side by side do.
type Keeper struct {
	log   *session.Session // the whole conversation
	s     *session.Session // the same, with a context that does not end, so that everything is recorded
	place *lease.Place     // of the conversation, under its id: that stays the same at a boundary
	count *counting
	opts  KeeperOptions
	queue queue

	isChain bool // it may have several sessions

	onEvent      func(Event)          // gets what happens; may be nil
	hasListeners func() bool          // whether anyone subscribes
	onUsage      func(*session.Usage) // gets what each response cost; may be nil

	mu         sync.Mutex                  // guards what follows
	calls      map[callKey]json.RawMessage // the arguments of calls that wait
	signingKey []byte                      // of the store, if it is known

	// What follows belongs to the work that is under way, if there is any.

	ctx        context.Context
	stop       context.CancelCauseFunc // ends ctx
	lease      *lease.Lease
	holds      atomic.Bool // the lease is ours
	conflicted atomic.Bool // another writer has added to the session

	inLast     int // how many messages the last session has, or unknownSize
	recorded   recorded
	backoff    backoff
	offer      map[string]any // the tools, as recordTools records them
	offerSum   string
	unanswered int    // calls that wait for their results
	announced  string // the entry that says that the model is asked next, until a record names it
	arriving   *draft

	// What follows is only used by the exported methods.

	working sync.Mutex // guards the work
	release func()     // nil before Begin and after End
	sent    *request   // that waits for its answer
	handed  map[string]*Pending
}

// KeeperOptions say how a Keeper works. Fields that Options has too mean the same there.
type KeeperOptions struct {
	// Model is who answers, and the size of its window. Default: the log does not say.
	Model provider.Info
	// System is the instructions. They become part of the context.
	System string
	// Tools are offered to the model. The log records them, and they count in the window.
	Tools []provider.Tool
	// Thinking and MaxTokens go into each request.
	Thinking  string
	MaxTokens int
	// Repeatable reports whether running a call twice does no more than running it once.
	// Default: no call is repeatable.
	Repeatable func(Call) bool
	// Files returns the files that a call reads and changes, so that a summary can name
	// them. Default: what package summary knows about tools of that name.
	Files func(*session.ToolUseContent) (read, changed []string)
	// Draft is how often a partial answer is saved.
	Draft time.Duration
	// Compaction says when and how the beginning of the conversation is replaced by a
	// summary. Its Model writes the summary. Without one, that does not happen.
	Compaction Compaction
	// Counter counts tokens where the provider has not.
	Counter window.Counter
	// Boundary is how many messages a session may have.
	Boundary int
	// Wait makes Begin wait while another works on the session.
	Wait bool
	// Events gets what happens, at once: messages that are in the log, calls, compactions,
	// and errors that did not end the work. Default: none.
	Events func(Event)
}

// NewKeeper returns a keeper for the conversation that a session is part of: see New. The
// caller closes the session after the last End.
func NewKeeper(s *session.Session, o KeeperOptions) (*Keeper, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.Tools = slices.Clone(o.Tools)
	return newKeeper(s, o)
}

func newKeeper(s *session.Session, o KeeperOptions) (*Keeper, error) {
	s, isChain, err := conversationOf(s, o.Boundary)
	if err != nil {
		return nil, err
	}
	return &Keeper{
		log: s, s: s.WithContext(context.Background()), isChain: isChain, inLast: unknownSize,
		place: lease.At(s.Store(), s.ID()), count: newCounting(o.Counter), opts: o,
		onEvent: o.Events, hasListeners: func() bool { return o.Events != nil },
	}, nil
}

// check refuses options that cannot work and fills in the defaults.
func (o *KeeperOptions) check() error {
	if err := provider.CheckThinking(o.Thinking); err != nil {
		return err
	}
	c := &o.Compaction
	for name, n := range map[string]int{
		"MaxTokens": o.MaxTokens, "Boundary": o.Boundary, "Compaction.Window": c.Window, "Compaction.Reserve": c.Reserve, "Compaction.Keep": c.Keep, "Compaction.MaxSummary": c.MaxSummary,
	} {
		if n < 0 {
			return invalid("%s must not be negative", name)
		}
	}
	o.Draft = cmp.Or(o.Draft, 500*time.Millisecond)
	return provider.CheckTools(o.Tools)
}

// Begin takes the session for some work; End releases it. The context that it returns ends
// with ctx, with End, or when another program has taken the session over because this one was
// silent for too long: let the tools use it. While another works on the session, the error is
// a *lease.HeldError that says who it is; see KeeperOptions.Wait.
func (k *Keeper) Begin(ctx context.Context) (context.Context, error) {
	k.working.Lock()
	defer k.working.Unlock()
	if k.release != nil {
		return nil, ErrBusy
	}
	ctx, stop := context.WithCancelCause(ctx)
	release, err := k.acquire(ctx, stop)
	if err != nil {
		stop(nil)
		return nil, err
	}
	k.sent, k.handed = nil, make(map[string]*Pending)
	k.release = func() {
		release()
		stop(nil)
	}
	if err := k.catchUp(); err != nil {
		k.release()
		k.release = nil
		return nil, err
	}
	return ctx, nil
}

// acquire takes the lease for some work, which ctx ends. The caller calls release.
func (k *Keeper) acquire(ctx context.Context, stop context.CancelCauseFunc) (release func(), err error) {
	k.ctx, k.stop = ctx, stop
	take := k.place.Take
	if k.opts.Wait {
		take = k.place.Wait
	}
	if k.lease, err = take(ctx, stop); err != nil {
		return nil, err
	}
	k.holds.Store(true)
	k.offer, k.offerSum, k.unanswered, k.announced = nil, "", 0, ""
	k.conflicted.Store(false)
	return func() {
		// If it fails, others have to wait until the lease runs out. The work is over anyway.
		_ = k.lease.Release(context.WithoutCancel(ctx))
		k.holds.Store(false)
	}, nil
}

// End releases the session, even if something is still open: Restore finds that. Without
// Begin it does nothing.
func (k *Keeper) End() error {
	k.working.Lock()
	defer k.working.Unlock()
	if k.release == nil {
		return nil
	}
	k.arriving.end()
	err := k.recordNotAsked("the work ended", nil)
	k.release()
	k.release = nil
	return err
}

// whileWorking calls f while work is under way.
func (k *Keeper) whileWorking(f func() error) error {
	k.working.Lock()
	defer k.working.Unlock()
	if k.release == nil {
		return invalid("no work is under way: call Begin first")
	}
	return f()
}

// unlessCancelled is whileWorking, unless the context of the work has ended.
func (k *Keeper) unlessCancelled(f func() error) error {
	return k.whileWorking(func() error {
		if k.ctx.Err() != nil {
			return context.Cause(k.ctx)
		}
		return f()
	})
}

// Prompt keeps what the user says. Calls of earlier turns that have no result get one that
// says they were interrupted.
func (k *Keeper) Prompt(content ...session.Content) error {
	if err := checkPrompt(content); err != nil {
		return err
	}
	return k.unlessCancelled(func() error {
		clear(k.handed)
		return k.prompt(content)
	})
}

// Restore returns what is left to do after the last work stopped, perhaps because its program
// died: calls to run, after which the model is asked. open is false if there is nothing.
// Calls that were started and may not be repeated get a result that says they were
// interrupted. One in the state CallWaiting must not run before a person has approved it. An
// answer that broke off becomes a branch.
func (k *Keeper) Restore() (calls []Pending, open bool, err error) {
	err = k.unlessCancelled(func() error {
		var pending []Pending
		if pending, open, err = k.restore(); err == nil {
			calls, err = k.handOut(pending)
		}
		return err
	})
	return calls, open, err
}

// Context returns what to send to the model next. The caller must not change it. All calls
// must have their results.
func (k *Keeper) Context() (*session.Context, error) {
	var c *session.Context
	err := k.unlessCancelled(func() error {
		for id := range k.handed {
			return invalid("the model cannot be asked while call %q has no result", id)
		}
		r, err := k.next()
		if err != nil {
			return err
		}
		c, k.sent = r.c, r
		r.Request = provider.Request{
			Entries: c.Entries, Session: k.s.ID(), Thinking: thinking(k.opts.Thinking, c), MaxTokens: k.opts.MaxTokens,
		}
		return nil
	})
	return c, err
}

// Draft keeps the next piece of the text of an answer, within the time that
// KeeperOptions.Draft says.
func (k *Keeper) Draft(text string) error {
	return k.whileWorking(func() error {
		if k.sent == nil {
			return errNotAsked
		}
		k.addToDraft(text)
		return nil
	})
}

var errNotAsked = invalid("the model was not asked: call Context first")

// answered ends the wait for an answer and calls f to keep it.
func (k *Keeper) answered(f func(*request) error) error {
	return k.whileWorking(func() error {
		r := k.sent
		if r == nil {
			return errNotAsked
		}
		k.arriving.end()
		k.sent = nil
		return f(r)
	})
}

// Answer keeps a whole answer of the model and returns the calls in it that may run. Their
// ids are those of the log, where they are unique within the answer. The others have their
// results: if StopReason says that the answer was cut off, no call of it may run. open is
// false if the model is done; otherwise it is asked again, after the calls.
func (k *Keeper) Answer(m session.MessageEntry) (calls []Pending, open bool, err error) {
	if err := checkStop(&m); err != nil {
		return nil, false, err
	}
	m.Role = session.RoleAssistant
	m.Provider, m.Model = cmp.Or(m.Provider, k.opts.Model.Provider), cmp.Or(m.Model, k.opts.Model.Model)
	err = k.answered(func(r *request) error {
		_, pending, err := k.keep(r, &m, func([]Pending) []Pending { return nil })
		if err == nil {
			calls, err = k.handOut(pending)
		}
		open = len(pending) > 0 || m.StopReason == provider.StopPause && len(m.Content) > 0
		return err
	})
	return calls, open, err
}

// checkStop refuses a reason that is not known if it decides about calls: they would not run,
// and the loop would not learn why.
func checkStop(m *session.MessageEntry) error {
	switch m.StopReason {
	case provider.StopMaxTokens, provider.StopRefusal, provider.StopCancelled, provider.StopFailed:
		return nil
	}
	if !provider.IsCutOff(m.StopReason) || !slices.ContainsFunc(m.Content, func(c session.Content) bool { return c.ToolUse != nil }) {
		return nil
	}
	return invalid("the stop reason %q of an answer with calls is unknown: use provider.StopToolUse if they are whole, or provider.StopMaxTokens if not", m.StopReason)
}

// handOut returns the calls that may run, and writes results for the others.
func (k *Keeper) handOut(pending []Pending) ([]Pending, error) {
	var calls []Pending
	var refused []answered
	k.unanswered = len(pending)
	clear(k.handed)
	for i := range pending {
		p := &pending[i]
		repeatable := k.opts.Repeatable != nil && k.opts.Repeatable(p.Call)
		why := whyNotRun(p, broken(p), repeatable)
		if why == "" && !p.ours && !p.approved {
			why = foreignText // this program asks nobody
		}
		if why != "" {
			refused = append(refused, answersTo(why, *p)...)
			continue
		}
		k.handed[p.ID] = p
		calls = append(calls, *p)
	}
	return calls, k.answer(refused...)
}

// Failed keeps the part of an answer that arrived before it broke off, or nil, and the cause. If
// the model is asked again, that is a branch of its own.
func (k *Keeper) Failed(m *session.MessageEntry, cause error, again bool) error {
	if cause == nil {
		return invalid("Failed needs the error that ended the answer")
	}
	return k.answered(func(r *request) error {
		response := &provider.Response{Partial: true}
		if m != nil {
			part := *m
			part.Role, response.Message = session.RoleAssistant, &part
		}
		if again {
			return k.branchOff(r, response, cause)
		}
		if _, err := k.keepPartial(r, response, cause); err != cause {
			return err
		}
		return nil
	})
}

// ToolStart records that calls run from now on. After an error they must not run: another
// program may have taken the session over.
func (k *Keeper) ToolStart(ids ...string) error {
	return k.unlessCancelled(func() error {
		var calls []Pending
		for _, id := range ids {
			p := k.handed[id]
			if p == nil || p.started {
				return invalid("no call %q waits to be started", id)
			}
			calls = append(calls, *p)
		}
		if err := k.markRunning(calls); err != nil {
			return err
		}
		for i, id := range ids {
			k.handed[id].started = true
			k.publish(Event{Type: ToolStart, Call: &calls[i].Call})
		}
		return nil
	})
}

// markRunning says in the log that calls run, before they do.
func (k *Keeper) markRunning(calls []Pending) error {
	if err := k.mark(CallRunning, calls); err != nil {
		return err
	}
	// If the lease is still ours, a loop that takes it over will read what we marked.
	return k.lease.Check(context.WithoutCancel(k.ctx))
}

// ToolEnd keeps the result of a call. A call that the loop decides not to run needs a result
// too, which says so.
func (k *Keeper) ToolEnd(id string, r Result) error {
	return k.whileWorking(func() error {
		p := k.handed[id]
		if p == nil {
			return invalid("no call %q waits for a result", id)
		}
		err := k.answer(answered{Pending: *p, result: r})
		if err == nil {
			delete(k.handed, id)
		}
		return err
	})
}

// Compact replaces the beginning of the conversation by a summary now: see Agent.Compact.
func (k *Keeper) Compact(instructions string) (done *Compacted, err error) {
	err = k.unlessCancelled(func() error {
		if k.opts.Compaction.Model == nil {
			return errNoSummaries
		}
		done, err = k.compact(reasonAsked, instructions)
		return err
	})
	return done, err
}

// Branch goes back to an entry, so that the conversation continues from there, perhaps with a
// summary of what is left: see Agent.Branch.
func (k *Keeper) Branch(entryID string, summarise bool) error {
	return k.unlessCancelled(func() error {
		if summarise && k.opts.Compaction.Model == nil {
			return errNoSummaries
		}
		clear(k.handed)
		return k.branch(entryID, summarise)
	})
}

var errNoSummaries = invalid("there is no model that writes summaries: see KeeperOptions.Compaction")

// publish passes an event on.
func (k *Keeper) publish(e Event) {
	e.Session = k.s.SessionOf("")
	if k.onEvent != nil {
		k.onEvent(e)
	}
}

// bill records what a response cost.
func (k *Keeper) bill(u *session.Usage) {
	if k.onUsage != nil {
		k.onUsage(u)
	}
}
