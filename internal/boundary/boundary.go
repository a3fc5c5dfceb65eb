// Package boundary says where a conversation goes on in another session, and what that
// session is given, so that it can be read by itself.
package boundary

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// CustomSettings is what the types of custom entries begin with that hold for a conversation.
// The last of each type counts.
const CustomSettings = "coppice.conversation"

// Part is a session of a conversation, up to an entry.
type Part struct {
	ID      string
	Entries []session.Entry // the messages on its path
	Copies  int             // how many of them are copies: those that it begins with
	Pairs   session.Pairs
	Cleared map[string]bool // messages that edits removed from the context
	Before  Origin
	Marker  *session.Entry // what ends the copies, or nil

	given    map[string]bool          // the ids of the entries that it begins with, on its path or not
	settings map[string]session.Entry // the title and what else holds for the conversation, the last of each
	edits    []session.Entry
	own      Amount // tokens of the first counted of Entries, without copies
	counted  int
}

// Origin is what a session knows about the sessions before it.
type Origin struct {
	Root     string    // the original session
	Created  time.Time // when that session was created
	Messages int       // in all sessions before, copies not counted
	Tokens   Amount    // of these
}

// Amount is a number of tokens. Counts and estimates are kept apart, because an estimate must
// not pass for a count.
type Amount struct{ Counted, Estimated int }

// Total adds both up.
func (a Amount) Total() int { return a.Counted + a.Estimated }

// Plus adds another amount.
func (a Amount) Plus(b Amount) Amount {
	return Amount{a.Counted + b.Counted, a.Estimated + b.Estimated}
}

// fallback counts for an unknown model. It is the most cautious of window's estimates.
var fallback = window.Estimate("", "")

// Add adds the tokens of a message.
func (a *Amount) Add(e *session.Entry) {
	if e.Message.Tokens != nil {
		a.Counted += *e.Message.Tokens
		return
	}
	a.Estimated += Estimate(e)
}

// Estimate returns an estimate of the tokens of a message, whatever was counted or reported.
func Estimate(e *session.Entry) int {
	m := *e.Message
	m.Tokens, m.Usage = nil, nil
	return window.CountEntry(fallback, "", &session.Entry{Type: session.TypeMessage, Message: &m}).Tokens
}

// Read returns a session up to its leaf.
func Read(ctx context.Context, s *session.Session) (*Part, error) {
	path, err := s.WithContext(ctx).Forward("")
	if err != nil {
		return nil, err
	}
	p, err := New(ctx, s, path)
	for i := range path {
		p.Add(&path[i])
	}
	return p, err
}

// New returns a session before the first entry of a path to its leaf.
func New(ctx context.Context, s *session.Session, path []session.Entry) (*Part, error) {
	h := s.Header()
	p := &Part{
		ID: s.ID(), Before: Origin{Root: s.ID(), Created: h.CreatedAt},
		given: make(map[string]bool), settings: make(map[string]session.Entry),
	}
	if h.Relation != session.RelationContinuation {
		return p, nil
	}
	for i := range path {
		if e := &path[i]; e.Continues != nil {
			if p.Marker, p.Before = e, OriginOf(e.Continues); !p.Before.Created.IsZero() {
				return p, nil
			}
			break
		}
		p.given[path[i].ID] = true
	}
	return p, p.traceBack(ctx, s)
}

// traceBack finds out from the sessions before what the marker does not say: because another
// program wrote the session, or it was lost, or the path goes back to a copy and leaves it out.
func (p *Part) traceBack(ctx context.Context, s *session.Session) error {
	clear(p.given)
	c, err := s.FindChain(ctx, nil)
	if err != nil {
		return err
	}
	c.Links = c.Links[:slices.Index(c.Links, p.ID)+1]
	whole, err := session.OpenChain(ctx, s.Store(), c, nil)
	if err != nil {
		return err
	}
	p.Before = Origin{Root: c.ID, Created: whole.Header().CreatedAt}
	for e, failed := range whole.Path("") {
		if err = failed; err != nil || whole.SessionOf(e.ID) == p.ID {
			continue
		}
		p.given[e.ID] = true
		if e.Message != nil {
			p.Before.Messages++
			p.Before.Tokens.Add(&e)
		}
	}
	return errors.Join(err, whole.Close())
}

// Add adds the next entry of the path.
func (p *Part) Add(e *session.Entry) {
	switch {
	case e.Message != nil:
		if p.given[e.ID] {
			p.Copies++
		}
		p.Pairs.Add(e)
		p.Entries = append(p.Entries, *e)
	case e.SessionInfo != nil:
		p.settings[""] = *e
	case e.Custom != nil && strings.HasPrefix(e.Custom.CustomType, CustomSettings):
		p.settings[e.Custom.CustomType] = *e
	case e.ContextEdit != nil, e.Revert != nil:
		p.edits = append(p.edits, *e)
		p.Cleared = clearedBy(p.edits)
	}
}

// Own returns the tokens of the messages that are no copies. Each message is counted once, when
// the number is needed.
func (p *Part) Own() Amount {
	for p.counted = max(p.counted, p.Copies); p.counted < len(p.Entries); p.counted++ {
		p.own.Add(&p.Entries[p.counted])
	}
	return p.own
}

