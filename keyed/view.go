package keyed

import (
	"slices"
	"strconv"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// view is what a conversation looks like: the summary and the messages after it.
// It is a value, made anew by each entry: what a reader has got never changes.
type view struct {
	items    []item
	messages int // of all items
	bytes    int // of all items, about
	summary  string
	cleared  []string // calls without a result that are no longer in the view
	state    session.State
	updated  time.Time
}

// item is an entry and the messages it adds.
type item struct {
	entry    session.Entry
	messages []Message
	bytes    int
	late     []string // results that are not among the messages: their calls are cleared
	// merged: another branch's entry, which a merge brought. The view cannot
	// begin with it.
	merged bool
}

// viewOf returns the view of a context.
func viewOf(c *session.Context, updated time.Time) view {
	var v view
	var merged []string
	for _, e := range c.Entries {
		if e.Compaction != nil { // the one in force, after the system messages
			v.summary = e.Compaction.Summary
			v.cleared = marksOf(e.Compaction.Extra).OpenCalls
			continue
		}
		v = v.after(e)
		v.items[len(v.items)-1].merged = slices.Contains(merged, e.ID)
		if e.Merge != nil {
			merged = append(merged, e.Merge.EntryIDs...)
		}
	}
	v.state = session.State{Provider: c.Provider, Model: c.Model, ThinkingLevel: c.ThinkingLevel}
	v.updated = updated
	return v
}

// after returns the view after one more entry.
func (v view) after(e session.Entry) view {
	v.updated = e.Timestamp
	if e.Compaction != nil {
		return v.compacted(e.Compaction)
	}
	it := item{entry: e}
	for _, m := range messagesOf(&e) {
		if m.ToolCallID != "" && slices.Contains(v.cleared, m.ToolCallID) {
			v.cleared = without(v.cleared, m.ToolCallID)
			it.late = append(it.late, m.ToolCallID)
			continue // its call is not here: no model would take it
		}
		for _, call := range m.ToolCalls {
			v.cleared = without(v.cleared, call.ID) // the id is used again
		}
		it.messages = append(it.messages, m)
		it.bytes += m.size()
	}
	if e.Message != nil && e.Message.Role == session.RoleAssistant && e.Message.Model != "" {
		v.state.Model = e.Message.Model
	}
	v.items = append(v.items, it)
	v.messages += len(it.messages)
	v.bytes += it.bytes
	return v
}

func (v view) compacted(c *session.CompactionEntry) view {
	from := len(v.items)
	if c.FirstKeptEntryID != "" {
		from = max(0, v.index(c.FirstKeptEntryID))
	}
	stays := v.staysBefore(from, c.FirstKeptEntryID != "")
	for _, it := range v.items[:from] {
		v.messages -= len(it.messages)
		v.bytes -= it.bytes
	}
	for _, it := range stays {
		v.messages += len(it.messages)
		v.bytes += it.bytes
	}
	if from > 0 {
		v.items = slices.Concat(stays, v.items[from:]) // so that the rest can be forgotten
	}
	v.summary = c.Summary
	v.cleared = marksOf(c.Extra).OpenCalls
	return v
}

// staysBefore returns what stays of the items before a cut, as session.Context has
// it: system messages, and the message that began a turn which the cut splits.
func (v view) staysBefore(from int, keeps bool) []item {
	var stays []item
	prompt := -1
	for i := range v.items[:from] {
		it := &v.items[i]
		switch {
		case it.merged || it.entry.Message == nil:
		case it.entry.Message.Role == session.RoleSystem:
			stays = append(stays, *it)
		case it.entry.BeginsTurn():
			prompt = i
		}
	}
	first := slices.IndexFunc(v.items[from:], func(it item) bool { return it.entry.Message != nil && !it.merged })
	if keeps && prompt >= 0 && first >= 0 && !v.items[from+first].entry.BeginsTurn() {
		stays = append(stays, v.items[prompt])
	}
	return stays
}

func without(list []string, s string) []string {
	if i := slices.Index(list, s); i >= 0 {
		return slices.Concat(list[:i], list[i+1:]) // a copy: others may have the list
	}
	return list
}

// size is about how much memory a message takes.
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

// index returns where the item of an entry is, or -1. Merged entries do not
// count: they may be there twice.
func (v view) index(id string) int {
	return slices.IndexFunc(v.items, func(it item) bool { return it.entry.ID == id && !it.merged })
}

// last returns the last entry that is in its place, or "".
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

// cut returns from which item on a view goes that keeps the last messages: so
// many of them, and those without which they cannot stand.
func (v view) cut(keepLast int) int {
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
	var cuts session.Cuts
	for i := range v.items {
		cuts.Add(v.items[i].entry)
	}
	for _, legal := range slices.Backward(cuts.Legal()) {
		if legal <= at && !v.items[legal].merged {
			return legal
		}
	}
	return 0
}

// overlap returns from which item on the view is the beginning of a history, and
// how many messages that is.
func (v view) overlap(history []Message) (from, shared int) {
	rest := v.messages
	for i := range v.items {
		if rest > 0 && rest <= len(history) && !v.items[i].merged && startsWith(history, v.items[i:]) {
			return i, rest
		}
		rest -= len(v.items[i].messages)
	}
	return len(v.items), 0
}

func startsWith(history []Message, items []item) bool {
	for i := range items {
		for j := range items[i].messages {
			if !items[i].messages[j].equal(&history[0]) {
				return false
			}
			history = history[1:]
		}
	}
	return true
}

// clearedBefore returns the calls that a view from an item on, followed by more
// entries, would lack while their results come later or are in it.
func (v view) clearedBefore(from int, follow []session.Entry) []string {
	open := v.cleared
	for _, it := range v.items[:from] {
		for _, m := range it.messages {
			open = without(open, m.ToolCallID)
			for _, call := range m.ToolCalls {
				open = append(slices.Clip(open), call.ID)
			}
		}
	}
	for _, it := range v.items[from:] {
		for _, m := range it.messages {
			open = without(open, m.ToolCallID)
		}
		open = append(slices.Clip(open), it.late...) // which must stay left out
	}
	for i := range follow { // given by the caller, who wants to see them
		for _, m := range messagesOf(&follow[i]) {
			open = without(open, m.ToolCallID)
		}
	}
	return open
}

// with returns the view as it will be after changes that are not written yet.
// Their entries have no ids; made-up ones tell them apart.
func (v view) with(changes []change) view {
	v.items = v.items[:len(v.items):len(v.items)] // what is written goes on in the same memory
	n := 0
	for _, c := range changes {
		for _, e := range c.entries(v) {
			n++
			e.ID = "unwritten " + strconv.Itoa(n)
			v = v.after(e)
		}
	}
	return v
}
