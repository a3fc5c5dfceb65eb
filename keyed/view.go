package keyed

import (
	"reflect"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// view is what a conversation looks like: the summary, and the messages that count in
// addition to it. It is the session's context, unpaired. A view is a value: every entry
// makes a new one, and lists are never written below their length. So a reader can keep
// a view without a lock while the chat continues.
type view struct {
	items    []item
	stays    int    // how many items are from before the cut and stay anyway
	kept     string // the entry at the cut; "" if nothing is kept or nothing was cut
	messages int    // in all items
	bytes    int    // in all items, roughly
	summary  string
	cleared  []string // calls without a result that are no longer in the view
	updated  time.Time
	leaf     string // the entry that the view ends with; "" before the first
}

// item is an entry and the messages it adds.
type item struct {
	entry       session.Entry
	messages    []Message
	bytes       int
	lateResults []string // results that are not among the messages because their calls were cleared
	// merged means that a merge brought the entry from another branch. The view cannot
	// begin with it.
	merged bool
}

// viewOf returns the view of a context.
func viewOf(c *session.Context, updated time.Time) view {
	var v view
	if at := compactionIn(c); at >= 0 {
		v.compact(&c.Entries[at])
		v.stays = countKeptBeforeCut(c.Entries, at)
	}
	var merged []string
	for _, e := range c.Entries {
		if e.Compaction != nil {
			continue
		}
		v = v.after(e)
		v.items[len(v.items)-1].merged = slices.Contains(merged, e.ID)
		if e.Merge != nil {
			merged = append(merged, e.Merge.EntryIDs...)
		}
	}
	v.updated, v.leaf = updated, c.Leaf
	return v
}

func (v *view) compact(e *session.Entry) {
	v.kept, v.summary = e.Compaction.FirstKeptEntryID, e.Compaction.Summary
	v.cleared = marksOf(e.Extra).OpenCalls
}

// countKeptBeforeCut returns how many entries of a context come from before its cut: system
// messages and, after the compaction, the message that began the turn if the cut splits
// it. compaction is the index of the compaction. If the entry at the cut is missing,
// because an edit cleared it, a message there that begins a turn is taken for that one.
// The view then does not begin with it, which does no harm.
func countKeptBeforeCut(entries []session.Entry, compaction int) int {
	kept := entries[compaction].Compaction.FirstKeptEntryID
	next := compaction + 1
	if kept == "" || next == len(entries) || entries[next].ID == kept || !entries[next].BeginsTurn() {
		return compaction
	}
	return compaction + 1
}

// compactionIn returns the index of the compaction in force, or -1.
func compactionIn(c *session.Context) int {
	return slices.IndexFunc(c.Entries, func(e session.Entry) bool { return e.Compaction != nil })
}

// after returns the view after one more message entry.
func (v view) after(e session.Entry) view {
	v.updated, v.leaf = e.Timestamp, e.ID
	it := item{entry: e}
	for _, m := range messagesOf(&e) {
		if m.ToolCallID != "" && slices.Contains(v.cleared, m.ToolCallID) {
			v.cleared = without(v.cleared, m.ToolCallID)
			it.lateResults = append(it.lateResults, m.ToolCallID)
			continue // its call is not here, so no model would accept it
		}
		for _, call := range m.ToolCalls {
			v.cleared = without(v.cleared, call.ID) // the id was reused
		}
		it.messages = append(it.messages, m)
		it.bytes += m.size()
	}
	v.items = append(v.items, it)
	v.messages += len(it.messages)
	v.bytes += it.bytes
	return v
}

func without(list []string, s string) []string {
	if i := slices.Index(list, s); i >= 0 {
		return slices.Concat(list[:i], list[i+1:]) // a copy: other views may share the list
	}
	return list
}

// size returns roughly how much memory a message takes.
func (m *Message) size() int {
	const each = 300 // the structures around the text
	n := each + len(m.Content) + len(m.ReasoningContent)
	for i := range m.ToolCalls {
		n += each + sizeOf(m.ToolCalls[i].Arguments)
	}
	for _, f := range m.Extra {
		n += len(f.Value)
	}
	return n
}

func sizeOf(v any) int {
	const each = 16
	n := each
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			n += len(name) + sizeOf(value)
		}
	case []any:
		for _, value := range v {
			n += sizeOf(value)
		}
	case string:
		n += len(v)
	}
	return n
}

// index returns the index of an entry's item, or -1. Merged entries do not count,
// because they may be there twice.
func (v view) index(id string) int {
	return slices.IndexFunc(v.items, func(it item) bool { return it.entry.ID == id && !it.merged })
}

// last returns the last entry that is not merged, or "".
func (v view) last() string {
	for _, it := range slices.Backward(v.items) {
		if !it.merged {
			return it.entry.ID
		}
	}
	return ""
}

// history returns a copy of the messages.
func (v view) history() []Message { return copyMessages(v.items, v.messages) }

func copyMessages(items []item, n int) []Message {
	messages := make([]Message, 0, n)
	for i := range items {
		for _, m := range items[i].messages {
			messages = append(messages, m.clone())
		}
	}
	return messages
}

