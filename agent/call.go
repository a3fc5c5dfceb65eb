package agent

import (
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/session"
)

// The results of calls that did not run, or did not finish. Do not reword them: readFate
// recognises some of them in logs.
const (
	interruptedText = "[interrupted: the program ended while the tool was running; it may have done all of its work, some or none, and what it started may still be running]"
	supersededText  = "[interrupted: the tool did not return a result before the conversation went on]"
	cancelledText   = "[cancelled by the user]"
	leftBehindText  = "[cancelled by the user; the tool did not stop when it was asked to, and may still be running]"
	notRunText      = "[not run: the user cancelled the turn]"
	deniedText      = "[denied: this call was not allowed]"
	cutOffText      = "[not run: the answer was cut off, so the call may not be whole; make it again, and if it is long, in smaller pieces]"
	redactedText    = "[not run: the arguments of this call were redacted before it could run, so they are not known any more; make the call again if it is still needed]"
	foreignText     = "[not run: the call was not made here: the conversation was imported or copied with it, or another program wrote it; make it again if it is still needed]"
	elsewhereText   = "[not run: the call was started before, on another branch or by another program]"
)

// callsOf returns the calls in a message of the model, as they begin.
func (k *Keeper) callsOf(e *session.Entry) []Pending {
	var calls []Pending
	for i := range e.Message.Content {
		if use := e.Message.Content[i].ToolUse; use != nil {
			calls = append(calls, pendingCall(k.s.SessionOf(""), e, use))
		}
	}
	return calls
}

func pendingCall(in string, e *session.Entry, use *session.ToolUseContent) Pending {
	input, err := use.InputJSON()
	if err != nil {
		input = nil // refuse says what is wrong with it
	}
	call := Call{ID: use.ID, Name: use.Name, Input: input, Session: in}
	return Pending{Call: call, Entry: e.ID, State: CallNew, cutOff: provider.IsCutOff(e.Message.StopReason)}
}

// broken returns why a call cannot run, whatever its tool is, or "".
func broken(p *Pending) string {
	switch {
	case p.cutOff:
		return cutOffText
	case p.found && redact.IsMarked(p.Input):
		return redactedText
	case !rawjson.Valid(p.Input) || rawjson.Kind(p.Input) != 'o':
		return "the arguments must be a JSON object"
	}
	return ""
}

// whyNotRun returns the result of a call that must not run, or "". Such a call was started or
// denied before, or why says why it cannot run. A repeatable call runs even if it was started
// before.
func whyNotRun(p *Pending, why string, repeatable bool) string {
	once := why != "" || !repeatable
	switch {
	case p.superseded:
		return supersededText
	case p.denied:
		return deniedText
	case p.State == CallElsewhere && once:
		return elsewhereText
	case p.State == CallRunning && !p.started && once:
		return interruptedText
	}
	return why
}

// refuse returns why a call cannot run even if it is approved, or "".
func (t *turn) refuse(p *Pending) string {
	if why := broken(p); why != "" {
		return why
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
	return ""
}

// asks reports whether a call must be approved, and notes why. One that was not made here needs it
// whatever the rules say: they are about what the model asks for.
func (t *turn) asks(p *Pending) (ask bool) {
	if !p.ours {
		p.Reason = "it was not made here: the conversation was imported or copied with it, or another program wrote it"
		return true
	}
	f := t.tools[p.Name].Ask
	if f == nil {
		return false
	}
	err := t.guard("the check of the call", p.Call, func() { ask, p.Reason = f(p.Call) })
	if err != nil { // if Ask fails, a person decides
		ask, p.Reason = true, err.Error()
	}
	return ask
}

// check returns why a call would fail, so that no person is asked about it, or "".
func (t *turn) check(p *Pending) string {
	f := t.tools[p.Name].Check
	if f == nil {
		return ""
	}
	var err error
	if t.guard("the check of the call", p.Call, func() { err = f(p.Call) }) != nil || err == nil {
		return ""
	}
	return err.Error()
}

// startable returns the calls at the beginning of a list that may start at once: those
// that need no approval, as many as may run together.
func (t *turn) startable(calls []Pending) []Pending {
	n := 0
	for n < len(calls) && t.refuse(&calls[n]) == "" && !t.asks(&calls[n]) {
		n++
	}
	return calls[:t.countParallel(calls[:n])]
}

// countParallel returns how many calls at the beginning of a list may run together.
func (t *turn) countParallel(calls []Pending) int {
	n := 0
	for n < len(calls) && n < t.opts.Parallel {
		if t.tools[calls[n].Name].Alone {
			return max(n, 1)
		}
		n++
	}
	return n
}

func idsOf(calls []Pending) []string {
	ids := make([]string, len(calls))
	for i := range calls {
		ids[i] = calls[i].ID
	}
	return ids
}

// answered is a call with its result.
type answered struct {
	Pending
	result Result
	err    error // of a hook: it ends the turn
}

func answersTo(text string, calls ...Pending) []answered {
	all := make([]answered, len(calls))
	for i := range calls {
		all[i] = answered{Pending: calls[i], result: Result{Text: text, IsError: true}}
	}
	return all
}

// triage sorts calls: some may run, some need approval, some keep waiting because their tool
// is missing, and some get a result without running.
func (t *turn) triage(pending []Pending) (ready, asking, waiting []Pending, refused []answered) {
	for i := range pending {
		p := pending[i]
		p.order = i
		why := t.refuse(&p)
		why = whyNotRun(&p, why, why == "" && t.tools[p.Name].Repeatable)
		switch {
		case t.tools[p.Name] == nil && p.isDecidedLater() && broken(&p) == "":
			waiting = append(waiting, p)
		case why != "":
			refused = append(refused, answersTo(why, p)...)
		case p.started || p.approved || !t.asks(&p):
			ready = append(ready, p)
		case len(ready)+len(asking) == 0 && t.check(&p) != "":
			refused = append(refused, answersTo(t.check(&p), p)...)
		default:
			asking = append(asking, p)
		}
	}
	return ready, asking, waiting, refused
}

// answer writes results to the log.
func (k *Keeper) answer(results ...answered) error {
	if len(results) == 0 {
		return nil
	}
	entries := make([]session.Entry, len(results))
	for i := range results {
		entries[i] = resultEntry(results[i].Call, results[i].result)
	}
	_, err := k.append(entries...)
	switch {
	case isUnfit(err) && len(results) > 1:
		for i := range results { // one tool's fault must not cost the others their results
			if err := k.answer(results[i]); err != nil {
				return err
			}
		}
		return nil
	case isUnfit(err):
		results[0].result = Result{Text: fmt.Sprintf("[the result of the tool cannot be kept: %v]", err), IsError: true}
		_, err = k.append(resultEntry(results[0].Call, results[0].result))
	}
	if err != nil {
		return err
	}
	for i := range results {
		k.forgetCall(results[i].Pending)
		k.publish(Event{Type: ToolEnd, Call: &results[i].Call, Result: &results[i].result})
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
	m := &session.MessageEntry{Role: session.RoleTool, Content: []session.Content{block}}
	if r.endsTurn {
		m.Metadata = map[string]any{metaEndsTurn: true}
	}
	return message(m)
}
