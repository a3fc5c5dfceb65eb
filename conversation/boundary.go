package conversation

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// The members of a message's metadata with which a continuation begins.
const (
	metaType    = "type"
	metaCarried = "carried_from" // the id of the message that this is a copy of

	typeTransition = "session_transition"

	metaPrevious         = "previous_session"
	metaOriginal         = "original_session"
	metaOriginalCreated  = "original_created_at"
	metaEarlierMessages  = "earlier_messages"
	metaEarlierTokens    = "earlier_tokens"   // that somebody counted
	metaEarlierEstimate  = "earlier_estimate" // of the messages that nobody counted
	transitionTextFormat = "Continuing from session %s"
)

// isMarker reports whether a message marks where a continuation begins.
func isMarker(e *session.Entry) bool { return e.Message.Metadata[metaType] == typeTransition }

// copiedFrom returns the id of the message that this one is a copy of, or "".
func copiedFrom(e *session.Entry) string {
	id, _ := e.Message.Metadata[metaCarried].(string)
	return id
}

// IsCarried reports whether a message is in a session only so that the session can
// be understood without those that it continues: a copy, or the marker that says
// where it comes from. Whoever reads a chain as one leaves it out.
func IsCarried(e *session.Entry) bool { return isMarker(e) || copiedFrom(e) != "" }

// full reports whether a link has reached its boundary. What it was given by the
// link before counts, but never so much that links would consist of nothing else.
func (l *link) full(limit int) bool {
	return len(l.entries) >= limit && len(l.entries)-l.copies >= l.copies
}

// due reports whether a link must be continued before an entry is added to it.
//
// A boundary falls between two turns: so nothing is torn apart, neither a call
// from its result nor a question from its answer. A turn without end is cut when
// the link is twice as long as it should be, but never while a call waits.
func (l *link) due(e *session.Entry, limit int) bool {
	if !l.full(limit) || l.pairs.Pending() || e.Message == nil {
		return false
	}
	return e.BeginsTurn() || len(l.entries) >= 2*max(limit, 2*l.copies) && !l.goesOn(e)
}

// goesOn reports whether a message is part of the response before it, or a
// result that comes late.
func (l *link) goesOn(e *session.Entry) bool {
	for i := range e.Message.Content {
		if e.Message.Content[i].ToolResult != nil {
			return true
		}
	}
	return l.pairs.Continues(e)
}

// carry returns what a continuation begins with: the title, all SYSTEM messages,
// all CONTEXT messages, the marker, and of a turn that is not over what is
// needed to go on with it. Markers of earlier links stay where they are. next is
// the message that the continuation is for, or nil.
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
			if fromEntry(*e).Category == category && !isMarker(e) && !l.cleared[e.ID] {
				entries = append(entries, copyOf(e))
			}
		}
	}
	entries = append(entries, l.marker())
	if next == nil && !l.answered() || next != nil && !next.BeginsTurn() {
		for _, e := range l.turnInFlight(limit) {
			entries = append(entries, copyOf(&e))
		}
	}
	return entries
}

// copyOf returns what a continuation is given of a message. What it cost was
// paid once.
func copyOf(e *session.Entry) session.Entry {
	c := e.Clone()
	if c.Message.Metadata == nil {
		c.Message.Metadata = make(map[string]any)
	}
	if copiedFrom(e) == "" {
		c.Message.Metadata[metaCarried] = e.ID
	}
	c.Message.Usage = nil
	return c
}

// marker says that the conversation goes on here, and what came before.
func (l *link) marker() session.Entry {
	text := []session.Content{session.Text(fmt.Sprintf(transitionTextFormat, l.id))}
	earlier := l.before.tokens.plus(l.tokens())
	return session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
		Role: session.RoleSystem, Content: text, Category: CategorySystem.String(),
		Metadata: map[string]any{
			metaType: typeTransition, metaPrevious: l.id,
			metaOriginal: l.before.root, metaOriginalCreated: l.before.created.UTC().Format(time.RFC3339Nano),
			metaEarlierMessages: l.count(), metaEarlierTokens: earlier.counted, metaEarlierEstimate: earlier.estimated,
		},
	}}
}

// originFrom reads what a marker says of the links before; what it does not say
// stays as it was.
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

// number reads a number that may have been through JSON.
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

// answered reports whether the last turn looks as if it were over.
func (l *link) answered() bool {
	n := len(l.entries)
	return n == 0 || !l.pairs.Pending() && l.entries[n-1].Message.Role == session.RoleAssistant
}

// turnInFlight returns the messages of a turn that is not over: from the user's
// message on or, if the turn is so long that it would fill the next link, that
// message and the call that waits with the results it has.
func (l *link) turnInFlight(limit int) []session.Entry {
	begin, pending := l.turnBegin(), l.pairs.Pending()
	if begin < 0 && !pending {
		return nil
	}
	if begin < 0 { // nobody asked for the call
		return dialogOf(l.entries[lastCall(l.entries):])
	}
	turn := l.entries[begin:]
	if len(turn) <= max(1, limit/2) {
		return dialogOf(turn)
	}
	short := []session.Entry{turn[0]}
	if pending {
		short = append(short, turn[lastCall(turn):]...)
	}
	return dialogOf(short)
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

// lastCall returns the index of the last message that calls tools, or the length
// of the turn if none does.
func lastCall(turn []session.Entry) int {
	for i := len(turn) - 1; i >= 0; i-- {
		for _, c := range turn[i].Message.Content {
			if c.ToolUse != nil {
				return i
			}
		}
	}
	return len(turn)
}

// dialogOf leaves out what is carried anyway.
func dialogOf(turn []session.Entry) []session.Entry {
	var kept []session.Entry
	for _, e := range turn {
		if c := fromEntry(e).Category; c == CategoryDialog || c == CategorySystemOutput {
			kept = append(kept, e)
		}
	}
	return kept
}
