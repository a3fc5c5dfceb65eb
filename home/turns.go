package home

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/lease"
)

// Turns are the operations on the turns of conversations. A turn that they begin belongs to the
// home: it continues when the caller goes away, and ends with Close. One of a Chat ends with the
// chat.
type Turns struct{ home *Home }

// TurnOptions say how a turn runs.
type TurnOptions struct {
	// ChatRequest says in which conversation, and with which model. A turn has tools only if
	// the request names some, or servers; then the rules and servers of the settings and of a
	// trusted project hold as in a chat. A Chat without any has those of the settings. See
	// Confine.
	ChatRequest
	// Questions says what happens to calls that need approval. Default: AskListeners.
	Questions Questions `json:"questions,omitempty"`
	// Attached stops the turn when the caller no longer waits for it. Default: it continues,
	// and Watch listens to it again. A Chat ignores it: its turns end with the context or the chat.
	Attached bool `json:"attached,omitempty"`
}

// Questions says what happens to calls that need approval.
type Questions string

// What may happen to them.
const (
	AskListeners Questions = "ask"   // they wait for Approve while there is a listener, and are left for later otherwise
	AskAnyone    Questions = "wait"  // they wait for Approve even while there is no listener: one may come
	LeaveThem    Questions = "later" // they are left for later: the turn ends, and Approve and Resume continue it
	DenyThem     Questions = "deny"  // they are refused; the model learns that there is no one to ask
)

// PromptRequest is what a person says to a model, and in which conversation.
type PromptRequest struct {
	TurnOptions
	// Text and Content are the message. Content, for images and files, goes before the text.
	Text    string            `json:"text,omitempty"`
	Content []session.Content `json:"content,omitempty"`
}

// ResumeTurnRequest says which conversation to continue.
type ResumeTurnRequest struct {
	TurnOptions
	// Again lets the model answer the last turn again, on a new branch. Default: the
	// unfinished turn continues.
	Again bool `json:"again,omitempty"`
}

// TurnResult is how a turn ended.
type TurnResult struct {
	Streamed
	Session string `json:"session"` // the conversation
	agent.Outcome
}

// TurnEvent is an event of a turn, in a form for any client. The numbers of events rise from
// turn to turn, even after the home was closed. Three types have more than the agent's:
// turn_start has Facts, tool_waiting has Question, and notice is a Notice.
type TurnEvent struct {
	agent.Event
	Error    *ErrorInfo    `json:"error,omitempty"`
	Facts    *TurnFacts    `json:"facts,omitempty"`
	Question *TurnQuestion `json:"question,omitempty"`
	Notice   *Notice       `json:"notice,omitempty"`
}

// TurnNotice is the type of an event with a Notice.
const TurnNotice agent.EventType = "notice"

// TurnFacts say which model answers in a turn, and with which tools.
type TurnFacts struct {
	Provider string    `json:"provider"`
	Model    string    `json:"model"`
	From     ModelFrom `json:"from"`          // who chose it
	Was      string    `json:"was,omitempty"` // the model that the conversation had before
	Dir      string    `json:"dir,omitempty"` // where tools work
	Tools    []string  `json:"tools,omitempty"`
	// Warnings say what is missing: see Chat.Warnings. Untrusted is the project whose files
	// are not used, because they are not trusted.
	Warnings  []string `json:"warnings,omitempty"`
	Untrusted *Project `json:"untrusted,omitempty"`
}

// TurnQuestion is what the person who decides about a call should know besides the call.
type TurnQuestion struct {
	Dir string `json:"dir"` // where it would work
	// Rules would allow it and calls like it; NoRules is why there are none.
	Rules   []string `json:"rules,omitempty"`
	NoRules string   `json:"no_rules,omitempty"`
	// Edits are the changes to files that it would make, with the numbers of the lines and the
	// lines around them, if they are known.
	Edits []render.Edit `json:"edits,omitempty"`
}

// Prompt says something in a conversation and lets the model answer.
func (t *Turns) Prompt(ctx context.Context, r PromptRequest, send func(TurnEvent) error) (*TurnResult, error) {
	return follow(ctx, t.home, "turns.prompt", r, send, t.prompt)
}

func (t *Turns) prompt(ctx context.Context, r PromptRequest, send func(TurnEvent) error) (*TurnResult, error) {
	content, err := asPrompt(r.Text, r.Content)
	if err != nil {
		return nil, err
	}
	return t.runTurn(ctx, "prompt", &r.TurnOptions, send, func(ctx context.Context, a *agent.Agent) (*agent.Outcome, error) {
		return a.Send(ctx, content...)
	})
}

