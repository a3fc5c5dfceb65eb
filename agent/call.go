package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// The results of calls that did not run, or did not finish.
const (
	interruptedText = "[interrupted: the program ended while the tool was running; nobody knows how far it came, and what it started may still be running]"
	supersededText  = "[interrupted: the tool did not return a result before the conversation went on]"
	cancelledText   = "[cancelled by the user]"
	notRunText      = "[not run: the user cancelled the turn]"
	deniedText      = "[denied: the user did not allow this call]"
	cutOffText      = "[not run: the answer was cut off, so the call may not be whole; make it again, and if it is long, in smaller pieces]"
	elsewhereText   = "[not run: the call was started before, on another branch or by another program]"
)

// callsOf returns the calls in a message of the model, as they begin.
func (t *turn) callsOf(e *session.Entry) []Pending {
	var calls []Pending
	for i := range e.Message.Content {
		if use := e.Message.Content[i].ToolUse; use != nil {
			calls = append(calls, t.pendingCall(e, use))
		}
	}
	return calls
}

func (t *turn) pendingCall(e *session.Entry, use *session.ToolUseContent) Pending {
	input, err := use.InputJSON()
	if err != nil {
		input = nil // refuse says what is wrong with it
	}
	call := Call{ID: use.ID, Name: use.Name, Input: input, Session: t.s.ID()}
	return Pending{Call: call, Entry: e.ID, State: CallNew, cutOff: provider.IsCutOff(e.Message.StopReason)}
}

// refuse returns why a call cannot run even if it is approved, or "".
func (t *turn) refuse(p *Pending) string {
	if p.cutOff {
		return cutOffText
	}
	if t.tools[p.Name] == nil {
		names := make([]string, len(t.opts.Tools))
		for i := range t.opts.Tools {
			names[i] = t.opts.Tools[i].Name
		}
		if len(names) == 0 {
			return fmt.Sprintf("there is no tool %q: no tools are enabled", p.Name)
		}
		return fmt.Sprintf("there is no tool %q; the tools are %s", p.Name, strings.Join(names, ", "))
	}
	if !rawjson.Valid(p.Input) || rawjson.Kind(p.Input) != 'o' {
		return "the arguments must be a JSON object"
	}
	return ""
}

// asks reports whether a call must be approved, and notes why.
func (t *turn) asks(p *Pending) (ask bool) {
	f := t.tools[p.Name].Ask
	if f == nil {
		return false
	}
	defer func() {
		if v := recover(); v != nil { // if Ask fails, a person decides
			t.logPanic(p.Call, v)
			ask, p.Reason = true, fmt.Sprintf("the check of the call panicked: %v", v)
		}
	}()
	ask, p.Reason = f(p.Call)
	return ask
}

// isApproved reports whether a call need not be asked about any more. An approval that
// only the log has counts only if there is no one to ask. Another program may have
// written the log, so a person who can be asked should decide. The same holds for a call
// that was running, which must have been approved.
func (t *turn) isApproved(p *Pending) bool {
	return p.started || t.opts.Approve == nil && (p.State == CallRunning || p.State == CallAllowed)
}

// startable returns the calls at the beginning of a list that may start at once: those
// that need no approval, as many as may run together.
func (t *turn) startable(calls []Pending) []Pending {
	n := 0
	for n < len(calls) && t.refuse(&calls[n]) == "" && !t.asks(&calls[n]) {
		n++
	}
	return calls[:t.together(calls[:n])]
}

// together returns how many calls at the beginning of a list may run together.
func (t *turn) together(calls []Pending) int {
	n := 0
	for n < len(calls) && n < t.opts.Parallel {
		if t.tools[calls[n].Name].Alone {
			return max(n, 1)
		}
		n++
	}
	return n
}