// cutFor returns the item from which a view must go to keep the last messages: that many of
// them, and the entries that they need. 0 leaves the view as it is.
func (v view) cutFor(keepLast int) int {
	if keepLast <= 0 {
		return len(v.items)
	}
	if keepLast >= v.messages {
		return 0
	}
	at := len(v.items)
	for kept := 0; kept < keepLast; {
		at--
		kept += len(v.items[at].messages)
	}
	return v.cutAt(at)
}

// cutAt returns the last item, up to a given one, before which the view may be cut, or 0 if
// there is none.
func (v view) cutAt(at int) int {
	if at >= len(v.items) {
		return len(v.items)
	}
	for _, legal := range slices.Backward(v.legalCuts()) {
		if legal <= at {
			return legal
		}
	}
	return 0
}

// firstKept returns the entry at the cut of a view that goes from an item on, or "" if
// nothing is kept. ok is false if the view would begin with a tool result, which no
// context may; then its messages must be recorded again.
func (v view) firstKept(from int) (id string, ok bool) {
	if v.kept != "" && from <= v.stays && from < len(v.items) {
		return v.kept, true // the cut stays where it is
	}
	for _, it := range v.items[max(from, v.stays):] {
		if len(it.messages) == 0 && len(it.lateResults) > 0 {
			continue // it adds no messages
		}
		return it.entry.ID, it.messages == nil || it.messages[0].ToolCallID == ""
	}
	return "", true
}

// isKept reports whether an item stays in the session's context after a compaction that keeps the
// items from a later one on. A system message stays, and so does the message that began the turn
// that is cut.
func (v view) isKept(at, from int, follow []session.Entry) bool {
	if it := &v.items[at]; it.isSystem() {
		return true
	} else if !it.beginsTurn() {
		return false
	}
	if slices.ContainsFunc(v.items[at+1:from], func(it item) bool { return it.beginsTurn() }) {
		return false // a later message begins the turn
	}
	for i := from; i < len(v.items); i++ {
		if v.items[i].entry.Message != nil {
			return !v.items[i].beginsTurn()
		}
	}
	return len(follow) == 0 || !follow[0].BeginsTurn()
}

// splitsStep reports whether a view that goes from an item on begins in the middle of the
// model's work with tools. Then the prompt must stay. An answer needs no prompt: a caller who
// wants to keep one message gets one.
func (v view) splitsStep(from int) bool {
	for i := from; i < len(v.items); i++ {
		if m := v.items[i].entry.Message; m != nil {
			return slices.ContainsFunc(m.Content, func(c session.Content) bool { return c.ToolUse != nil })
		}
	}
	return false
}

func (it *item) isSystem() bool {
	return it.entry.Message != nil && it.entry.Message.Role == session.RoleSystem && !it.merged
}

func (it *item) beginsTurn() bool { return it.entry.BeginsTurn() && !it.merged }

// legalCuts returns the items before which the view may be cut. Items from before the cut in
// force are not among them: cutting there would bring back everything in between.
func (v view) legalCuts() []int {
	var cuts session.Cuts
	for i := range v.items {
		cuts.Add(v.items[i].entry)
	}
	return slices.DeleteFunc(cuts.Legal(), func(at int) bool { return at <= v.stays || v.items[at].merged })
}

// overlap returns the item from which the view is the beginning of a history, and how many
// entries of that it has. The history has the messages of one entry after the other.
func (v view) overlap(history [][]Message) (from, shared int) {
	for i := range v.items {
		if shared := startsWith(history, v.items[i:]); shared > 0 && !v.items[i].merged {
			return i, shared
		}
	}
	return len(v.items), 0
}

// startsWith returns how many entries at the beginning of a history have the messages of items: 0
// if it begins otherwise, or if the items end within an entry. The items may come from other
// entries: another program may have recorded several results in one.
func startsWith(history [][]Message, items []item) (shared int) {
	var rest []Message // of the last shared entry
	for i := range items {
		for j := range items[i].messages {
			if len(rest) == 0 && shared < len(history) {
				rest, shared = history[shared], shared+1
			}
			if len(rest) == 0 || !reflect.DeepEqual(items[i].messages[j], rest[0]) { // both are normal
				return 0
			}
			rest = rest[1:]
		}
	}
	if len(rest) > 0 {
		return 0
	}
	return shared
}

// openBefore returns the calls whose results, if they come, must not be shown in a view that
// goes from an item on and is followed by more entries.
func (v view) openBefore(from int, follow []session.Entry) []string {
	var pairs session.Pairs
	for i := range v.items[:from] {
		pairs.Add(&v.items[i].entry)
	}
	open := slices.Clone(v.cleared)
	for _, ref := range pairs.Refs() {
		if ref.Call && ref.Pair == session.NoPair {
			open = append(open, ref.ID)
		}
	}
	for _, it := range v.items[from:] {
		open = append(open, it.lateResults...) // these must stay hidden too
	}
	for i := range follow { // the caller added these calls, and wants to see their results
		for _, m := range messagesOf(&follow[i]) {
			open = without(open, m.ToolCallID)
		}
	}
	return open
}
