package session

// Pairs follows a conversation entry by entry and knows what belongs together. These rules
// are stated here and nowhere else:
//
//   - A tool call is a tool_use block in a message of the model. A result answers the
//     latest call with its id that has no result yet, because some providers reuse the
//     same ids in every turn. A result without such a call is an orphan.
//   - Two messages of the model with no other message between them are one response if
//     they have the same response id, or if neither has one and the first contains only
//     thinking.
//   - A turn begins with a message of the user that has no tool results.
//   - A call without a result is pending. It stays pending if the user speaks while the
//     tool runs; once the model speaks after that, the call was interrupted. A result that
//     comes later still answers it.
//
// The zero value is ready to use. Adding an entry costs no more than looking at its blocks.
// Mark and Rewind take entries back, so that a caller that follows many branches need not
// start each one at the root.
type Pairs struct {
	refs []Ref
	open map[string]int // by call id, the latest call that has no result
	now  pairsState
}

// Ref is a tool call or a tool result in a conversation.
type Ref struct {
	ID    string // of the call
	Call  bool   // true for a call, false for a result
	Entry int    // the entry that has it, counted from 0 in the order of Add
	Block int    // the index of the block in the message
	Pair  int    // the index of the call's result or the result's call, or NoPair
	under int    // for a call, the previous one with the same id that has no result either, or NoPair
}

// NoPair is the Pair of a call without a result and of a result without a call.
const NoPair = -1

// pairsState is everything in Pairs except its lists, so that Mark is a copy of it.
type pairsState struct {
	entries     int  // how many were added
	refs        int  // how many there are
	interrupted int  // calls before this ref that have no result were interrupted
	oldest      int  // the first ref that is a pending call, or refs if there is none
	pending     int  // how many calls are pending
	interjected bool // the user spoke while a call was pending, and the model has not spoken since
	spokenAt    int  // if so, where the user spoke

	last         int // the last message, if any was added
	lastIsModel  bool
	lastResponse string
	onlyThinking bool
}

// Added is what Pairs found out about an entry.
type Added struct {
	// Index counts the entries from 0 as they are added.
	Index int
	// Continues is the index of the message whose response this one continues, or -1 if
	// it begins a response or is not a message of the model.
	Continues int
	// Refs are the calls and results of the entry. They are valid until the next Add.
	Refs []Ref
}

// BeginsTurn reports whether the entry is a message of the user without tool results.
func (e *Entry) BeginsTurn() bool {
	return e.Message != nil && e.Message.Role == RoleUser && !hasResults(e.Message)
}

// MetaInjected is the member of a message's metadata that marks what a program said in the
// user's name: true, or a word for who did.
const MetaInjected = "injected"

// RepeatedByCompaction is the value of MetaInjected on a message from before a compaction that
// is repeated after it, so that the model still sees it.
const RepeatedByCompaction = "compaction"

// IsRepeated reports whether the entry is a message that a compaction repeats. It is
// sent like any other, but was not said again: it does not count as a message.
func (e *Entry) IsRepeated() bool {
	return e.Message != nil && e.Message.Metadata[MetaInjected] == RepeatedByCompaction
}

// IsInjected reports whether a program said something in the user's name: reminders, contexts,
// notices. Importers mark such messages with MetaInjected.
func (e *Entry) IsInjected() bool {
	if e.Message == nil {
		return false
	}
	by, marked := e.Message.Metadata[MetaInjected]
	return marked && by != false
}

// Add adds the next entry of the conversation.
func (p *Pairs) Add(e *Entry) Added {
	at, before := p.now.entries, len(p.refs)
	p.now.entries++
	added := Added{Index: at, Continues: -1}
	m := e.Message
	if m == nil {
		return added // not a message, so the last message is still the same
	}
	if p.Continues(e) {
		added.Continues = p.now.last
	}
	switch {
	case m.Role == RoleAssistant && p.now.interjected:
		p.now.interrupted, p.now.pending, p.now.interjected = len(p.refs), 0, false
	case e.BeginsTurn() && p.now.pending > 0 && !p.now.interjected:
		p.now.interjected, p.now.spokenAt = true, at
	}
	m.eachTool(func(block int, id string, isCall bool) {
		if isCall {
			p.addCall(id, at, block)
		} else {
			p.addResult(id, at, block)
		}
	})
	p.findOldest()
	p.now.last, p.now.lastIsModel = at, m.Role == RoleAssistant
	p.now.lastResponse, p.now.onlyThinking = m.ResponseID, onlyThinking(m)
	added.Refs = p.refs[before:len(p.refs):len(p.refs)]
	return added
}

// eachTool visits the calls and results of a message in order. Only the model makes calls.
func (m *MessageEntry) eachTool(visit func(block int, id string, isCall bool)) {
	for i := range m.Content {
		switch block := &m.Content[i]; {
		case block.ToolUse != nil && m.Role == RoleAssistant:
			visit(i, block.ToolUse.ID, true)
		case block.ToolResult != nil:
			visit(i, block.ToolResult.ToolUseID, false)
		}
	}
}

