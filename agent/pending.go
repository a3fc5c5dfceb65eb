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

// findElsewhere marks the calls that were started on another branch: somebody went back to
// before their results, or another program was faster. path has the entries of this branch.
func (t *turn) findElsewhere(calls []Pending, path map[string]int) error {
	begun := make(map[string]map[string]bool) // by message and call
	for i := range calls {
		p := &calls[i]
		if p.State == CallRunning {
			continue
		}
		if begun[p.Entry] == nil {
			below, err := t.entriesBelow(p.Entry)
			if err != nil {
				return err
			}
			begun[p.Entry] = begunIn(slices.DeleteFunc(below, func(e session.Entry) bool {
				_, here := path[e.ID]
				return here
			}))
		}
		if begun[p.Entry][p.ID] {
			p.State = CallElsewhere
		}
	}
	return nil
}

// begunIn returns the calls that entries say were started: those that ran, and those that
// have a result. A result that says that a call did not run is none.
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
			if r != nil && !slices.Contains([]string{notRunText, deniedText, elsewhereText, supersededText}, r.Content) {
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

// mine returns those of a group of calls that are this agent's to run, after the mark that
// they run was written, and answers the others. The path says nothing of other branches, and
// other programs write at the same time. But the log has one order: whoever marked a call
// first may run it. A call that may be repeated is everybody's.
func (t *turn) mine(group []Pending, mark string) ([]Pending, error) {
	var mine, taken []Pending
	marks := make(map[string]map[string]string) // by message and call
	for i := range group {
		p := group[i]
		if t.tools[p.Name].Repeatable || p.started || !p.found && !t.disturbed {
			mine = append(mine, p)
			continue
		}
		first := marks[p.Entry]
		if first == nil {
			var err error
			if first, err = t.firstMarks(p.Entry); err != nil {
				return nil, err
			}
			marks[p.Entry] = first
		}
		if first[p.ID] == mark {
			mine = append(mine, p)
		} else {
			taken = append(taken, p)
		}
	}
	return mine, t.answer(answersTo(taken, elsewhereText)...)
}

// firstMarks returns for each call of a message the first entry, on whatever branch, that
// says that it runs.
func (t *turn) firstMarks(messageID string) (map[string]string, error) {
	below, err := t.entriesBelow(messageID)
	if err != nil {
		return nil, err
	}
	order, err := t.s.EntryIDs()
	if err != nil {
		return nil, err
	}
	at := make(map[string]int, len(order))
	for i, id := range order {
		at[id] = i
	}
	slices.SortFunc(below, func(a, b session.Entry) int { return at[a.ID] - at[b.ID] })
	first := make(map[string]string)
	for i := range below {
		state, calls := readMark(&below[i])
		for _, call := range calls {
			if first[call] == "" && state == CallRunning {
				first[call] = below[i].ID
			}
		}
	}
	return first, nil
}

// entriesBelow returns the custom entries and the messages between a message of the model and the next one
// on each branch: no entry after that is about its calls.
func (t *turn) entriesBelow(messageID string) ([]session.Entry, error) {
	todo, err := t.s.Outline()
	if err != nil {
		return nil, err
	}
	var below []session.Entry
	inside := false
	for len(todo) > 0 {
		node := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch {
		case !inside && node.Entry.ID == messageID:
			inside, todo = true, nil
		case inside:
			found, err := t.s.Peek(node.Entry.ID)
			if err != nil {
				return nil, err
			}
			if m := found[0].Message; m != nil && m.Role == session.RoleAssistant {
				continue
			}
			if found[0].Custom != nil || found[0].Message != nil {
				below = append(below, found[0])
			}
		}
		todo = append(todo, node.Children...)
	}
	return below, nil
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
			err = badDecision(d)
		}
		return err
	})
}
