package conversation

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// The members of the metadata of the marker with which a continuation begins.
const (
	metaType = session.MetaType

	metaPrevious         = "previous_session"
	metaOriginal         = session.MetaOriginal
	metaOriginalCreated  = "original_created_at"
	metaEarlierMessages  = "earlier_messages"
	metaEarlierTokens    = "earlier_tokens"   // of messages that were counted
	metaEarlierEstimate  = "earlier_estimate" // of messages that were not
	transitionTextFormat = "Continuing from session %s"
)

// full reports whether a link has reached its boundary. Carried messages count, but a link
// always takes at least as many messages of its own. Otherwise, with a low limit and many
// instructions, every message would start another link.
func (l *link) full(limit int) bool {
	return len(l.entries) >= limit && len(l.entries)-l.copies >= l.copies
}

// due reports whether a link must be continued before an entry is added to it.
//
// The limit is exact, except that we never tear a call from its result, an answer from the
// question right before it, or a response apart: each session must be readable by itself.
// If the boundary falls between two steps of a turn, the continuation gets the prompt.
func (l *link) due(e *session.Entry, limit int) bool {
	return e.Message != nil && l.full(limit) && !l.pairs.Pending() && !l.goesOn(e)
}

// goesOn reports whether a message answers the one before it, is part of the same response,
// or is a late result.
func (l *link) goesOn(e *session.Entry) bool {
	for i := range e.Message.Content {
		if e.Message.Content[i].ToolResult != nil {
			return true
		}
	}
	last := &l.entries[len(l.entries)-1]
	if e.Message.Role == session.RoleAssistant && last.BeginsTurn() {
		return true
	}
	return l.pairs.Continues(e)
}

// carry returns what a continuation begins with: the title, all SYSTEM messages, all CONTEXT
// messages, the marker, and whatever an unfinished turn needs to go on. Markers of earlier
// links are not carried. next is the message that the continuation is for, or nil.
func (l *link) carry(limit int, next *session.Entry) []session.Entry {
	var entries []session.Entry
	if l.title != "" {
		entries = append(entries, titled(l.title))
	}
	if len(l.metadata) > 0 {
		entries = append(entries, session.Entry{Type: session.TypeCustom, Custom: &session.CustomEntry{CustomType: customMetadata, Data: l.metadata}})
	}
	if l.config != (Config{}) {
		if changes, err := (&link{}).configChanges(l.config); err == nil {
			entries = append(entries, changes...)
		}
	}
	for _, category := range []Category{CategorySystem, CategoryContext} {
		for i := range l.entries {
			e := &l.entries[i]
			if fromEntry(*e).Category == category && !session.IsTransition(e) && !l.cleared[e.ID] {
				entries = append(entries, copyOf(e, l.isCopy[i]))
			}
		}
	}
	entries = append(entries, l.marker())
	if next == nil && !l.answered() || next != nil && !next.BeginsTurn() {
		for _, i := range l.turnInFlight(limit) {
			entries = append(entries, copyOf(&l.entries[i], l.isCopy[i]))
		}
	}
	return entries
}

// copyOf returns a copy of a message for a continuation. The message may be a copy
// itself. The copy has no usage, because a response is paid for once.
func copyOf(e *session.Entry, isCopy bool) session.Entry {
	c := e.Clone()
	if c.Message.Metadata == nil {
		c.Message.Metadata = make(map[string]any)
	}
	if !isCopy || session.CarriedFrom(e) == "" {
		c.Message.Metadata[session.MetaCarried] = e.ID
	}
	c.Message.Usage = nil
	return c
}

// marker returns the message that says what the continuation continues and what came before.
func (l *link) marker() session.Entry {
	text := []session.Content{session.Text(fmt.Sprintf(transitionTextFormat, l.id))}
	earlier := l.before.tokens.plus(l.tokens())
	return session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
		Role: session.RoleSystem, Content: text, Category: CategorySystem.String(),
		Metadata: map[string]any{
			metaType: session.TransitionType, metaPrevious: l.id,
			metaOriginal: l.before.root, metaOriginalCreated: l.before.created.UTC().Format(time.RFC3339Nano),
			metaEarlierMessages: l.count(), metaEarlierTokens: earlier.counted, metaEarlierEstimate: earlier.estimated,
		},
	}}
}

// originFrom reads what a marker says about the links before. What it does not say stays as
// it was in o.
func originFrom(marker *session.Entry, o origin) origin {
	d := marker.Message.Metadata
	if root, ok := d[metaOriginal].(string); ok {
		o.root = root
	}
	if text, ok := d[metaOriginalCreated].(string); ok {
		if created, err := time.Parse(time.RFC3339Nano, text); err == nil {
			o.created = created
		}
	}
	o.messages = number(d[metaEarlierMessages])
	o.tokens = amount{number(d[metaEarlierTokens]), number(d[metaEarlierEstimate])}
	return o
}

// number reads a number that may have gone through JSON.
func number(v any) int {
	switch v := v.(type) {
	case int:
		return v
	case float64:
		return int(v)
	case json.Number:
		n, _ := v.Int64()
		return int(n)
	}
	return 0
}

// answered reports whether the last turn seems to be over.
func (l *link) answered() bool {
	n := len(l.entries)
	return n == 0 || !l.pairs.Pending() && l.entries[n-1].Message.Role == session.RoleAssistant
}

// turnInFlight returns the messages of an unfinished turn: from the user's message on or, if
// the turn is so long that it would fill the next link, that message and the waiting call
// with the results it has.
func (l *link) turnInFlight(limit int) []int {
	begin, pending := l.turnBegin(), l.pairs.Pending()
	last := l.lastCall(max(begin, 0))
	switch {
	case begin < 0 && !pending:
		return nil
	case begin < 0: // the call has no prompt
		return l.dialog(last, len(l.entries))
	case len(l.entries)-begin <= max(1, limit/2):
		return l.dialog(begin, len(l.entries))
	case pending:
		return append(l.dialog(begin, begin+1), l.dialog(last, len(l.entries))...)
	}
	return l.dialog(begin, begin+1)
}

// turnBegin returns the index of the last message that begins a turn, or -1.
func (l *link) turnBegin() int {
	for i := len(l.entries) - 1; i >= 0; i-- {
		if l.entries[i].BeginsTurn() {
			return i
		}
	}
	return -1
}

// lastCall returns the index of the last message after from that calls tools, or the number
// of messages if there is none.
func (l *link) lastCall(from int) int {
	for i := len(l.entries) - 1; i >= from; i-- {
		for _, c := range l.entries[i].Message.Content {
			if c.ToolUse != nil {
				return i
			}
		}
	}
	return len(l.entries)
}

// dialog returns which messages of a range are not carried anyway.
func (l *link) dialog(from, to int) (kept []int) {
	for i := from; i < to; i++ {
		if window.CategoryOf(&l.entries[i]) > CategoryContext {
			kept = append(kept, i)
		}
	}
	return kept
}