// perform gets a result for every call, and returns those that wait for approval. When
// it returns nil, the results are in the log.
func (t *turn) perform(pending []Pending) (waiting []Pending, _ error) {
	ready, asking, refused := t.triage(pending)
	if err := t.answer(refused...); err != nil {
		return nil, err
	}
	// The log says that these are running, so they must not wait for decisions about the
	// others. They come before the others in any case.
	started := 0
	for started < len(ready) && ready[started].started {
		started++
	}
	if err := t.runAll(ready[:started]); err != nil {
		return nil, err
	}
	ready = ready[started:]
	if len(asking) > 0 {
		allowed, later, err := t.decide(asking)
		if err != nil {
			return nil, err
		}
		waiting = later
		ready = append(ready, allowed...)
		order := func(p Pending) int {
			return slices.IndexFunc(pending, func(o Pending) bool { return o.ID == p.ID && o.Entry == p.Entry })
		}
		slices.SortFunc(ready, func(a, b Pending) int { return order(a) - order(b) })
	}
	return waiting, t.runAll(ready)
}

// runAll runs calls in order, as many at once as allowed. If the turn is cancelled, the
// rest get results without running.
func (t *turn) runAll(ready []Pending) error {
	for len(ready) > 0 {
		if err := t.ctx.Err(); err != nil {
			return errors.Join(err, t.answer(answersTo(ready, notRunText)...))
		}
		n := t.together(ready)
		if err := t.runGroup(ready[:n]); err != nil {
			return err
		}
		ready = ready[n:]
	}
	return nil
}

// answered is a call with its result.
type answered struct {
	Pending
	result Result
}

func answersTo(calls []Pending, text string) []answered {
	all := make([]answered, len(calls))
	for i := range calls {
		all[i] = answered{calls[i], Result{Text: text, IsError: true}}
	}
	return all
}

// triage sorts calls: some may run, some need approval, and some get a result without
// running.
func (t *turn) triage(pending []Pending) (ready, asking []Pending, refused []answered) {
	for i := range pending {
		p := pending[i]
		why := t.refuse(&p)
		switch {
		case p.overtaken:
			refused = append(refused, answersTo(pending[i:i+1], supersededText)...)
		case p.State == CallElsewhere && (why != "" || !t.tools[p.Name].Repeatable):
			refused = append(refused, answersTo(pending[i:i+1], elsewhereText)...)
		case p.State == CallRunning && !p.started && (why != "" || !t.tools[p.Name].Repeatable):
			refused = append(refused, answersTo(pending[i:i+1], interruptedText)...)
		case why != "":
			refused = append(refused, answersTo(pending[i:i+1], why)...)
		case t.isApproved(&p) || !t.asks(&p):
			ready = append(ready, p)
		default:
			asking = append(asking, p)
		}
	}
	return ready, asking, refused
}

// decide asks for decisions about calls. The log says that they wait before the first
// question, and denied calls have their results when decide returns.
func (t *turn) decide(asking []Pending) (allowed, later []Pending, _ error) {
	var unmarked []Pending
	for i := range asking {
		if asking[i].State != CallWaiting {
			asking[i].State = CallWaiting
			unmarked = append(unmarked, asking[i])
		}
	}
	if len(unmarked) > 0 {
		if _, err := t.append(callsEntry(CallWaiting, unmarked)); err != nil {
			return nil, nil, err
		}
	}
	for i := range asking {
		if i > 0 && !t.asks(&asking[i]) { // whoever approved the one before allowed this one as well
			allowed = append(allowed, asking[i])
			continue
		}
		t.publish(Event{Type: ToolWaiting, Call: &asking[i].Call})
		decision, err := t.approve(asking[i].Call)
		if err != nil {
			return nil, nil, err // it still waits, and so do the others
		}
		switch decision {
		case Allow:
			allowed = append(allowed, asking[i])
		case Deny:
			if err := t.answer(answersTo(asking[i:i+1], deniedText)...); err != nil {
				return nil, nil, err
			}
		case Later:
			later = append(later, asking[i])
		default:
			return nil, nil, badDecision(decision)
		}
	}
	return allowed, later, nil
}

