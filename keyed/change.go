package keyed

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// change is something that a caller wants done to a conversation. It returns the entries to
// append, given the present view, and is asked again if another writer was faster. Changes
// are pointers, so that they can be compared.
type change interface {
	entries(v view) []session.Entry
}

// addition is a change that adds a message.
type addition struct{ entry session.Entry }

func (a *addition) entries(view) []session.Entry { return []session.Entry{a.entry} }

// rewrite changes what a conversation begins with: a new summary, and optionally one of three
// other things. It is written as one compaction.
type rewrite struct {
	at      time.Time
	summary *string // nil means no change

	truncate *truncation
	keepFrom string // the entry that comes first from now on
	replace  *replacement
}

// truncation keeps the last messages, counted from the end that the caller saw.
type truncation struct {
	keepLast int
	end      string // the last entry that the caller saw; "" if there was none
	items    int    // how many items the view had from there on
}

// replacement replaces the history.
type replacement struct {
	entries  []session.Entry
	messages []Message // that the entries add
}

func (r *replacement) add(e session.Entry) {
	r.entries = append(r.entries, e)
	r.messages = append(r.messages, messagesOf(&e)...)
}

// onto returns the item from which a view stays, because the new history begins with that
// part, and the entries to add after it. So nothing is recorded a second time without need.
func (r *replacement) onto(v view) (from int, follow []session.Entry) {
	from, shared := v.overlap(r.messages)
	if follow, ok := r.after(shared); ok && (from <= v.stays || slices.Contains(v.legalCuts(), from)) {
		return from, follow
	}
	return len(v.items), r.entries
}

// after returns the entries after the first messages, if those are the messages of whole
// entries.
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
			return nil // somebody has already cut there
		}
	case r.replace != nil:
		from, follow = r.replace.onto(v)
	}
	if from == 0 && summary == v.summary && len(follow) == 0 {
		return nil
	}
	return r.compaction(v, summary, from, r.replace != nil || from == len(v.items), follow)
}

// compaction returns the entries that keep a view from an item on and add others to it. If
// all is true, nothing of what comes before that item stays.
//
// They are written together, in an order that lets cutShort detect whether all of them are
// there: first a result for each waiting call that is cleared; then the compaction; then the
// edits that clear what would otherwise stay in the context; then the new messages.
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

// counted numbers the entries of a new history. A power cut can take any line out of the
// middle of what is written together, even the compaction. The numbers in the rest then show
// that something is missing.
func counted(follow []session.Entry) []session.Entry {
	follow = slices.Clone(follow)
	for i := range follow {
		mark := marks{Of: len(follow), Nth: i + 1}
		follow[i].Extra = slices.Concat(follow[i].Extra, mark.fields())
	}
	return follow
}

// keep returns how many messages to keep, including those that came since and that the
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

// tokens returns roughly how many tokens the messages have. It is information for people who
// look at compactions; nothing depends on it.
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
