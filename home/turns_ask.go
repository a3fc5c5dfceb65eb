package home

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/session"
)

// notAsked is the decision about a call that needs approval if there is no one to ask. It tells
// the model why the call did not run.
var notAsked = agent.Deny.Because("it needs approval, and this program cannot ask anyone: work without it, or say what should be allowed")

// approve is the agent's Approve: it decides about one call at a time. It waits for the
// operation Approve as long as a listener could decide, or may come.
func (r *Turn) approve(ctx context.Context, call agent.Call) (agent.Decision, error) {
	if ctx.Err() != nil { // the turn may be another one by now
		return agent.Later, context.Cause(ctx)
	}
	in := r.session()
	if call.Session == in { // listeners do not get the events of a task
		select {
		case <-r.passed:
		case <-ctx.Done():
			return agent.Later, context.Cause(ctx)
		}
	}
	q := &turnQuestion{call: call, answer: make(chan agent.Decision, 1)}
	r.ask(in, q)
	switch r.options.Questions {
	case LeaveThem:
		return r.withdraw(q, agent.Later), nil
	case DenyThem:
		return r.withdraw(q, notAsked), nil
	}
	for {
		heard, changed := r.hasListeners()
		if !heard && r.options.Questions != AskAnyone {
			return r.withdraw(q, agent.Later), nil
		}
		select {
		case decision := <-q.answer:
			return decision, nil
		case <-ctx.Done():
			return r.withdraw(q, agent.Later), context.Cause(ctx)
		case <-changed:
		}
	}
}

// session returns the session that the turn writes to, or "" if it has ended.
func (r *Turn) session() string {
	r.using.RLock()
	defer r.using.RUnlock()
	if r.worker == nil {
		return ""
	}
	return r.worker.Session().SessionOf("")
}

// ask sends a question to the listeners. The call may be that of a task: it is decided about in the
// session of the turn, too.
func (r *Turn) ask(in string, q *turnQuestion) {
	r.mu.Lock()
	box, about := r.box, &TurnQuestion{Dir: r.facts.Dir}
	r.question = q
	r.mu.Unlock()
	if box == nil || slices.ContainsFunc(r.own, func(t agent.Tool) bool { return t.Name == q.call.Name }) {
		about.NoRules = errOwnTool.Error()
	} else {
		about.Edits = box.edits(q.call)
		rules, err := box.rulesFor(q.call)
		if about.Rules = rules; err != nil {
			about.NoRules = err.Error()
		}
	}
	r.record(TurnEvent{
		Event:    agent.Event{Type: agent.ToolWaiting, Time: time.Now(), Session: in, Call: &q.call},
		Question: about,
	})
}

// errOwnTool says why there are no rules for a tool that a program has given to its chat.
var errOwnTool = errors.New("no rule can be given for a tool of the program itself")

// withdraw takes a question back. It returns the answer if there is one, or else a default.
func (r *Turn) withdraw(q *turnQuestion, otherwise agent.Decision) agent.Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.question == q {
		r.question = nil
	}
	select {
	case decision := <-q.answer:
		return decision
	default:
		return otherwise
	}
}

// answer answers the question that the turn asks now. Without a decision the rules make it.
func (r *Turn) answer(a *ApproveRequest, d agent.Decision) (*ApproveResult, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.question == nil || r.question.call.ID != a.Call {
		return nil, &session.Error{Op: "approve", Name: r.name, Kind: session.ErrNotExist, Err: fmt.Errorf("the turn is not asking about a call %q", a.Call)}
	}
	if len(a.Rules) > 0 {
		if r.box == nil {
			return nil, wrongAs("rules", errOwnTool)
		}
		if _, err := r.box.allow(a.Rules...); err != nil {
			return nil, wrongAs("rules", err)
		}
	}
	if d == "" {
		if !r.box.allows(r.question.call) {
			return &ApproveResult{Running: true, Waiting: true}, nil
		}
		d = agent.Allow
	}
	r.question.answer <- d
	r.question = nil // it is answered only once
	return &ApproveResult{Running: true}, nil
}

// Stop stops the turn. What has arrived is kept.
func (r *Turn) Stop() { r.stop(ErrStopped) }

// isRunning reports whether there is a turn that has not ended.
func (r *Turn) isRunning() bool { return r != nil && !r.isDone() }

// mayAct reports whether the model of the conversation may have tools now: those of the turn, or
// in a turn of another program.
func (r *Turn) mayAct() bool { return !r.isRunning() || !r.bare }

// wait waits until the turn has ended.
func (r *Turn) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// status returns the status of a conversation without reading its log. There may be no turn.
func (r *Turn) status(name string) *TurnStatus {
	s := &TurnStatus{Session: name}
	if !r.isRunning() {
		return s
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Running, s.Began = true, r.began
	if r.question != nil {
		s.Asked = &r.question.call
	}
	return s
}

// use sets the agent of the turn. After use(nil) returns, the old agent is no longer in use.
func (r *Turn) use(worker *agent.Agent) {
	r.using.Lock()
	defer r.using.Unlock()
	r.worker = worker
}

// with calls f with the agent of the turn, if there is one.
func (r *Turn) with(f func(*agent.Agent) error) (done bool, err error) {
	if r == nil {
		return false, nil
	}
	r.using.RLock()
	defer r.using.RUnlock()
	if r.worker == nil {
		return false, nil
	}
	return true, f(r.worker)
}