func badDecision(d Decision) error {
	return invalid("there is no decision %q: it is %s, %s or %s", d, Allow, Deny, Later)
}

// approve asks Options.Approve about a call. If the turn is cancelled, it does not wait long
// for an answer.
func (t *turn) approve(call Call) (Decision, error) {
	if t.opts.Approve == nil {
		return Later, nil
	}
	type answer struct {
		decision Decision
		err      error
	}
	done := make(chan answer, 1)
	go func() {
		a := answer{Later, errors.New("the approval ended without a decision")}
		defer func() {
			if v := recover(); v != nil {
				t.logPanic(call, v)
				a = answer{Later, fmt.Errorf("the approval of call %q panicked: %v", call.ID, v)}
			}
			done <- a
		}()
		decision, err := t.opts.Approve(t.ctx, call)
		a = answer{decision, err}
	}()
	select {
	case a := <-done:
		return a.decision, a.err
	case <-t.ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case a := <-done:
		return a.decision, a.err
	case <-late.C:
		return Later, t.ctx.Err()
	}
}

// answer writes results to the log.
func (t *turn) answer(results ...answered) error {
	if len(results) == 0 {
		return nil
	}
	entries := make([]session.Entry, len(results))
	for i := range results {
		entries[i] = resultEntry(results[i].Call, results[i].result)
	}
	_, err := t.append(entries...)
	switch {
	case isUnfit(err) && len(results) > 1:
		for i := range results { // one tool's fault must not cost the others their results
			if err := t.answer(results[i]); err != nil {
				return err
			}
		}
		return nil
	case isUnfit(err):
		results[0].result = Result{Text: fmt.Sprintf("[the result of the tool cannot be kept: %v]", err), IsError: true}
		_, err = t.append(resultEntry(results[0].Call, results[0].result))
	}
	if err != nil {
		return err
	}
	for i := range results {
		t.publish(Event{Type: ToolEnd, Call: &results[i].Call, Result: &results[i].result})
	}
	return nil
}

// isUnfit reports whether the log refused an entry because of its content.
func isUnfit(err error) bool {
	return errors.Is(err, session.ErrInvalid) || errors.Is(err, session.ErrTooLarge)
}

func resultEntry(c Call, r Result) session.Entry {
	block := session.ToolResult(c.ID, r.Text, r.IsError)
	if len(r.Parts) > 0 {
		block.ToolResult.Parts = r.Parts
		block.ToolResult.Content = session.TextOf(r.Parts)
	}
	return message(&session.MessageEntry{Role: session.RoleTool, Content: []session.Content{block}})
}

// runGroup runs calls in parallel. The log says that they run before they do, and gets
// each result at once.
func (t *turn) runGroup(group []Pending) error {
	var unmarked []Pending
	for i := range group {
		if !group[i].started {
			unmarked = append(unmarked, group[i])
		}
	}
	if len(unmarked) > 0 {
		if _, err := t.append(callsEntry(CallRunning, unmarked)); err != nil {
			return err
		}
	}
	// If the lease is still ours, an agent that takes it over will read what we marked.
	if err := t.lease.Check(context.WithoutCancel(t.ctx)); err != nil {
		return err
	}
	done := make(chan answered, len(group))
	for i := range group {
		t.publish(Event{Type: ToolStart, Call: &group[i].Call})
		go func() { done <- answered{group[i], t.runCall(&group[i])} }()
	}
	var failed error
	for left := len(group); left > 0; {
		batch := []answered{<-done}
		for more := true; more && len(batch) < left; {
			select {
			case next := <-done:
				batch = append(batch, next)
			default:
				more = false
			}
		}
		left -= len(batch)
		if failed == nil { // but wait for all of them: they are still running
			failed = t.answer(batch...)
		}
	}
	return failed
}