// Continues reports whether an entry, if it were added next, would continue the response of
// the last message.
func (p *Pairs) Continues(e *Entry) bool {
	m := e.Message
	if m == nil || m.Role != RoleAssistant || !p.now.lastIsModel {
		return false
	}
	if p.now.lastResponse != "" || m.ResponseID != "" {
		return p.now.lastResponse == m.ResponseID
	}
	return p.now.onlyThinking
}

func onlyThinking(m *MessageEntry) bool {
	for i := range m.Content {
		if m.Content[i].Thinking == nil {
			return false
		}
	}
	return len(m.Content) > 0
}

func (p *Pairs) addCall(id string, entry, block int) {
	if p.open == nil {
		p.open = make(map[string]int)
	}
	under, ok := p.open[id]
	if !ok {
		under = NoPair
	}
	p.open[id] = len(p.refs)
	p.refs = append(p.refs, Ref{ID: id, Call: true, Entry: entry, Block: block, Pair: NoPair, under: under})
	p.now.pending++
}

func (p *Pairs) addResult(id string, entry, block int) {
	result := Ref{ID: id, Entry: entry, Block: block, Pair: NoPair}
	if call, ok := p.open[id]; ok {
		result.Pair = call
		p.refs[call].Pair = len(p.refs)
		p.close(call)
		if call >= p.now.interrupted {
			p.now.pending--
		}
	}
	p.refs = append(p.refs, result)
}

// close removes a call from those that have no result.
func (p *Pairs) close(call int) {
	if under := p.refs[call].under; under != NoPair {
		p.open[p.refs[call].ID] = under
		return
	}
	delete(p.open, p.refs[call].ID)
}

// removeLast removes the last ref. Rewind restores the rest of the state.
func (p *Pairs) removeLast() Ref {
	last := p.refs[len(p.refs)-1]
	p.refs = p.refs[:len(p.refs)-1]
	switch {
	case last.Call && last.under == NoPair:
		delete(p.open, last.ID)
	case last.Call:
		p.open[last.ID] = last.under
	case last.Pair != NoPair:
		p.refs[last.Pair].Pair = NoPair
		p.open[last.ID] = last.Pair
	}
	return last
}

// findOldest moves on to the oldest pending call. It never goes back, so over the whole
// conversation it looks at each ref once.
func (p *Pairs) findOldest() {
	if p.now.pending == 0 {
		p.now.oldest = len(p.refs)
		return
	}
	at := max(p.now.oldest, p.now.interrupted)
	for !p.refs[at].Call || p.refs[at].Pair != NoPair {
		at++
	}
	p.now.oldest = at
}

// Mark is a point that Pairs can return to.
type Mark struct{ state pairsState }

// Mark returns the present point.
func (p *Pairs) Mark() Mark {
	m := Mark{p.now}
	m.state.refs = len(p.refs)
	return m
}

// Rewind takes back everything that was added since a mark.
func (p *Pairs) Rewind(m Mark) {
	for len(p.refs) > m.state.refs {
		p.removeLast()
	}
	p.now = m.state
}

// Refs returns all calls and results in order. The caller must not change the list, which
// is valid until the next entry is added.
func (p *Pairs) Refs() []Ref { return p.refs }

// Len returns how many entries were added.
func (p *Pairs) Len() int { return p.now.entries }

// Pending reports whether a call waits for its result.
func (p *Pairs) Pending() bool { return p.now.pending > 0 }

// PendingCalls returns the calls that wait for their result.
func (p *Pairs) PendingCalls() []Ref {
	var calls []Ref
	for at := p.now.oldest; at < len(p.refs) && len(calls) < p.now.pending; at++ {
		if p.refs[at].Call && p.refs[at].Pair == NoPair {
			calls = append(calls, p.refs[at])
		}
	}
	return calls
}

// OpenCalls keeps a value for each tool call until its result asks for it. A result gets the
// call that Pairs would give it: the latest with its id that has no result yet. The zero
// value is ready to use.
type OpenCalls[T any] struct{ byID map[string][]T }

// Call adds a call.
func (o *OpenCalls[T]) Call(id string, value T) {
	if o.byID == nil {
		o.byID = make(map[string][]T)
	}
	o.byID[id] = append(o.byID[id], value)
}

// Has reports whether a call with an id has no result yet.
func (o *OpenCalls[T]) Has(id string) bool { return len(o.byID[id]) > 0 }

// Result removes the call that a result answers and returns its value. If there is none, ok
// is false.
func (o *OpenCalls[T]) Result(id string) (value T, ok bool) {
	calls := o.byID[id]
	if len(calls) == 0 {
		return value, false
	}
	value = calls[len(calls)-1]
	if o.byID[id] = calls[:len(calls)-1]; len(calls) == 1 {
		delete(o.byID, id)
	}
	return value, true
}

func hasResults(m *MessageEntry) bool {
	for i := range m.Content {
		if m.Content[i].ToolResult != nil {
			return true
		}
	}
	return false
}

// isToolMessage reports whether a message brings tool results and is not the model's. Some
// formats give results the role of the user. (A message of the model may have results too,
// from tools that the provider ran; it is still a response.)
func isToolMessage(e *Entry) bool {
	m := e.Message
	return m != nil && m.Role != RoleAssistant && (m.Role == RoleTool || hasResults(m))
}