// Resume continues an unfinished turn: after a crash, an error, or decisions about calls that
// waited.
func (t *Turns) Resume(ctx context.Context, r ResumeTurnRequest, send func(TurnEvent) error) (*TurnResult, error) {
	return follow(ctx, t.home, "turns.resume", r, send, t.resume)
}

func (t *Turns) resume(ctx context.Context, r ResumeTurnRequest, send func(TurnEvent) error) (*TurnResult, error) {
	if r.Session == "" {
		return nil, wrong("session", "{session} must say which conversation to continue")
	}
	return t.runTurn(ctx, "resume", &r.TurnOptions, send, resuming(r.Again))
}

func resuming(again bool) turnFunc {
	return func(ctx context.Context, a *agent.Agent) (*agent.Outcome, error) {
		if again {
			return a.Retry(ctx)
		}
		return a.Resume(ctx)
	}
}

// WatchRequest says which turn to listen to.
type WatchRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
	// After is the number of the last event that the caller has. Default: none.
	After int64 `json:"after,omitempty"`
}

// Watch sends the events of the turn that runs in a conversation, or that ended a few minutes
// ago, from its beginning or after the last one that the caller has, and waits for its end.
func (t *Turns) Watch(ctx context.Context, r WatchRequest, send func(TurnEvent) error) (*TurnResult, error) {
	if t.home.turns.get(r.Session).isRunning() { // see callTurn
		return t.watch(ctx, r, send)
	}
	return follow(ctx, t.home, "turns.watch", r, send, t.watch)
}

func (t *Turns) watch(ctx context.Context, r WatchRequest, send func(TurnEvent) error) (*TurnResult, error) {
	if err := notNegative("after", r.After); err != nil {
		return nil, err
	}
	run, name, err := t.runOf(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	if run == nil {
		return nil, &session.Error{
			Op: "watch", Name: name, Kind: session.ErrNotExist, Err: errors.New("no turn runs there, and none ended in the last minutes"),
			Hint: "read the entries: they have what was said",
		}
	}
	return run.listen(ctx, r.After, send)
}

// ApproveRequest decides about a call that needs approval.
type ApproveRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
	Call    string `json:"call"`    // its id
	// Decision is whether it may run. With Rules it may be missing: then they decide, and a call
	// that they do not allow still waits.
	Decision agent.Decision `json:"decision,omitempty"`
	Reason   string         `json:"reason,omitempty"` // why it is denied, for the model
	// Input are the arguments with which the call is allowed. Default: the model's.
	Input json.RawMessage `json:"input,omitempty"`
	// Rules say which other calls are allowed from now on, until the turn ends, or its chat.
	Rules []string `json:"rules,omitempty"`
}

// ApproveResult says what became of a decision.
type ApproveResult struct {
	// Running says that the turn which asked continues. Otherwise the decision is in the log,
	// and Resume continues the turn.
	Running bool `json:"running"`
	// Waiting says that the call still waits, because Rules hold now but do not allow it.
	Waiting bool `json:"waiting,omitempty"`
}

// Approve decides about a call of the running turn, or of one that ended because there was no
// one to decide.
func (t *Turns) Approve(ctx context.Context, r ApproveRequest) (*ApproveResult, error) {
	return callTurn(ctx, t.home, "turns.approve", r.Session, r, t.approve)
}

func (t *Turns) approve(ctx context.Context, r ApproveRequest) (*ApproveResult, error) {
	decision, err := r.decision()
	if err != nil {
		return nil, err
	}
	if isConfined(ctx) && (r.Decision == agent.Allow || len(r.Rules) > 0) {
		return nil, confined("decision")
	}
	run, name, err := t.runOf(ctx, r.Session)
	switch {
	case err != nil:
		return nil, err
	case run.isRunning():
		return run.answer(&r, decision)
	case len(r.Rules) > 0:
		return nil, wrong("rules", "no turn runs that could keep {rules}; give them when it is resumed, as {allow}")
	}
	t.home.beforeWriting(ctx)
	return &ApproveResult{}, t.withAgent(ctx, name, func(a *agent.Agent) error { return a.Decide(r.Call, decision) })
}

