package session

import "slices"

// assemble makes a context of a selection. It is a pure function: the same
// entries give the same context, byte for byte.
func assemble(sel *selection) *Context {
	c := &Context{Leaf: sel.leaf, Problems: sel.problems, path: sel.entries}
	c.Entries = make([]Entry, 0, len(sel.entries)+len(sel.picked)+1)
	c.origin = make([]int, 0, cap(c.Entries))
	state := sel.state
	edits := effectiveEdits(sel)
	if sel.compaction != nil {
		c.Compaction = sel.compaction.ID
		c.Entries = append(c.Entries, *sel.compaction)
		c.origin = append(c.origin, notOnPath)
	}
	// What stands before the compaction in force is older than the state that
	// the compaction recorded.
	stale := sel.compaction != nil && sel.compaction.Compaction.State != nil
	changed := 0 // so many entries were answered in another context
	for at, e := range sel.entries {
		inForce := sel.compaction != nil && e.ID == sel.compaction.ID
		if inForce {
			stale = false
		}
		if inForce || e.Revert != nil || e.ContextEdit != nil {
			changed = len(c.Entries)
		}
		if !stale {
			state.update(e)
		}
		c.contribute(sel, e, edits)
		for n := len(c.origin); n < len(c.Entries); n++ {
			c.origin = append(c.origin, at)
			at = notOnPath // what else a merge brings
		}
	}
	c.Provider, c.Model, c.ThinkingLevel = state.Provider, state.Model, state.ThinkingLevel
	c.countTokens(changed)
	if !sel.unpaired {
		c.pairTools()
	}
	return c
}

// effectiveEdits returns the last edit of each entry that was not reverted.
func effectiveEdits(sel *selection) map[string]*Entry {
	var edits map[string]*Entry
	for _, e := range slices.Concat(sel.olderEdits, sel.entries) {
		if e.ContextEdit == nil || sel.reverted[e.ID] {
			continue
		}
		if edits == nil {
			edits = make(map[string]*Entry)
		}
		edits[e.ContextEdit.TargetID] = e
	}
	return edits
}

// contribute adds what an entry of the path gives the model.
func (c *Context) contribute(sel *selection, e *Entry, edits map[string]*Entry) {
	switch {
	case e.Message != nil:
		c.addMessage(e, edits[e.ID])
	case e.BranchSummary != nil && e.BranchSummary.Summary != "":
		c.Entries = append(c.Entries, *e)
	case e.Merge != nil && !sel.reverted[e.ID]:
		c.Entries = append(c.Entries, *e)
		for _, id := range e.Merge.EntryIDs {
			if picked := sel.picked[id]; picked != nil && picked.Message != nil {
				c.addMessage(picked, edits[id])
			}
		}
	}
}

func (c *Context) addMessage(e, edit *Entry) {
	if edit == nil {
		c.Entries = append(c.Entries, *e)
		return
	}
	if c.Edited == nil {
		c.Edited = make(map[string]string)
	}
	c.Edited[e.ID] = edit.ID
	message := *e.Message
	message.Tokens = nil // of the content that is not sent
	message.Content = edit.ContextEdit.Replacement
	switch {
	case message.Content == nil:
		message.Content = replacedResults(e.Message.Content, clearedText)
	case hasResults(e.Message) && !hasResults(&message):
		message.Content = replacedResults(e.Message.Content, TextOf(message.Content))
	}
	if len(message.Content) > 0 {
		edited := *e
		edited.Message = &message
		c.Entries = append(c.Entries, edited)
	}
}

// replacedResults returns the tool results among the blocks with another text:
// the calls need an answer.
func replacedResults(blocks []Content, text string) []Content {
	var results []Content
	for _, b := range blocks {
		if b.ToolResult != nil {
			results = append(results, ToolResult(b.ToolResult.ToolUseID, text, b.ToolResult.IsError))
		}
	}
	return results
}

