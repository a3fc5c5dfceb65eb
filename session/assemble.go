package session

import "slices"

// assemble builds a context from a selection. It is a pure function: the same entries give
// the same context, byte for byte. Prompt caches depend on that.
func assemble(sel *selection) *sharedContext {
	edits := effectiveEdits(sel)
	c := &sharedContext{version: sel.version, edits: edits}
	c.Leaf, c.Problems, c.path, c.from = sel.leaf, sel.problems, sel.path(), len(sel.before)
	room := len(c.path) + len(c.path)/32 // some for what is appended next: see grow
	c.Entries = make([]Entry, 0, room)
	c.origin = make([]int, 0, room)
	seen := survey{unpaired: sel.unpaired}
	if sel.compaction != nil {
		c.beginCompacted(sel, edits)
		seen.lookAt(c.Entries)
	}
	state := sel.state
	// Entries before the compaction in force are older than the state that the compaction
	// recorded.
	stale := sel.compaction != nil && sel.compaction.Compaction.State != nil
	then := changes{prompted: c.Compaction != "" && c.Entries[len(c.Entries)-1].Compaction == nil}
	for i, e := range sel.entries {
		if sel.compaction != nil && e.ID == sel.compaction.ID {
			stale = false
		}
		then.note(&c.Context, sel, e, edits)
		if !stale {
			state.update(e)
		}
		c.contribute(sel, e, edits)
		c.originIs(c.from + i)
		seen.lookAt(c.Entries)
	}
	c.state = state
	c.Provider, c.Model, c.ThinkingLevel = state.Provider, state.Model, state.ThinkingLevel
	order := c.arrangementOf(&seen.pairs)
	report := noReport
	if seen.usage {
		report = c.readReport(append(then.unlike, order.unlike...))
	}
	c.countAfter(c.arrange(&order, report))
	c.mayGrow = order.isNone() && (sel.compaction == nil || sel.hasMessage())
	if c.inBlobs = seen.inBlobs; !order.isNone() {
		c.inBlobs = inBlobs(c.Entries, 0)
	}
	return c
}

// survey holds the facts about the entries that a context depends on. It looks at each one right
// after it was added, while it is still in the processor's cache.
type survey struct {
	pairs    Pairs
	unpaired bool
	usage    bool  // a provider reported what a response cost
	inBlobs  []int // the entries with content in blobs
	upTo     int   // how many entries were looked at
}

func (s *survey) lookAt(entries []Entry) {
	for ; s.upTo < len(entries); s.upTo++ {
		e := &entries[s.upTo]
		if !s.unpaired {
			s.pairs.Add(e)
		}
		if e.blobBytes() > 0 {
			s.inBlobs = append(s.inBlobs, s.upTo)
		}
		s.usage = s.usage || e.Message != nil && e.Message.Usage != nil
	}
}

// hasMessage reports whether one of the entries is a message. The first message decides
// the beginning of a compacted context.
func (sel *selection) hasMessage() bool {
	return slices.ContainsFunc(sel.entries, func(e *Entry) bool { return e.Message != nil })
}

// path returns everything that was read of the path.
func (sel *selection) path() []*Entry {
	if len(sel.before) == 0 {
		return sel.entries
	}
	return slices.Concat(sel.before, sel.entries)
}

// beginCompacted adds the beginning of a context when a compaction is in force: the system
// messages before the cut, the summary, and, if the cut splits a turn, the message that
// began it.
func (c *Context) beginCompacted(sel *selection, edits map[string]*Entry) {
	prompt := none
	for i, e := range sel.before {
		switch {
		case e.Message == nil:
		case e.Message.Role == RoleSystem:
			c.addMessage(e, edits[e.ID])
			c.originIs(i)
		case e.BeginsTurn():
			prompt = int32(i)
		}
	}
	c.Compaction = sel.compaction.ID
	c.Entries = append(c.Entries, *sel.compaction)
	c.originIs(notOnPath)
	if prompt != none && sel.splitsTurn() {
		c.addMessage(sel.before[prompt], edits[sel.before[prompt].ID])
		c.originIs(int(prompt))
	}
}

