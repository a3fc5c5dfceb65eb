package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
)

// What the results of calls say that did not run, or not to the end.
const (
	interruptedText = "[interrupted: the program ended while the tool was running; nobody knows how far it came]"
	supersededText  = "[interrupted: the tool did not return a result before the conversation went on]"
	cancelledText   = "[cancelled by the user]"
	notRunText      = "[not run: the user cancelled the turn]"
	deniedText      = "[denied: the user did not allow this call]"
)

// grace is how long a tool may take to return after it was told to stop.
const grace = 2 * time.Second

// errTimeout ends a call that took too long.
var errTimeout = errors.New("the call took too long")

// callsOf returns the calls in a message of the model, as they begin.
func (t *turn) callsOf(e *session.Entry) []Pending {
	var calls []Pending
	for i := range e.Message.Content {
		if use := e.Message.Content[i].ToolUse; use != nil {
			calls = append(calls, t.pendingCall(e.ID, use))
		}
	}
	return calls
}

func (t *turn) pendingCall(entry string, use *session.ToolUseContent) Pending {
	input, err := use.InputJSON()
	if err != nil {
		input = nil // refuse says what is wrong with it
	}
	return Pending{Call: Call{ID: use.ID, Name: use.Name, Input: input, Session: t.s.ID()}, Entry: entry, State: CallNew}
}

