package session

// Pairs follows a conversation entry by entry and knows what belongs together in
// it. It is the only statement of these rules:
//
//   - A tool call is a tool_use block in a message of the model. A result answers
//     the latest call of its id that has no result yet: some providers use the
//     same ids again in every turn. A result for which there is no such call is
//     an orphan.
//   - Two messages of the model with nothing but entries that are no messages
//     between them are one response if they have the same response id, or if
//     neither has one and the first of them is nothing but thinking.
//   - A turn begins with a message of the user that has no tool results.
//   - A call that has no result is pending. It stays so when the user speaks
//     while the tool runs; when the model speaks after that, the call was
//     interrupted. A result that comes later still answers it.
//
// The zero value is ready to use. Adding an entry costs no more than looking at
// its blocks. Mark and Rewind take entries back, so that whoever follows many
// branches need not begin each at the root.
type Pairs struct {
	refs []Ref
	open map[string]int // by call id, the latest call that has no result
	now  pairsState
}

// Ref is a tool call or a tool result in a conversation.
type Ref struct {
	ID    string // of the call
	Call  bool   // it is a call; otherwise it is a result
	Entry int    // which entry has it: they are counted from 0 as they are added
	Block int    // which block of the message it is
	Pair  int    // which ref is the call's result or the result's call, or NoPair
	under int    // of a call, the one of the same id that has no result either, or NoPair
}

// NoPair is the Pair of a call without a result and of a result without a call.
const NoPair = -1

// pairsState is all of Pairs that is not in its lists.
type pairsState struct {
	entries     int  // so many were added
	refs        int  // so many there are
	interrupted int  // calls before this ref that have no result were interrupted
	oldest      int  // the first ref that is a pending call, or how many there are
	pending     int  // calls
	interjected bool // the user spoke while a call was pending, the model has not since
	spokenAt    int  // where the user did, if so

	last         int // the last message, if any was added
	lastIsModel  bool
	lastResponse string
	onlyThinking bool
}

// Added is what Pairs found out about an entry.
type Added struct {
	// Index counts the entries from 0 as they are added.
	Index int
	// Continues is the index of the message whose response this one goes on, or
	// -1 if it begins one or is no message of the model.
	Continues int
	// Refs are the calls and results of the entry. They are valid until the next
	// is added.
	Refs []Ref
}

// BeginsTurn reports whether the entry is a message of the user that brings no
// tool results.
func (e *Entry) BeginsTurn() bool {
	return e.Message != nil && e.Message.Role == RoleUser && !hasResults(e.Message)
}

// Add takes the next entry of the conversation into account.
func (p *Pairs) Add(e *Entry) Added {
	at, before := p.now.entries, len(p.refs)
	p.now.entries++
	added := Added{Index: at, Continues: -1}
	m := e.Message
	if m == nil {
		return added // the last message is still what it was
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

// eachTool visits the calls that a message makes and the results that it has, in
// order. Only the model makes calls.
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

// Continues reports whether an entry, if it were added next, would go on the
// response of the last message.
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

// close takes a call from those that have no result.
func (p *Pairs) close(call int) {
	if under := p.refs[call].under; under != NoPair {
		p.open[p.refs[call].ID] = under
		return
	}
	delete(p.open, p.refs[call].ID)
}

// takeBack takes the last ref back. It leaves the rest of the state to Rewind.
func (p *Pairs) takeBack() Ref {
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

// findOldest moves on to the oldest pending call. It never goes back, so that all
// of its moves together cost one look at each ref.
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

// Mark is a point to which Pairs can go back.
type Mark struct{ state pairsState }

// Mark returns the point at which it is now.
func (p *Pairs) Mark() Mark {
	m := Mark{p.now}
	m.state.refs = len(p.refs)
	return m
}

// Rewind takes back everything that was added since a mark.
func (p *Pairs) Rewind(m Mark) {
	for len(p.refs) > m.state.refs {
		p.takeBack()
	}
	p.now = m.state
}

// Refs returns all calls and results in order. The list is not the caller's to
// change, and is valid until the next entry is added.
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

func hasResults(m *MessageEntry) bool {
	for i := range m.Content {
		if m.Content[i].ToolResult != nil {
			return true
		}
	}
	return false
}

// isToolMessage reports whether a message brings tool results and is not the
// model's: some formats give results the role of the user. (A model's message may
// have results too, of tools that the provider ran; it is a response all the
// same.)
func isToolMessage(e *Entry) bool {
	m := e.Message
	return m != nil && m.Role != RoleAssistant && (m.Role == RoleTool || hasResults(m))
}