// splitsTurn reports whether the compaction in force keeps the end of a turn without its
// beginning. It does if the first message that it keeps, or that came since, does not
// begin a turn.
func (sel *selection) splitsTurn() bool {
	if sel.compaction.keepsNothing() {
		return false
	}
	for _, e := range sel.entries {
		if e.Message != nil {
			return !e.BeginsTurn()
		}
	}
	return false
}

// keepsNothing reports whether a compaction keeps no entry before it.
func (e *Entry) keepsNothing() bool {
	first := e.Compaction.FirstKeptEntryID
	return first == "" || first == e.ID
}

// originIs records where the entries that were added last are on the path: the first one is
// at that place, and the others came with it.
func (c *Context) originIs(at int) {
	for len(c.origin) < len(c.Entries) {
		c.origin = append(c.origin, at)
		at = notOnPath
	}
}

// effectiveEdits returns the last edit of each entry that was not reverted.
func effectiveEdits(sel *selection) map[string]*Entry {
	var edits map[string]*Entry
	for _, e := range sel.path() {
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

// contribute adds what an entry of the path contributes to the context.
func (c *Context) contribute(sel *selection, e *Entry, edits map[string]*Entry) {
	switch {
	case e.Message != nil:
		c.addMessage(e, edits[e.ID])
	case e.BranchSummary != nil && e.BranchSummary.Summary != "":
		c.Entries = append(c.Entries, *e)
	case e.Merge != nil && !sel.reverted[e.ID]:
		c.Entries = append(c.Entries, *e)
		for _, picked := range sel.picked[e.ID] {
			c.addMessage(picked, edits[picked.ID])
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
	message.Tokens, message.Extra = nil, nil // they are about the original content
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

// replacedResults returns the tool results among the blocks, each with another text. They
// stay because their calls need an answer.
func replacedResults(blocks []Content, text string) []Content {
	var results []Content
	for _, b := range blocks {
		if b.ToolResult != nil {
			results = append(results, ToolResult(b.ToolResult.ToolUseID, text, b.ToolResult.IsError))
		}
	}
	return results
}

// pairTools gives every tool call its result right after the message that made the call,
// and every result its call, because providers reject anything else. A call without an
// answer gets one that says so; a late answer is moved to its call; an answer without a
// call is dropped. All of this is reported.
func (c *Context) pairTools() {
	order := c.pair()
	c.arrange(&order, noReport)
}

// pair works out what that requires.
func (c *Context) pair() arrangement {
	var pairs Pairs
	for i := range c.Entries {
		pairs.Add(&c.Entries[i])
	}
	return c.arrangementOf(&pairs)
}

// arrangementOf is pair for a caller that has already fed the entries to a Pairs.
func (c *Context) arrangementOf(pairs *Pairs) arrangement {
	if len(pairs.Refs()) == 0 {
		return arrangement{}
	}
	var runs []modelRun
	for i := range c.Entries {
		runs = addToRuns(runs, &c.Entries[i], i)
	}
	return c.arrangeResults(pairs.Refs(), runs)
}

// modelRun is a run of consecutive messages of the model, which a provider sees as one
// message. The results of its calls come after it.
type modelRun struct {
	first, last int // indices in the context
	results     int // the last of the tool messages right after it, or last
}

func addToRuns(runs []modelRun, e *Entry, i int) []modelRun {
	isModel := e.Message != nil && e.Message.Role == RoleAssistant
	n := len(runs) - 1
	switch {
	case isModel && n >= 0 && runs[n].results == i-1 && runs[n].last == i-1:
		runs[n].last, runs[n].results = i, i
	case isModel:
		return append(runs, modelRun{i, i, i})
	case n >= 0 && runs[n].results == i-1 && isToolMessage(e):
		runs[n].results = i
	}
	return runs
}

// arrangement is the difference between the entries on the path and what is sent.
type arrangement struct {
	dropped map[*Content]bool  // results without a call
	moved   map[*Content]bool  // results that must be elsewhere
	missing map[int][]movedRef // results to insert, by the index after which they belong
	unlike  []span             // where responses were requested before results came: see changes
}

// isNone reports whether all entries are sent in their places.
func (a *arrangement) isNone() bool { return len(a.missing) == 0 && len(a.dropped) == 0 }

// arrangeResults decides where each result is sent. One that comes before the end of its call's run
// stays where it is; others, and those that are missing, go after the run.
func (c *Context) arrangeResults(refs []Ref, runs []modelRun) arrangement {
	a := arrangement{dropped: make(map[*Content]bool), moved: make(map[*Content]bool), missing: make(map[int][]movedRef)}
	for _, ref := range refs {
		if !ref.Call {
			if ref.Pair == NoPair {
				a.dropped[c.block(ref)] = true
			}
			continue // its call says where it belongs
		}
		run := runOf(runs, ref.Entry)
		until := run.last + 1 // messages of the model before the result
		if ref.Pair == NoPair {
			a.missing[run.results] = append(a.missing[run.results], movedRef{call: ref})
		} else if result := refs[ref.Pair]; result.Entry > run.results {
			a.moved[c.block(result)] = true
			a.missing[run.results] = append(a.missing[run.results], movedRef{ref, &result})
			until = result.Entry
		}
		a.unlike = addSpan(a.unlike, ref.Entry+1, until)
	}
	return a
}

// arrange puts the entries in their final order. It returns where those up to an index end
// then.
func (c *Context) arrange(a *arrangement, index int) int {
	if a.isNone() {
		return index
	}
	out := make([]Entry, 0, len(c.Entries)+len(a.missing))
	var origin []int
	now := noReport
	for i := range c.Entries {
		out = c.appendWithout(out, &c.Entries[i], a.moved, a.dropped)
		if len(out) > len(origin) && c.origin != nil {
			origin = append(origin, c.origin[i])
		}
		if i == index {
			now = len(out) - 1
		}
		for _, m := range a.missing[i] {
			out, origin = append(out, c.resultFor(m)), append(origin, notOnPath)
		}
	}
	c.Entries, c.origin = out, origin
	return now
}

func (c *Context) block(ref Ref) *Content { return &c.Entries[ref.Entry].Message.Content[ref.Block] }

// runOf returns the run that an entry is in.
func runOf(runs []modelRun, entry int) modelRun {
	n, _ := slices.BinarySearchFunc(runs, entry, func(r modelRun, at int) int { return r.last - at })
	return runs[n]
}

// movedRef is a call whose result is missing, or came late and is moved.
type movedRef struct {
	call   Ref
	result *Ref
}

// appendWithout appends an entry without the blocks that are dropped or moved.
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
	message.Content, message.Tokens = kept, nil // the count was of all blocks
	entry.Message = &message
	return append(out, entry)
}

// resultFor returns the entry that answers a call whose result is missing or
// came late.
func (c *Context) resultFor(m movedRef) Entry {
	if m.result != nil {
		late := c.Entries[m.result.Entry]
		message := *late.Message
		if len(message.Content) > 1 {
			message.Tokens = nil // the count was of all blocks
		}
		message.Role, message.Content = RoleTool, []Content{*c.block(*m.result)}
		late.Message = &message
		return late
	}
	source := &c.Entries[m.call.Entry]
	c.Problems = append(c.Problems, interruptedProblem(source.ID, m.call.ID))
	parent := source.ID
	return Entry{
		Type: TypeMessage, ID: InterruptedPrefix + m.call.ID, ParentID: &parent, Timestamp: source.Timestamp,
		Message: &MessageEntry{Role: RoleTool, Content: []Content{ToolResult(m.call.ID, InterruptedText, true)}},
	}
}

func orphanProblem(entryID, callID string) Problem {
	return Problem{Kind: ProblemOrphan, EntryID: entryID, Detail: "dropped: no open call has the id " + callID}
}

func interruptedProblem(entryID, callID string) Problem {
	return Problem{Kind: ProblemInterrupted, EntryID: entryID, Detail: "call " + callID + " has no result"}
}
