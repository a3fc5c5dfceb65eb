package agent

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// callsMark is the data of a custom entry of type session.CustomCalls: how far calls have
// come.
type callsMark struct {
	State CallState `json:"state"`
	Calls []string  `json:"calls"`
	// Signed proves that a person approved a call, and Inputs has the arguments that they
	// allowed it with, if those are not the model's. Both are by the ids of calls.
	Signed map[string]string `json:"signed,omitempty"`
	Inputs map[string]string `json:"inputs,omitempty"`
}

// mark records in the log how far calls have come.
func (k *Keeper) mark(state CallState, calls []Pending) error {
	if len(calls) == 0 {
		return nil
	}
	m := callsMark{State: state, Signed: make(map[string]string), Inputs: make(map[string]string)}
	for i := range calls {
		p := &calls[i]
		m.Calls = append(m.Calls, p.ID)
		if p.approved {
			key, err := k.key(true)
			if err != nil {
				return err
			}
			m.Signed[p.ID] = k.signature(key, state, p)
		}
		if p.changed {
			m.Inputs[p.ID] = string(p.Input)
		}
	}
	_, err := k.append(m.entry())
	return err
}

// Running returns the entry that says that calls run from now on, and needed no approval. It
// is for a loop that writes to the log without a Keeper: the entry goes right after the
// message that has the calls, in the same write. No other loop then runs them again.
func Running(calls ...string) session.Entry {
	m := callsMark{State: CallRunning, Calls: calls}
	return m.entry()
}

func (m *callsMark) entry() session.Entry {
	return session.Custom(session.CustomCalls, dataOf(m))
}

// readMark returns what an entry says about calls, if it is a mark. Damaged parts are left
// out: the rest may say that a call must not run again.
func readMark(e *session.Entry) (m callsMark) {
	if e.Custom == nil || e.Custom.CustomType != session.CustomCalls {
		return m
	}
	state, _ := e.Custom.Data["state"].(string)
	m.State = CallState(state)
	calls, _ := e.Custom.Data["calls"].([]any)
	for _, v := range calls {
		if id, ok := v.(string); ok {
			m.Calls = append(m.Calls, id)
		}
	}
	m.Signed, m.Inputs = textsIn(e.Custom.Data["signed"]), textsIn(e.Custom.Data["inputs"])
	return m
}

func textsIn(v any) map[string]string {
	texts := make(map[string]string)
	members, _ := v.(map[string]any)
	for name, v := range members {
		if text, ok := v.(string); ok {
			texts[name] = text
		}
	}
	return texts
}

// apply applies a mark to a call. An approval in the log counts only if it is signed.
func (k *Keeper) apply(m *callsMark, p *Pending) error {
	p.State, p.approved = m.State, false
	if proof := m.Signed[p.ID]; proof != "" {
		key, err := k.key(false)
		if err != nil {
			return err
		}
		claimed := *p
		if input, ok := m.Inputs[p.ID]; ok {
			claimed.Input, claimed.changed = json.RawMessage(input), true
		}
		if key != nil && isProof(proof, k.signature(key, m.State, &claimed)) {
			claimed.approved = true
			*p = claimed
		}
	}
	if p.State == CallAllowed && !p.approved {
		p.State = CallWaiting
	}
	return nil
}

// applyRecord finds the calls that the record of a request proves to be ours.
func (k *Keeper) applyRecord(e *session.Entry, calls map[string][]*Pending) error {
	r, ok := ReadRecord(e)
	if !ok || len(r.Signed) == 0 {
		return nil
	}
	key, err := k.key(false)
	if err != nil || key == nil {
		return err
	}
	for id, proof := range r.Signed {
		for _, p := range calls[id] {
			p.ours = p.ours || p.Entry == r.Response && isProof(proof, k.signature(key, CallNew, p))
		}
	}
	return nil
}

// Pending returns the calls that have no result, with how far each has come.
func (a *Agent) Pending() ([]Pending, error) {
	return a.keeper.pending()
}

// pending finds the calls that wait for a result, as session.Pairs defines it. The
// entries after the message say how far each has come.
func (k *Keeper) pending() ([]Pending, error) {
	end, err := k.end()
	if err != nil {
		return nil, err
	}
	calls := pendingIn(k.s.SessionOf(""), end)
	for i := range calls {
		k.recallCall(&calls[i])
	}
	if len(calls) == 0 {
		return nil, nil
	}
	return calls, k.readStates(calls)
}

// pendingIn finds the calls that wait for a result at the end of a conversation; in is its session.
func pendingIn(in string, entries []session.Entry) (calls []Pending) {
	var pairs session.Pairs
	var added []*session.Entry
	spoken := -1
	for i := range entries {
		e := &entries[i]
		if strings.HasPrefix(e.ID, session.InterruptedPrefix) {
			continue // made up for the model: the call has no result
		}
		at := pairs.Add(e).Index
		if e.BeginsTurn() {
			spoken = at
		}
		added = append(added, e)
	}
	for _, ref := range pairs.PendingCalls() {
		e := added[ref.Entry]
		p := pendingCall(in, e, e.Message.Content[ref.Block].ToolUse)
		p.found, p.superseded = true, spoken > ref.Entry
		calls = append(calls, p)
	}
	return calls
}