// decision returns the decision in the agent's form.
func (r *ApproveRequest) decision() (agent.Decision, error) {
	switch {
	case r.Call == "":
		return "", wrong("call", "{call} must say which call is meant")
	case r.Decision == "" && len(r.Rules) > 0 && r.Reason == "" && len(r.Input) == 0:
		return "", nil
	case !slices.Contains([]agent.Decision{agent.Allow, agent.Deny, agent.Later}, r.Decision):
		return "", wrong("decision", "{decision} is %q; it must be %s, %s or %s", r.Decision, agent.Allow, agent.Deny, agent.Later)
	case r.Reason != "" && r.Decision != agent.Deny:
		return "", wrong("reason", "{reason} is for a call that is denied")
	case len(r.Input) > 0 && r.Decision != agent.Allow:
		return "", wrong("input", "{input} is for a call that is allowed")
	case len(r.Rules) > 0 && r.Decision != agent.Allow:
		return "", wrong("rules", "{rules} are for a call that is allowed")
	case r.Reason != "":
		return r.Decision.Because(r.Reason), checkUTF8("reason", r.Reason)
	case len(r.Input) > 0:
		return r.Decision.With(r.Input), nil
	}
	return r.Decision, nil
}

// SteerRequest is what a person says to a model while it works.
type SteerRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
	// Text and Content are the message. Content, for images and files, goes before the text.
	Text    string            `json:"text,omitempty"`
	Content []session.Content `json:"content,omitempty"`
	// After says that it can wait until the model is done; the turn then continues with it.
	// Default: the model gets it with the results of the calls that are under way.
	After bool `json:"after,omitempty"`
}

// SteerResult has the entry with the queued words.
type SteerResult struct {
	Entry string `json:"entry"`
}

// Steer says something to the model while it works, in this home or in another program. It is
// in the log when Steer returns.
func (t *Turns) Steer(ctx context.Context, r SteerRequest) (*SteerResult, error) {
	return callTurn(ctx, t.home, "turns.steer", r.Session, r, t.steer)
}

