package keyed

import (
	"slices"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// change is something that a caller wants done to a conversation.
type change struct {
	// plan returns the view after the change, and the entries to append that make it so, each
	// with an id. It is asked again if another writer was faster, and it is asked for what
	// readers see before the change is written.
	plan func(v view) (view, []session.Entry)
	// summary is not nil if the change sets a summary and does nothing else. Then it may
	// become a part of the truncation that follows.
	summary *string
	// given are the entries of a new history. They have the same ids in every plan, unless some of
	// them landed without the others.
	given []session.Entry
}

// addition adds a message.
func addition(e session.Entry) *change {
	e.ID = session.NewID()
	return &change{plan: func(v view) (view, []session.Entry) { return v.after(e), []session.Entry{e} }}
}

// rewrite changes what a conversation begins with. It sets a summary, unless that is nil, and
// lets the view go on from an item of it, followed by more entries. If all is true, nothing
// of the items before it stays. An item of -1 means that there is nothing to do.
func rewrite(at time.Time, summary *string, to func(v view) (from int, all bool, follow []session.Entry)) *change {
	return &change{plan: func(v view) (view, []session.Entry) {
		from, all, follow := to(v)
		c := cut{at: at, summary: v.summary, from: from, all: all || from == len(v.items), follow: follow}
		if summary != nil {
			c.summary = *summary
		}
		if from < 0 || from == 0 && c.summary == v.summary && len(follow) == 0 {
			return v, nil
		}
		return c.apply(v)
	}}
}

// summaryOnly sets a summary.
func summaryOnly(at time.Time, summary string) *change {
	ch := rewrite(at, &summary, func(view) (int, bool, []session.Entry) { return 0, false, nil })
	ch.summary = &summary
	return ch
}

// replacement replaces the history by entries, and sets a summary, unless that is nil. If the new
// history begins with what the view ends with, that stays, so nothing is recorded a second time
// without need.
func replacement(at time.Time, summary *string, entries []session.Entry) *change {
	messages := make([][]Message, len(entries))
	for i := range entries {
		messages[i] = messagesOf(&entries[i])
	}
	ch := rewrite(at, summary, func(v view) (from int, all bool, follow []session.Entry) {
		from, shared := v.overlap(messages)
		if from <= v.stays || slices.Contains(v.legalCuts(), from) {
			return from, true, entries[shared:]
		}
		return len(v.items), true, entries
	})
	ch.given = entries
	ch.renew()
	return ch
}

// renew gives the entries of a new history other ids, because some of these are in the log.
func (ch *change) renew() {
	for i := range ch.given {
		ch.given[i].ID = session.NewID()
	}
}

// truncation keeps the last messages, in a rewrite, counted from the end of the view that the
// caller saw: later messages stay, too.
func truncation(keepLast int, seen view) func(v view) (from int, all bool, follow []session.Entry) {
	end := seen.last()
	endIn := func(v view) int {
		if end == "" {
			return 0 // the caller saw nothing, so all of the view came later
		}
		return v.index(end)
	}
	after := len(seen.items) - endIn(seen) // how many items it had from there on
	return func(v view) (from int, all bool, follow []session.Entry) {
		keep := keepLast
		if at := endIn(v); at >= 0 {
			for _, it := range v.items[min(at+after, len(v.items)):] {
				keep += len(it.messages)
			}
		}
		return v.cutFor(keep), false, nil
	}
}

// cut is what a rewrite does to a view.
type cut struct {
	at      time.Time
	summary string
	from    int  // the item that comes first
	all     bool // nothing from before it stays
	follow  []session.Entry
}

// apply returns the view after the cut, and the entries that make it. A compaction is enough if
// it leaves the right messages in the session's context. Otherwise a new history starts beside
// the old one, with copies of the messages that stay.
func (c *cut) apply(v view) (view, []session.Entry) {
	next := view{summary: c.summary, cleared: v.openBefore(c.from, c.follow), updated: c.at}
	first, fits := v.firstKept(c.from)
	var systems, prompts []item
	for i, it := range v.items[:c.from] {
		switch {
		case !v.isKept(i, c.from, c.follow):
		case c.all || !it.isSystem() && !v.splitsStep(c.from):
			fits = false // the context would keep it
		case it.isSystem():
			systems = append(systems, it)
		default:
			prompts = append(prompts, it)
		}
	}
	kept := append(prompts, v.items[c.from:]...)
	compaction := session.Entry{
		Type: session.TypeCompaction, ID: session.NewID(), Timestamp: c.at, Extra: marks{OpenCalls: next.cleared}.fields(),
		Compaction: &session.CompactionEntry{Summary: c.summary, TokensBefore: v.tokens()},
	}
	if !fits || first == "" {
		var entries []session.Entry
		if v.leaf != "" {
			entries = []session.Entry{{Type: session.TypeLeaf, ID: session.NewID(), Timestamp: c.at, Leaf: &session.LeafEntry{FromID: v.leaf}}}
		}
		again := copies(systems, c.at)
		next.stays = len(again)
		entries = append(append(append(entries, again...), compaction), copies(kept, c.at)...)
		return next.afterAll(batch(append(entries, c.follow...), v.leaf))
	}
	if c.from == 0 && c.summary == v.summary && slices.Equal(next.cleared, v.cleared) {
		return v.afterAll(batch(c.follow, v.leaf))
	}
	compaction.Compaction.FirstKeptEntryID, next.kept = first, first
	for _, it := range append(systems, kept...) {
		next = next.after(it.entry)
		next.items[len(next.items)-1].merged = it.merged
	}
	next.stays, next.updated = len(systems)+len(prompts)+max(0, v.stays-c.from), c.at
	return next.afterAll(batch(append([]session.Entry{compaction}, c.follow...), v.leaf))
}

// afterAll returns the view after entries, and the entries.
func (v view) afterAll(entries []session.Entry) (view, []session.Entry) {
	for _, e := range entries {
		if e.Compaction == nil && e.Leaf == nil {
			v = v.after(e)
		}
		v.leaf = e.ID
	}
	return v, entries
}

// copies returns the entries of items, to be recorded again.
func copies(items []item, at time.Time) []session.Entry {
	var entries []session.Entry
	again := func(said *session.MessageEntry) {
		entries = append(entries, session.Entry{
			Type: session.TypeMessage, ID: session.NewID(), Timestamp: at, Message: said, Extra: marks{Again: true}.fields(),
		})
	}
	for i := range items {
		if e := &items[i].entry; e.Message != nil && len(items[i].messages) > 0 {
			again(e.Message)
			continue
		}
		for _, m := range items[i].messages { // of a branch summary or a merge
			again(session.Message(session.RoleSystem, session.Text(m.Content)).Message)
		}
	}
	return entries
}

// batch marks entries that count together or not at all. They are written together after an
// entry, or as a new beginning if the first of them leads there. A power cut can take any line
// out of the middle of a batch; cutShort sees that from the marks.
func batch(entries []session.Entry, before string) []session.Entry {
	if len(entries) < 2 {
		return entries
	}
	entries = slices.Clone(entries)
	for i := range entries {
		mark := marksOf(entries[i].Extra)
		mark.Before, mark.Last, mark.Restart = before, entries[len(entries)-1].ID, entries[0].Leaf != nil
		entries[i].Extra = mark.fields()
	}
	return entries
}

// tokens returns roughly how many tokens the messages have. It is information for people who
// look at compactions; nothing depends on it.
func (v view) tokens() int {
	const bytesPerToken = 4
	return v.bytes / bytesPerToken
}
