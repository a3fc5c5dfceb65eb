package keyed

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// change is something that a caller wants done to a conversation. It says what
// to append given how the conversation looks, and is asked again if somebody
// else was faster. Changes are pointers, so that one can be told from another.
type change interface {
	entries(v view) []session.Entry
}

// addition is a change that adds a message.
type addition struct{ entry session.Entry }

func (a *addition) entries(view) []session.Entry { return []session.Entry{a.entry} }

// rewrite is a change of what a conversation begins with: a new summary, and
// optionally one of three other things. It is written as one compaction.
type rewrite struct {
	at      time.Time
	summary *string // nil leaves it

	truncate *truncation
	keepFrom string // the entry that comes first from now on
	replace  *replacement
}

// truncation keeps the last messages, counted where the caller saw the end.
type truncation struct {
	keepLast int
	end      string // the last entry that the caller saw; "" if there was none
	items    int    // how many items the view had from there on
}

// replacement is another history.
type replacement struct {
	entries  []session.Entry
	messages []Message // that the entries add
}

func (r *replacement) add(e session.Entry) {
	r.entries = append(r.entries, e)
	r.messages = append(r.messages, messagesOf(&e)...)
}

// onto returns from which item on a view stays, because the new history begins
// like that, and what is to be added. Nothing is recorded twice that need not be.
func (r *replacement) onto(v view) (from int, follow []session.Entry) {
	from, shared := v.overlap(r.messages)
	if follow, ok := r.after(shared); ok && (from <= v.stays || slices.Contains(v.legalCuts(), from)) {
		return from, follow
	}
	return len(v.items), r.entries
}

// after returns the entries after the first messages, if these are the messages
// of whole entries.
func (r *replacement) after(messages int) ([]session.Entry, bool) {
	n := 0
	for messages > 0 && n < len(r.entries) {
		messages -= len(messagesOf(&r.entries[n]))
		n++
	}
	return r.entries[n:], messages == 0
}

func (r *rewrite) entries(v view) []session.Entry {
	summary := v.summary
	if r.summary != nil {
		summary = *r.summary
	}
	from := 0
	var follow []session.Entry
	switch {
	case r.truncate != nil:
		from = v.cutFor(r.truncate.keep(v))
	case r.keepFrom != "":
		if from = v.index(r.keepFrom); from < 0 {
			return nil // somebody has cut there already
		}
	case r.replace != nil:
		from, follow = r.replace.onto(v)
	}
	if from == 0 && summary == v.summary && len(follow) == 0 {
		return nil
	}
	return r.compaction(v, summary, from, r.replace != nil || from == len(v.items), follow)
}

// compaction returns the entries that let a view go from an item on and add
// others. If all is true, nothing at all stays of what stands before.
//
// They are written together, in an order that lets cutShort find out whether all
// of them are there: first the result of each call that waits, if it is cleared;
// then the compaction; then the edits that clear what would stay in the context;
// then the new messages.
func (r *rewrite) compaction(v view, summary string, from int, all bool, follow []session.Entry) []session.Entry {
	first, ok := v.firstKept(from)
	if !ok {
		first, follow, from = "", append(v.again(max(from, v.stays)), follow...), len(v.items)
	}
	c := &session.CompactionEntry{Summary: summary, TokensBefore: v.tokens(), FirstKeptEntryID: first}
	mark := marks{OpenCalls: v.openBefore(from, follow)}
	var rest []session.Entry
	staying := 0
	for i, it := range v.items[:from] {
		if !v.staysAt(i, from, follow) {
			continue
		}
		if all || !it.isSystem() && !v.splitsStep(from) {
			rest = append(rest, session.Entry{Type: session.TypeContextEdit, ContextEdit: &session.ContextEditEntry{TargetID: it.entry.ID}})
		} else {
			staying++
		}
	}
	rest = append(rest, follow...)
	if len(rest) > 0 {
		mark.Follows, mark.Items = len(rest), staying+len(v.items)-from+len(follow)
	}
	c.Extra = mark.fields()
	var entries []session.Entry
	if c.FirstKeptEntryID == "" {
		entries = v.standIns()
	}
	entries = append(entries, session.Entry{Type: session.TypeCompaction, Compaction: c})
	entries = append(entries, counted(rest)...)
	for i := range entries {
		if entries[i].Timestamp.IsZero() {
			entries[i].Timestamp = r.at
		}
	}
	return entries
}

// counted gives the entries of a new history their marks. A power cut can take a
// line out of the middle of what is written together, the compaction before all
// others; what is left then tells that it is not whole.
func counted(follow []session.Entry) []session.Entry {
	follow = slices.Clone(follow)
	for i := range follow {
		mark := marks{Of: len(follow), Nth: i + 1}
		follow[i].Extra = slices.Concat(follow[i].Extra, mark.fields())
	}
	return follow
}

// keep returns how many messages to keep: also those that came since, which the
// caller has not seen.
func (t *truncation) keep(v view) int {
	keep := max(0, t.keepLast)
	if at := v.index(t.end); at >= 0 {
		for _, it := range v.items[min(at+t.items, len(v.items)):] {
			keep += len(it.messages)
		}
	}
	return keep
}

// tokens is about how many tokens the messages are. It is a note for whoever
// looks at compactions, and decides nothing.
func (v view) tokens() int {
	const bytesPerToken = 4
	return v.bytes / bytesPerToken
}

// equal reports whether two messages, both normal, are the same.
func (m *Message) equal(o *Message) bool {
	if m.Role != o.Role || m.Content != o.Content || m.ReasoningContent != o.ReasoningContent ||
		m.Model != o.Model || m.ToolCallID != o.ToolCallID || len(m.ToolCalls) != len(o.ToolCalls) || !equalFields(m.Extra, o.Extra) {
		return false
	}
	for i := range m.ToolCalls {
		a, b := &m.ToolCalls[i], &o.ToolCalls[i]
		if a.ID != b.ID || a.Name != b.Name || !reflect.DeepEqual(a.Arguments, b.Arguments) || !equalFields(a.Extra, b.Extra) {
			return false
		}
	}
	return true
}

// equalFields compares members, whatever their order.
func equalFields(a, b session.Fields) bool {
	if len(a) != len(b) {
		return false
	}
	values := make(map[string]json.RawMessage, len(a))
	for _, f := range a {
		values[f.Name] = f.Value
	}
	for _, f := range b {
		if value, ok := values[f.Name]; !ok || string(value) != string(f.Value) {
			return false
		}
	}
	return true
}
