package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

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
func (a *Agent) Pending() ([]Pending, error) {
	t := &turn{Agent: a, s: a.log}
	return t.pending()
}

// pending finds the calls that wait for a result, as session.Pairs defines it. The
// entries after the message say how far each has come.
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
		p := t.pendingCall(e, e.Message.Content[ref.Block].ToolUse)
		p.found, p.overtaken = true, spoken > ref.Entry
		calls = append(calls, p)
	}
	if len(calls) == 0 {
		return nil, nil
	}
	return calls, t.readStates(calls)
}

// readStates fills in how far calls have come on the path to the leaf.
func (t *turn) readStates(calls []Pending) error {
	path, err := t.s.OutlinePath("")
	if err != nil {
		return err
	}
	at := make(map[string]int, len(path)) // where the entries are on the path
	var ids []string
	for i := range path {
		at[path[i].ID] = i
		if path[i].Type == session.TypeCustom && i > at[calls[0].Entry] {
			ids = append(ids, path[i].ID)
		}
	}
	entries, err := t.s.Peek(ids...)
	if err != nil {
		return err
	}
	for i := range entries {
		state, named := readMark(&entries[i])
		for j := range calls {
			// An id may have been used before, by a call of an earlier message.
			if slices.Contains(named, calls[j].ID) && at[entries[i].ID] > at[calls[j].Entry] {
				calls[j].State = state
			}
		}
	}
	return t.findElsewhere(calls, at)
}

// findElsewhere marks the calls that were started on another branch: the user went back to
// before their results, or another program was faster. path has the entries of this branch.
func (t *turn) findElsewhere(calls []Pending, path map[string]int) error {
	below, err := t.entriesBelow(slices.DeleteFunc(slices.Clone(calls), func(p Pending) bool { return p.State == CallRunning }))
	if err != nil {
		return err
	}
	begun := make(map[string]map[string]bool, len(below)) // by message and call
	for message, entries := range below {
		begun[message] = begunIn(slices.DeleteFunc(entries, func(e session.Entry) bool {
			_, here := path[e.ID]
			return here
		}))
	}
	for i := range calls {
		if p := &calls[i]; begun[p.Entry][p.ID] && p.State != CallRunning {
			p.State = CallElsewhere
		}
	}
	return nil
}

// begunIn returns the calls that entries say were started: those that ran, and those that
// have a result. A result that says the call did not run does not count.
func begunIn(entries []session.Entry) map[string]bool {
	begun := make(map[string]bool)
	for i := range entries {
		e := &entries[i]
		if state, calls := readMark(e); state == CallRunning {
			for _, call := range calls {
				begun[call] = true
			}
		}
		if e.Message == nil {
			continue
		}
		for j := range e.Message.Content {
			r := e.Message.Content[j].ToolResult
			if r != nil && !slices.Contains([]string{notRunText, cutOffText, deniedText, elsewhereText, supersededText}, r.Content) {
				begun[r.ToolUseID] = true
			}
		}
	}
	return begun
}

// readMark returns what an entry says about calls, if it is one of those of callsEntry.
func readMark(e *session.Entry) (state CallState, calls []string) {
	if e.Custom == nil || e.Custom.CustomType != session.CustomCalls {
		return "", nil
	}
	text, _ := e.Custom.Data[dataState].(string)
	named, _ := e.Custom.Data[dataCalls].([]any)
	for _, v := range named {
		if id, ok := v.(string); ok {
			calls = append(calls, id)
		}
	}
	return CallState(text), calls
}

// entriesBelow returns for each message that made one of the calls the custom entries and
// the messages between it and the model's next one, on each branch: no entry after that is
// about its calls. It walks the tree once, however many messages there are.
func (t *turn) entriesBelow(calls []Pending) (map[string][]session.Entry, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	wanted := make(map[string]bool, len(calls))
	for i := range calls {
		wanted[calls[i].Entry] = true
	}
	todo, err := t.s.Outline()
	if err != nil {
		return nil, err
	}
	below := make(map[string][]session.Entry, len(wanted))
	for len(todo) > 0 {
		node := todo[len(todo)-1]
		todo = append(todo[:len(todo)-1], node.Children...)
		if wanted[node.Entry.ID] {
			if below[node.Entry.ID], err = t.about(node.Children); err != nil {
				return nil, err
			}
		}
	}
	return below, nil
}

// about returns the custom entries and the messages from nodes down to the next message of
// the model on each branch.
func (t *turn) about(todo []session.TreeNode) ([]session.Entry, error) {
	todo = slices.Clone(todo)
	var found []session.Entry
	for len(todo) > 0 {
		node := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		read, err := t.s.Peek(node.Entry.ID)
		if err != nil {
			return nil, err
		}
		e := read[0]
		if e.Message != nil && e.Message.Role == session.RoleAssistant {
			continue
		}
		if e.Custom != nil || e.Message != nil {
			found = append(found, e)
		}
		todo = append(todo, node.Children...)
	}
	return found, nil
}

// Decide settles a call that waits for approval. Resume then continues the turn. Later
// changes nothing. For a call that does not wait, Decide returns session.ErrNotExist.
func (a *Agent) Decide(callID string, d Decision) error {
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
			err = badDecision(d)
		}
		return err
	})
}