// countTokens adds up what was recorded. The usage that a provider reported
// for a response covers everything before it, so the latest is the base; but
// not of a response before the last change to what is sent (a compaction, an
// edit, a revert), nor of one that a merge brought from another branch.
func (c *Context) countTokens(changed int) {
	for i := len(c.Entries) - 1; i >= 0; i-- {
		m := c.Entries[i].Message
		switch {
		case m == nil:
			c.Uncounted++
		case m.Usage != nil && m.Usage.Context() > 0 && i >= changed && c.origin[i] != notOnPath:
			c.Tokens += m.Usage.Context()
			return
		case m.Tokens != nil:
			c.Tokens += *m.Tokens
		default:
			c.Uncounted++
		}
	}
}

// pairTools makes every tool call have its result right after the message that
// made it, and every result its call, because providers refuse anything else:
// a call without an answer gets one that says so; an answer that came late is
// moved to its call; an answer without a call is dropped. All of it is reported.
func (c *Context) pairTools() {
	p := newPairing()
	for i := range c.Entries {
		p.add(&c.Entries[i], i)
	}
	if len(p.steps) == 0 {
		return
	}
	c.Entries = p.arrange(c)
}

// call is a tool call and what became of it.
type call struct {
	id     string
	entry  int // its index in the context
	turn   int // the turn that made it
	result *Content
	from   int // the index of the entry that has the result
	since  int // see pathCheck
}

// pairing matches results with calls. Some providers use an id again in each
// turn, so a result belongs to the latest call of that id that has none.
//
// Everything it does is a step that can be taken back, so that whoever follows
// many paths of a tree need not begin each at the root.
type pairing struct {
	open   map[string][]*call
	steps  []step
	turns  []int // of each run of assistant messages the index of the last
	inTurn bool
}

// step is a call, an answer to one, or an answer that has no call.
type step struct {
	call    *call // nil for an answer that has none
	answers bool
	id      string   // of the call
	result  *Content // the answer, as far as it is known
	entry   int      // the index of the entry that has it
	since   int      // see pathCheck
}

func newPairing() *pairing { return &pairing{open: make(map[string][]*call)} }

func (p *pairing) add(e *Entry, i int) {
	m := e.Message
	if m == nil || m.Role != RoleAssistant {
		p.inTurn = false
	} else if !p.inTurn {
		p.inTurn, p.turns = true, append(p.turns, i)
	}
	if m == nil {
		return
	}
	m.eachTool(func(block *Content, isCall bool) {
		if isCall {
			p.call(block.ToolUse.ID, i)
		} else {
			p.answer(block.ToolResult.ToolUseID, block, i)
		}
	})
	if p.inTurn {
		p.turns[len(p.turns)-1] = i // the turn's results come after its last message
	}
}

// eachTool visits the calls that a message makes and the results that it has, in
// order. Only the model makes calls.
func (m *MessageEntry) eachTool(visit func(block *Content, isCall bool)) {
	for i := range m.Content {
		switch block := &m.Content[i]; {
		case block.ToolUse != nil && m.Role == RoleAssistant:
			visit(block, true)
		case block.ToolResult != nil:
			visit(block, false)
		}
	}
}

func (p *pairing) call(id string, i int) {
	c := &call{id: id, entry: i, turn: len(p.turns) - 1}
	p.open[id] = append(p.open[id], c)
	p.steps = append(p.steps, step{call: c, id: id, entry: i})
}

func (p *pairing) answer(id string, result *Content, i int) {
	answer := step{answers: true, id: id, result: result, entry: i}
	if open := p.open[id]; len(open) > 0 {
		c := open[len(open)-1]
		p.open[id] = open[:len(open)-1]
		c.result, c.from, answer.call = result, i, c
	}
	p.steps = append(p.steps, answer)
}

// takeBack takes the last step back and returns it.
func (p *pairing) takeBack() step {
	last := p.steps[len(p.steps)-1]
	p.steps = p.steps[:len(p.steps)-1]
	switch open := p.open[last.id]; {
	case last.call == nil:
	case last.answers:
		last.call.result = nil
		p.open[last.id] = append(open, last.call)
	default:
		p.open[last.id] = open[:len(open)-1]
	}
	return last
}