// refuse returns why a call cannot run whatever anybody decides, or "".
func (t *turn) refuse(p *Pending) string {
	if t.tools[p.Name] == nil {
		names := make([]string, len(t.opts.Tools))
		for i := range t.opts.Tools {
			names[i] = t.opts.Tools[i].Name
		}
		if len(names) == 0 {
			return fmt.Sprintf("there is no tool %q, and no other either", p.Name)
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
	if f := t.tools[p.Name].Ask; f != nil {
		ask, p.Reason = f(p.Call)
	}
	return ask
}

// isApproved reports whether a call need not be asked about any more. An approval that
// only the log has counts if nobody can be asked: whoever can should decide about a
// call that comes from a log, which somebody else may have written.
func (t *turn) isApproved(p *Pending) bool {
	return p.started || p.State == CallRunning || p.State == CallAllowed && t.opts.Approve == nil
}

// startable returns the calls at the beginning of a list that may start at once: those
// that nobody must be asked about, as many as may run together.
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

// perform gets a result for every call, except for those that wait for approval, which
// it returns. When it returns nil, the results are in the log.
func (t *turn) perform(pending []Pending) (waiting []Pending, _ error) {
	ready, asking, refused := t.sort(pending)
	if err := t.answer(refused...); err != nil {
		return nil, err
	}
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
	for len(ready) > 0 {
		if err := t.ctx.Err(); err != nil {
			return nil, errors.Join(err, t.answer(answersTo(ready, notRunText)...))
		}
		n := t.together(ready)
		if err := t.runGroup(ready[:n]); err != nil {
			return nil, err
		}
		ready = ready[n:]
	}
	return waiting, nil
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

// sort says what becomes of each call: it may run, somebody must be asked, or it gets
// its result without running.
func (t *turn) sort(pending []Pending) (ready, asking []Pending, refused []answered) {
	for i := range pending {
		p := pending[i]
		why := t.refuse(&p)
		switch {
		case p.overtaken:
			refused = append(refused, answersTo(pending[i:i+1], supersededText)...)
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

// decide has somebody decide about calls. The log says that they wait before anybody is
// asked, and what was denied is answered when decide returns.
func (t *turn) decide(asking []Pending) (allowed, later []Pending, _ error) {
	var unmarked []Pending
	for i := range asking {
		if asking[i].State == CallNew {
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
		t.publish(Event{Type: ToolWaiting, Call: &asking[i].Call})
		decision := Later
		if t.opts.Approve != nil {
			var err error
			if decision, err = t.opts.Approve(t.ctx, asking[i].Call); err != nil {
				return nil, nil, err // it still waits, and so do the others
			}
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
			return nil, nil, invalid("there is no decision %q: it is %s, %s or %s", decision, Allow, Deny, Later)
		}
	}
	return allowed, later, nil
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
	if _, err := t.append(entries...); err != nil {
		return err
	}
	for i := range results {
		t.publish(Event{Type: ToolEnd, Call: &results[i].Call, Result: &results[i].result})
	}
	return nil
}

func resultEntry(c Call, r Result) session.Entry {
	block := session.ToolResult(c.ID, r.Text, r.IsError)
	if len(r.Parts) > 0 {
		block.ToolResult.Parts = r.Parts
		block.ToolResult.Content = session.TextOf(r.Parts)
	}
	return message(&session.MessageEntry{Role: session.RoleTool, Content: []session.Content{block}})
}

// runGroup runs calls side by side. The log says that they run before they do, and has
// each result as soon as there is one.
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
		if failed == nil { // but wait for all of them: they are still at work
			failed = t.answer(batch...)
		}
	}
	return failed
}

// runCall runs one call and returns its result, whatever happens.
func (t *turn) runCall(p *Pending) Result {
	tool := t.tools[p.Name]
	timeout := tool.Timeout
	if timeout == 0 {
		timeout = t.opts.ToolTimeout
	}
	ctx, cancel := context.WithTimeoutCause(t.ctx, timeout, errTimeout)
	defer cancel()
	ctx, finish := t.traceCall(ctx, p.Call)
	type returned struct {
		result Result
		err    error
	}
	done := make(chan returned, 1)
	go func() {
		var r returned
		defer func() {
			if v := recover(); v != nil {
				t.logPanic(p.Call, v)
				r = returned{err: fmt.Errorf("the tool panicked: %v", v)}
			}
			done <- r
		}()
		r.result, r.err = tool.Run(ctx, p.Call)
	}()
	var r returned
	select {
	case r = <-done:
	case <-ctx.Done():
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case r = <-done:
		case <-late.C:
			r.err = context.Cause(ctx)
		}
	}
	finish(r.err)
	return t.shorten(t.explain(ctx, r.result, r.err, timeout))
}

// explain makes a result of an error.
func (t *turn) explain(ctx context.Context, r Result, err error, timeout time.Duration) Result {
	if err == nil {
		return r
	}
	text := err.Error()
	switch {
	case t.ctx.Err() != nil:
		text = cancelledText
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), errTimeout):
		text = fmt.Sprintf("[the tool was stopped because it took longer than %s]", timeout)
	}
	if r.Text != "" {
		text = r.Text + "\n" + text
	}
	return Result{Text: text, Parts: withText(r.Parts, text), IsError: true}
}

// withText adds a text to parts, if there are any.
func withText(parts []session.Content, text string) []session.Content {
	if len(parts) == 0 {
		return nil
	}
	return append(slices.Clone(parts), session.Text(text))
}

func (t *turn) logPanic(c Call, v any) {
	if t.opts.Logger != nil {
		t.opts.Logger.Error("a tool panicked", "tool", c.Name, "call", c.ID, "panic", v, "stack", string(debug.Stack()))
	}
}

// shorten leaves out the middle of texts that are too long for a result.
func (t *turn) shorten(r Result) Result {
	r.Text = cutMiddle(r.Text, t.opts.MaxOutput)
	var parts []session.Content
	for i, part := range r.Parts {
		if part.Text != nil && len(part.Text.Content) > t.opts.MaxOutput {
			if parts == nil {
				parts = slices.Clone(r.Parts)
			}
			parts[i] = session.Text(cutMiddle(part.Text.Content, t.opts.MaxOutput))
		}
	}
	if parts != nil {
		r.Parts = parts
	}
	return r
}

// cutMiddle leaves out the middle of a text that has more than limit bytes. The end is
// worth as much as the beginning: that is where errors are.
func cutMiddle(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head, tail := limit/2, len(text)-limit/2
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[… %d of %d bytes left out …]\n%s", text[:head], tail-head, len(text), text[tail:])
}

// The members of the data of a custom entry of type session.CustomCalls.
const (
	dataState = "state"
	dataCalls = "calls"
)

// callsEntry says in the log how far calls have come.
func callsEntry(state CallState, calls []Pending) session.Entry {
	ids := make([]any, len(calls))
	for i := range calls {
		ids[i] = calls[i].ID
	}
	return session.Entry{Type: session.TypeCustom, Custom: &session.CustomEntry{
		CustomType: session.CustomCalls, Data: map[string]any{dataState: string(state), dataCalls: ids},
	}}
}

// Pending returns the calls that have no result, with how far each has come.
func (a *Session) Pending() ([]Pending, error) {
	t := &turn{Session: a, s: a.log}
	return t.pending()
}

// pending finds the calls that wait for a result. Which do is session.Pairs' to say;
// the entries after the message say how far each has come.
func (t *turn) pending() ([]Pending, error) {
	c, err := t.s.Context(session.ContextOptions{Shared: true})
	if err != nil {
		return nil, err
	}
	var pairs session.Pairs
	var added []*session.Entry
	spoken := -1
	for i := range c.Entries {
		e := &c.Entries[i]
		if strings.HasPrefix(e.ID, session.InterruptedPrefix) {
			continue // made up for the model: the call has no result
		}
		at := pairs.Add(e).Index
		if e.BeginsTurn() {
			spoken = at
		}
		added = append(added, e)
	}
	var calls []Pending
	for _, ref := range pairs.PendingCalls() {
		e := added[ref.Entry]
		p := t.pendingCall(e.ID, e.Message.Content[ref.Block].ToolUse)
		p.overtaken = spoken > ref.Entry
		calls = append(calls, p)
	}
	if len(calls) == 0 {
		return nil, nil
	}
	return calls, t.readStates(calls)
}

// readStates fills in how far calls have come.
func (t *turn) readStates(calls []Pending) error {
	path, err := t.s.OutlinePath("")
	if err != nil {
		return err
	}
	first := slices.IndexFunc(path, func(e session.Entry) bool { return e.ID == calls[0].Entry })
	var ids []string
	for i := max(first, 0); i < len(path); i++ {
		if path[i].Type == session.TypeCustom {
			ids = append(ids, path[i].ID)
		}
	}
	entries, err := t.s.Peek(ids...)
	if err != nil {
		return err
	}
	for i := range entries {
		custom := entries[i].Custom
		if custom == nil || custom.CustomType != session.CustomCalls {
			continue
		}
		state, _ := custom.Data[dataState].(string)
		named, _ := custom.Data[dataCalls].([]any)
		for j := range calls {
			if slices.Contains(named, any(calls[j].ID)) {
				calls[j].State = CallState(state)
			}
		}
	}
	return nil
}

// Decide settles a call that waits for approval. Resume then goes on. Later changes
// nothing. A call that does not wait is session.ErrNotExist.
func (a *Session) Decide(callID string, d Decision) error {
	return a.change(context.Background(), func(t *turn) error {
		pending, err := t.pending()
		if err != nil {
			return err
		}
		at := slices.IndexFunc(pending, func(p Pending) bool { return p.ID == callID && p.State == CallWaiting })
		if at < 0 {
			return &session.Error{Op: "approve", Name: t.s.ID(), Kind: session.ErrNotExist, Err: fmt.Errorf("no call %q waits for approval", callID)}
		}
		switch p := pending[at : at+1]; d {
		case Allow:
			_, err = t.append(callsEntry(CallAllowed, p))
		case Deny:
			err = t.answer(answersTo(p, deniedText)...)
		case Later:
		default:
			err = invalid("there is no decision %q: it is %s, %s or %s", d, Allow, Deny, Later)
		}
		return err
	})
}