func (t *Turns) steer(ctx context.Context, r SteerRequest) (*SteerResult, error) {
	content, err := asPrompt(r.Text, r.Content)
	if err != nil {
		return nil, err
	}
	run, name, err := t.runOf(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	if isConfined(ctx) && run.mayAct() {
		return nil, confined("session")
	}
	t.home.beforeWriting(ctx)
	result := &SteerResult{}
	err = t.withWorker(ctx, run, name, func(a *agent.Agent) (err error) {
		say := a.Steer
		if r.After {
			say = a.FollowUp
		}
		result.Entry, err = say(ctx, content...)
		return err
	})
	if errors.Is(err, agent.ErrIdle) {
		err = &session.Error{
			Op: "steer", Name: name, Kind: session.ErrConflict, Err: errors.New("no turn is running there"),
			Hint: "say it in a new turn",
		}
	}
	return result, err
}

// TakeBackResult has what was taken back.
type TakeBackResult struct {
	Queued []session.Queued `json:"queued"`
}

// TakeBack takes back what Steer said and the model has not heard yet.
func (t *Turns) TakeBack(ctx context.Context, r SessionRequest) (*TakeBackResult, error) {
	return callTurn(ctx, t.home, "turns.take_back", r.Session, r, t.takeBack)
}

func (t *Turns) takeBack(ctx context.Context, r SessionRequest) (*TakeBackResult, error) {
	run, name, err := t.runOf(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	t.home.beforeWriting(ctx)
	result := &TakeBackResult{}
	return result, t.withWorker(ctx, run, name, func(a *agent.Agent) error {
		queued, err := a.TakeBack(ctx)
		result.Queued = orEmpty(queued)
		return err
	})
}

// CancelResult says whether there was a turn to stop.
type CancelResult struct {
	Stopped bool `json:"stopped"`
}

// Cancel stops the turn that runs in a conversation, and waits for its end. What has arrived is
// kept.
func (t *Turns) Cancel(ctx context.Context, r SessionRequest) (*CancelResult, error) {
	return callTurn(ctx, t.home, "turns.cancel", r.Session, r, t.cancel)
}

func (t *Turns) cancel(ctx context.Context, r SessionRequest) (*CancelResult, error) {
	run, name, err := t.runOf(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	if run.isRunning() {
		run.Stop()
		return &CancelResult{Stopped: true}, run.wait(ctx)
	}
	return &CancelResult{}, t.withAgent(ctx, name, func(a *agent.Agent) error {
		holder, err := a.Holder(ctx)
		if err != nil {
			return err
		}
		return (&TurnStatus{Session: name, Working: holder}).Held()
	})
}

// TurnStatus is the state of a conversation's turn.
type TurnStatus struct {
	Session string `json:"session"`
	// Running says that a turn of this home runs there, and Began since when. Working is the
	// program that has a turn there, this one or another.
	Running bool          `json:"running"`
	Began   time.Time     `json:"began,omitzero"`
	Working *lease.Holder `json:"working,omitempty"`
	// Asked is the call about which the turn asks now. Pending are all calls without a result,
	// with how far each has come.
	Asked   *agent.Call     `json:"asked,omitempty"`
	Pending []agent.Pending `json:"pending,omitempty"`
	// Unfinished says that turns.resume has something to do. Queued is what the model has not
	// heard.
	Unfinished bool             `json:"unfinished"`
	Queued     []session.Queued `json:"queued,omitempty"`
	// Draft is the part of an answer that had arrived when its program died.
	Draft string `json:"draft,omitempty"`
}

// Held returns a *lease.HeldError if a program has a turn there.
func (s *TurnStatus) Held() error {
	if s.Working == nil {
		return nil
	}
	return &lease.HeldError{Name: s.Session, Holder: *s.Working}
}

// Status describes the turn of a conversation: whether one runs, what it waits for, and what
// an unfinished one has left.
func (t *Turns) Status(ctx context.Context, r SessionRequest) (*TurnStatus, error) {
	return callTurn(ctx, t.home, "turns.status", r.Session, r, t.status)
}

func (t *Turns) status(ctx context.Context, r SessionRequest) (*TurnStatus, error) {
	var s *TurnStatus
	read := func(a *agent.Agent) (err error) {
		if s.Working, err = a.Holder(ctx); err != nil {
			return err
		}
		if s.Pending, err = a.Pending(); err != nil {
			return err
		}
		if s.Working == nil { // otherwise it is not known
			if s.Unfinished, err = a.Unfinished(); err != nil {
				return err
			}
			if s.Draft, err = a.Draft(); err != nil {
				return err
			}
		}
		s.Queued, err = a.Queued()
		return err
	}
	err := t.home.read(ctx, OpenRequest{Session: r.Session}, func(c *Conversation) error {
		run := t.home.turns.get(c.Handle)
		s = run.status(c.Handle)
		if done, err := run.with(read); done {
			return err
		}
		return withAgentOf(c, read)
	})
	return s, err
}

// RunningResult lists the turns that run.
type RunningResult struct {
	Turns []TurnStatus `json:"turns"` // without what is only in the log
}

// Running lists the turns of this home that run now, the oldest first. For a home elsewhere that
// is without those of the chats here.
func (t *Turns) Running(ctx context.Context) (*RunningResult, error) {
	return ask(ctx, t.home, "turns.running", t.running)
}

func (t *Turns) running(ctx context.Context) (*RunningResult, error) {
	result := &RunningResult{Turns: []TurnStatus{}}
	for name, run := range t.home.turns.all() {
		// A home may be a view in which not every session exists.
		if _, err := t.home.resolve(ctx, name); err == nil && run.isRunning() {
			result.Turns = append(result.Turns, *run.status(name))
		}
	}
	slices.SortFunc(result.Turns, func(a, b TurnStatus) int { return a.Began.Compare(b.Began) })
	return result, ctx.Err()
}

// callTurn is call for an operation on a turn: that of a chat runs here, wherever the home is. It
// is found by the name that the home gives its session, which the events of the turn have.
func callTurn[R, T any](ctx context.Context, h *Home, op, name string, r R, here func(context.Context, R) (*T, error)) (*T, error) {
	if h.turns.get(name).isRunning() {
		return here(ctx, r)
	}
	return call(ctx, h, op, r, here)
}

// runOf returns the last turn of a conversation, or nil, and the conversation's name.
func (t *Turns) runOf(ctx context.Context, given string) (*Turn, string, error) {
	name, _, err := t.home.chain(ctx, given)
	if err != nil {
		return nil, "", err
	}
	return t.home.turns.get(name), name, nil
}

// withWorker calls f with the agent of a turn if it runs, or else with an idle one.
func (t *Turns) withWorker(ctx context.Context, run *Turn, name string, f func(*agent.Agent) error) error {
	if done, err := run.with(f); done {
		return err
	}
	return t.withAgent(ctx, name, f)
}

// withAgent calls f with an agent for a conversation in which no turn of this home runs. It
// never asks its model.
func (t *Turns) withAgent(ctx context.Context, name string, f func(*agent.Agent) error) (err error) {
	c, err := t.home.openWhole(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return withAgentOf(c, f)
}

// withAgentOf is withAgent for a conversation that is open.
func withAgentOf(c *Conversation, f func(*agent.Agent) error) (err error) {
	a, err := agent.New(c.Session, agent.Options{Model: &offline.Model{}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	return f(a)
}

// ErrStopped is the error of a turn that a person stopped. Its text goes into the log, for
// people and models. It matches context.Canceled.
var ErrStopped error = stopped{}

type stopped struct{}

func (stopped) Error() string        { return "stopped by the user" }
func (stopped) Is(target error) bool { return target == context.Canceled }