// arrange writes the entries in their final order.
func (p *pairing) arrange(c *Context) []Entry {
	results := p.resultsEnd(c)
	misplaced := make(map[*Content]bool) // results that stand elsewhere than they must
	orphans := make(map[*Content]bool)
	byTurn := make(map[int][]*call) // calls by the message after which their results stand
	for _, s := range p.steps {
		switch call := s.call; {
		case call == nil:
			orphans[s.result] = true
		case s.answers: // the call has a step of its own
		case call.result == nil || call.from > results[call.turn]:
			byTurn[p.turns[call.turn]] = append(byTurn[p.turns[call.turn]], call)
			if call.result != nil {
				misplaced[call.result] = true
			}
		}
	}
	if len(byTurn) == 0 && len(orphans) == 0 {
		return c.Entries
	}
	out := make([]Entry, 0, len(c.Entries)+len(byTurn))
	var origin []int
	keep := func(i int) {
		out = c.appendWithout(out, &c.Entries[i], misplaced, orphans)
		if len(out) > len(origin) && c.origin != nil {
			origin = append(origin, c.origin[i])
		}
	}
	for i := 0; i < len(c.Entries); i++ {
		keep(i)
		if calls := byTurn[i]; calls != nil {
			// After the results that are in place, which follow the turn.
			for end := results[calls[0].turn]; i < end; {
				i++
				keep(i)
			}
			for _, call := range calls {
				out = append(out, c.resultFor(call))
				origin = append(origin, notOnPath)
			}
		}
	}
	c.origin = origin
	return out
}

// resultsEnd returns for each turn the index of the last of the tool messages
// right after it, or of the turn's last message if there are none. A result up to
// there is in its place.
func (p *pairing) resultsEnd(c *Context) []int {
	ends := make([]int, len(p.turns))
	for turn, last := range p.turns {
		for last+1 < len(c.Entries) && isToolMessage(&c.Entries[last+1]) {
			last++
		}
		ends[turn] = last
	}
	return ends
}

// isToolMessage reports whether a message has tool results and is not the
// model's: some formats give results the role of the user.
func isToolMessage(e *Entry) bool {
	if e.Message == nil || e.Message.Role == RoleAssistant {
		return false
	}
	for i := range e.Message.Content {
		if e.Message.Content[i].ToolResult != nil {
			return true
		}
	}
	return e.Message.Role == RoleTool
}

// appendWithout appends an entry less the blocks that are dropped or moved.
func (c *Context) appendWithout(out []Entry, e *Entry, moved, orphans map[*Content]bool) []Entry {
	if e.Message == nil || len(moved) == 0 && len(orphans) == 0 {
		return append(out, *e)
	}
	var kept []Content
	for i := range e.Message.Content {
		block := &e.Message.Content[i]
		switch {
		case orphans[block]:
			c.Problems = append(c.Problems, orphanProblem(e.ID, block.ToolResult.ToolUseID))
		case !moved[block]:
			kept = append(kept, *block)
		}
	}
	if len(kept) == len(e.Message.Content) {
		return append(out, *e)
	}
	if len(kept) == 0 {
		return out
	}
	entry, message := *e, *e.Message
	message.Content = kept
	entry.Message = &message
	return append(out, entry)
}

// resultFor returns the entry that answers a call whose result is missing or
// came late.
func (c *Context) resultFor(call *call) Entry {
	source := &c.Entries[call.entry]
	if call.result != nil {
		late := c.Entries[call.from]
		message := *late.Message
		message.Role, message.Content = RoleTool, []Content{*call.result}
		late.Message = &message
		return late
	}
	c.Problems = append(c.Problems, interruptedProblem(source.ID, call.id))
	parent := source.ID
	return Entry{
		Type: TypeMessage, ID: InterruptedPrefix + call.id, ParentID: &parent, Timestamp: source.Timestamp,
		Message: &MessageEntry{Role: RoleTool, Content: []Content{ToolResult(call.id, interruptedText, true)}},
	}
}

func orphanProblem(entryID, callID string) Problem {
	return Problem{Kind: ProblemOrphan, EntryID: entryID, Detail: "dropped: no open call has the id " + callID}
}

func interruptedProblem(entryID, callID string) Problem {
	return Problem{Kind: ProblemInterrupted, EntryID: entryID, Detail: "call " + callID + " has no result"}
}
