package keyed

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// change is something that a caller wants done to a conversation. Changes are pointers, so
// that they can be compared.
type change interface {
	// entries returns the entries to append, given the present view. It is asked again if
	// another writer was faster.
	entries(v view) []session.Entry
	// foresee returns the view after the change, for readers who come before it is written.
	// It is the nth change that waits.
	foresee(v view, nth int) view
}

// unwritten returns an id for the view of something that has none yet.
func unwritten(nth, part int) string { return fmt.Sprint("unwritten ", nth, " ", part) }

// addition is a change that adds a message.
type addition struct{ entry session.Entry }

func (a *addition) entries(view) []session.Entry { return []session.Entry{a.entry} }

func (a *addition) foresee(v view, nth int) view {
	e := a.entry
	e.ID = unwritten(nth, 0)
	return v.after(e)
}

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

// cut is what a rewrite does to a view: it keeps the items from one on, some of those before
// it, and adds entries.
type cut struct {
	summary string
	from    int
	first   string // the entry at the cut, or "" if none is kept where it is
	follow  []session.Entry
	cleared []string // calls whose results, if they come, must not be shown
	stays   []bool   // which of the items before from stay in the view
	edits   []string // the entries that would stay in the context, but must not
}

// cut returns what the rewrite does to a view, or nil if that is nothing.
func (r *rewrite) cut(v view) *cut {
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
			return nil // another writer has already cut there
		}
	case r.replace != nil:
		from, follow = r.replace.onto(v)
	}
	if from == 0 && summary == v.summary && len(follow) == 0 {
		return nil
	}
	return v.cutFrom(summary, from, r.replace != nil || from == len(v.items), follow)
}

// cutFrom returns the cut that keeps a view from an item on and adds entries to it. If all is
// true, nothing of what comes before that item stays.
func (v view) cutFrom(summary string, from int, all bool, follow []session.Entry) *cut {
	c := &cut{summary: summary, from: from, follow: follow}
	var ok bool
	if c.first, ok = v.firstKept(c.from); !ok {
		c.first, c.follow, c.from = "", append(v.again(max(from, v.stays)), follow...), len(v.items)
	}
	c.cleared = v.openBefore(c.from, c.follow)
	c.stays = make([]bool, c.from)
	for i, it := range v.items[:c.from] {
		if !v.staysAt(i, c.from, c.follow) {
			continue
		}
		if c.stays[i] = !all && (it.isSystem() || v.splitsStep(c.from)); !c.stays[i] {
			c.edits = append(c.edits, it.entry.ID)
		}
	}
	return c
}

func (r *rewrite) foresee(v view, nth int) view {
	c := r.cut(v)
	if c == nil {
		return v
	}
	next := view{cut: true, kept: c.first, summary: c.summary, cleared: c.cleared}
	keep := func(it item) {
		next = next.after(it.entry)
		next.items[len(next.items)-1].merged = it.merged
	}
	for _, system := range []bool{true, false} { // the message that began the turn comes last
		for i, it := range v.items[:c.from] {
			if c.stays[i] && it.isSystem() == system {
				keep(it)
			}
		}
	}
	next.stays = len(next.items) + max(0, v.stays-c.from)
	for _, it := range v.items[c.from:] {
		keep(it)
	}
	for i, e := range c.follow {
		e.ID = unwritten(nth, i)
		next = next.after(e)
	}
	next.updated = r.at
	return next
}

func (r *rewrite) entries(v view) []session.Entry {
	if c := r.cut(v); c != nil {
		return c.entries(v, r.at)
	}
	return nil
}

// entries returns a compaction and what belongs to it. They are written together, in an order
// that lets cutShort detect whether all of them are there: first a result for each waiting
// call that is cleared; then the compaction; then the edits that clear what would otherwise
// stay in the context; then the new messages.
func (c *cut) entries(v view, at time.Time) []session.Entry {
	var rest []session.Entry
	for _, id := range c.edits {
		rest = append(rest, session.ContextEdit(id))
	}
	rest = append(rest, c.follow...)
	mark := marks{OpenCalls: c.cleared}
	if len(rest) > 0 {
		mark.Follows, mark.Items = len(rest), len(v.items)-c.from+len(c.follow)
		for _, stays := range c.stays {
			if stays {
				mark.Items++
			}
		}
	}
	var entries []session.Entry
	if c.first == "" {
		entries = v.standIns()
	}
	entries = append(entries, session.Entry{Type: session.TypeCompaction, Compaction: &session.CompactionEntry{
		Summary: c.summary, TokensBefore: v.tokens(), FirstKeptEntryID: c.first, Extra: mark.fields(),
	}})
	entries = append(entries, counted(rest)...)
	for i := range entries {
		if entries[i].Timestamp.IsZero() {
			entries[i].Timestamp = at
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