// Left returns what a conversation leaves open, by the last entries of its path alone: the calls
// without a result, with how far they have come according to the log, and whether anything waits
// for an answer. It is for a reader who must not read more; Agent.Pending and Agent.Unfinished
// also look at approvals, other branches and what is queued.
func Left(end []session.Entry) (calls []Pending, open bool) {
	calls = pendingIn("", end)
	for i := range calls {
		after := false
		for at := range end {
			if m := readMark(&end[at]); after && slices.Contains(m.Calls, calls[i].ID) {
				calls[i].State = m.State
			}
			after = after || end[at].ID == calls[i].Entry
		}
	}
	return calls, len(calls) > 0 || waits(lastMessageIn(end))
}

// readStates fills in how far calls have come on the path to the leaf.
func (k *Keeper) readStates(calls []Pending) error {
	shape, err := k.s.Shape()
	if err != nil {
		return err
	}
	at := make(map[string]int) // where the entries are on the path
	var ids []string
	for i, n := range shape.Path(shape.Leaf()) {
		id := shape.ID(n)
		at[id] = i
		if shape.Type(n) == session.TypeCustom && i > at[calls[0].Entry] {
			ids = append(ids, id)
		}
	}
	entries, err := k.s.Peek(ids...)
	if err != nil {
		return err
	}
	byID := make(map[string][]*Pending, len(calls))
	for i := range calls {
		byID[calls[i].ID] = append(byID[calls[i].ID], &calls[i])
	}
	for i := range entries {
		if err := k.applyRecord(&entries[i], byID); err != nil {
			return err
		}
		m := readMark(&entries[i])
		for _, id := range m.Calls {
			for _, p := range byID[id] {
				// An id may have been used before, by a call of an earlier message.
				if at[entries[i].ID] > at[p.Entry] {
					if err := k.apply(&m, p); err != nil {
						return err
					}
				}
			}
		}
	}
	return k.findElsewhere(calls, at, byID)
}

// findElsewhere marks the calls that were started on another branch: the user went back to
// before their results, or another program was faster. It does the same for calls that were
// denied there, or recorded: the user may have gone back to the answer itself. path has the
// entries of this branch, and byID the calls.
func (k *Keeper) findElsewhere(calls []Pending, path map[string]int, byID map[string][]*Pending) error {
	below, err := k.entriesBelow(slices.DeleteFunc(slices.Clone(calls), func(p Pending) bool { return p.State == CallRunning }))
	if err != nil {
		return err
	}
	begun, denied := make(map[callKey]bool), make(map[callKey]bool)
	for message, entries := range below {
		for i := range entries {
			if _, here := path[entries[i].ID]; here {
				continue
			}
			readFate(&entries[i], message, begun, denied)
			if err := k.applyRecord(&entries[i], byID); err != nil {
				return err
			}
		}
	}
	for i := range calls {
		p := &calls[i]
		key := callKey{p.Entry, p.ID}
		switch {
		case p.State == CallRunning:
		case begun[key] || denied[key]:
			p.State, p.denied = CallElsewhere, !begun[key]
		}
	}
	return nil
}

// readFate records which calls of a message were started, according to an entry: those that
// ran, and those that have a result. A result that says the call did not run does not count.
func readFate(e *session.Entry, message string, begun, denied map[callKey]bool) {
	if m := readMark(e); m.State == CallRunning {
		for _, call := range m.Calls {
			begun[callKey{message, call}] = true
		}
	}
	if e.Message == nil {
		return
	}
	for i := range e.Message.Content {
		r := e.Message.Content[i].ToolResult
		switch {
		case r == nil:
		case isDenial(r.Content):
			denied[callKey{message, r.ToolUseID}] = true
		case !slices.Contains([]string{notRunText, cutOffText, redactedText, elsewhereText, supersededText, foreignText}, r.Content):
			begun[callKey{message, r.ToolUseID}] = true
		}
	}
}

// entriesBelow returns for each message that made one of the calls the custom entries and
// the messages between it and the model's next one, on each branch: no entry after that is
// about its calls. It walks the tree once, however many messages there are.
func (k *Keeper) entriesBelow(calls []Pending) (map[string][]session.Entry, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	shape, err := k.s.Shape()
	if err != nil {
		return nil, err
	}
	children := make(map[int32][]int32)
	for n := range int32(shape.Len()) {
		if p := shape.Parent(n); p >= 0 {
			children[p] = append(children[p], n)
		}
	}
	below := make(map[string][]session.Entry, len(calls))
	for i := range calls {
		id := calls[i].Entry
		if at := shape.Index(id); at >= 0 && below[id] == nil {
			if below[id], err = k.about(shape, children, at); err != nil {
				return nil, err
			}
		}
	}
	return below, nil
}

// about returns the custom entries and the messages below an entry, down to the next message of
// the model on each branch.
func (k *Keeper) about(shape *session.Shape, children map[int32][]int32, at int32) ([]session.Entry, error) {
	todo := slices.Clone(children[at])
	var found []session.Entry
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		read, err := k.s.Peek(shape.ID(n))
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
		todo = append(todo, children[n]...)
	}
	return found, nil
}