// clearedBy returns the messages that edits and reverts of a path leave out of the context. Of
// the edits of a message that were not taken back, the last one counts.
func clearedBy(edits []session.Entry) map[string]bool {
	cleared, reverted := make(map[string]bool), session.RevertedIn(edits)
	for i := range edits {
		if e := edits[i].ContextEdit; e != nil && !reverted[edits[i].ID] {
			cleared[e.TargetID] = len(e.Replacement) == 0
		}
	}
	return cleared
}

// full reports whether a session has reached its boundary. Copies count, but a
// session always takes at least as many messages of its own. Otherwise, with a low limit and
// many instructions, every message would start another one.
func (p *Part) full(limit int) bool {
	return len(p.Entries) >= limit && len(p.Entries)-p.Copies >= p.Copies
}

// Due reports whether a session must be continued before an entry is added to it.
//
// The limit is exact, except that we never tear a call from its result, an answer from the
// question right before it, or a response apart: each session must be readable by itself.
// If the boundary falls between two steps of a turn, the continuation gets the prompt.
func (p *Part) Due(e *session.Entry, limit int) bool {
	return e.Message != nil && p.full(limit) && !p.Pairs.Pending() && !p.goesOn(e)
}

// goesOn reports whether a message answers the one before it, is part of the same response,
// or is a late result.
func (p *Part) goesOn(e *session.Entry) bool {
	for i := range e.Message.Content {
		if e.Message.Content[i].ToolResult != nil {
			return true
		}
	}
	last := &p.Entries[len(p.Entries)-1]
	if e.Message.Role == session.RoleAssistant && last.BeginsTurn() {
		return true
	}
	return p.Pairs.Continues(e)
}

// Carry returns what a continuation begins with: copies of the settings, of all SYSTEM messages and
// all CONTEXT messages, and of whatever an unfinished turn needs to go on; and the marker. next is
// the message that the continuation is for, or nil.
func (p *Part) Carry(limit int, next *session.Entry) []session.Entry {
	var entries []session.Entry
	for _, of := range slices.Sorted(maps.Keys(p.settings)) {
		entries = append(entries, p.settings[of])
	}
	for _, category := range []window.Category{window.System, window.Context} {
		for i := range p.Entries {
			if e := &p.Entries[i]; window.CategoryOf(e) == category && !p.Cleared[e.ID] {
				entries = append(entries, *e)
			}
		}
	}
	if next == nil && !p.answered() || next != nil && !next.BeginsTurn() {
		for _, i := range p.turnInFlight(limit) {
			entries = append(entries, p.Entries[i])
		}
	}
	return append(entries, p.marker())
}

// marker returns the entry that says what the continuation continues and what came before.
func (p *Part) marker() session.Entry {
	earlier := p.Before.Tokens.Plus(p.Own())
	return session.Entry{Type: session.TypeContinues, Continues: &session.ContinuesEntry{
		Session: p.ID, Original: p.Before.Root, Created: p.Before.Created.UTC(),
		Messages: p.Before.Messages + len(p.Entries) - p.Copies, Tokens: earlier.Counted, Estimated: earlier.Estimated,
	}}
}

// OriginOf returns what a marker says about the sessions before.
func OriginOf(c *session.ContinuesEntry) Origin {
	return Origin{Root: c.Original, Created: c.Created, Messages: c.Messages, Tokens: Amount{c.Tokens, c.Estimated}}
}

// answered reports whether the last turn seems to be over.
func (p *Part) answered() bool {
	n := len(p.Entries)
	return n == 0 || !p.Pairs.Pending() && p.Entries[n-1].Message.Role == session.RoleAssistant
}

// turnInFlight returns the messages of an unfinished turn: from the user's message on or, if
// the turn is so long that it would fill the next session, that message and the waiting call
// with the results it has.
func (p *Part) turnInFlight(limit int) []int {
	begin, pending := p.turnBegin(), p.Pairs.Pending()
	last := p.lastCall(max(begin, 0))
	switch {
	case begin < 0 && !pending:
		return nil
	case begin < 0: // the call has no prompt
		return p.dialog(last, len(p.Entries))
	case len(p.Entries)-begin <= max(1, limit/2):
		return p.dialog(begin, len(p.Entries))
	case pending:
		return append(p.dialog(begin, begin+1), p.dialog(last, len(p.Entries))...)
	}
	return p.dialog(begin, begin+1)
}

// turnBegin returns the index of the last message that begins a turn, or -1.
func (p *Part) turnBegin() int {
	for i := len(p.Entries) - 1; i >= 0; i-- {
		if p.Entries[i].BeginsTurn() {
			return i
		}
	}
	return -1
}

// lastCall returns the index of the last message after from that calls tools, or the number
// of messages if there is none.
func (p *Part) lastCall(from int) int {
	for i := len(p.Entries) - 1; i >= from; i-- {
		for _, c := range p.Entries[i].Message.Content {
			if c.ToolUse != nil {
				return i
			}
		}
	}
	return len(p.Entries)
}

// dialog returns which messages of a range are not carried anyway.
func (p *Part) dialog(from, to int) (kept []int) {
	for i := from; i < to; i++ {
		if window.CategoryOf(&p.Entries[i]) > window.Context {
			kept = append(kept, i)
		}
	}
	return kept
}
