package conversation

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/internal/boundary"
	"github.com/coppice-dev/coppice/session"
)

// Conversation is a chain of sessions read as one conversation. Messages that were carried
// from session to session are in it once, and markers are left out.
type Conversation struct {
	// Session has the id of the original session and the messages of all.
	Session
	// Links are the sessions that exist, in order.
	Links []Link
	// Missing are the ids of sessions that others name but that are not there or cannot be
	// read. Their messages are missing from Messages.
	Missing []string
}

// Link is one session of a conversation.
type Link struct {
	ID      string
	Started time.Time
	// First is the index of its first message in the conversation. A program may draw a
	// thin line there.
	First int
	// Messages and Tokens are its own, without what was carried over.
	Messages, Tokens int
}

// Totals is the size of a conversation.
type Totals struct {
	Conversation string // its id: that of the original session
	Tail         string // the session that messages are added to
	Sessions     int
	Messages     int
	Tokens       int
	Estimated    int // how many of the tokens are estimates
	// Missing are sessions whose messages do not count: see Conversation.
	Missing []string
}

// chain returns which sessions a conversation consists of, and which are missing.
func (m *Sessions) chain(id string) (session.Linked, error) {
	l, err := m.tail(id)
	if err != nil {
		return session.Linked{}, err
	}
	defer m.release(l)
	return session.FindChain(m.context(), m.store, l.id, nil)
}

// walkBack calls visit with the links of a chain, last one first, each locked, until visit
// returns false. Missing links are skipped.
func (m *Sessions) walkBack(id string, visit func(*link) bool) error {
	l, err := m.tail(id)
	if err != nil {
		return err
	}
	var earlier []string // the sessions before, looked up once a link was missing
	for seen := map[string]bool{}; ; {
		seen[l.id] = true
		if err := m.lock(l); err != nil {
			m.release(l)
			return err
		}
		goOn := visit(l)
		l.mu.Unlock()
		at, header := l.id, l.header
		m.release(l)
		parent := header.ParentSession
		if !goOn || header.Relation != session.RelationContinuation || seen[parent] {
			return nil
		}
		l, err = m.acquire(parent)
		if err == nil && !leavesRoom(header, l.header) {
			continue
		}
		if err == nil { // other links may have come back between the two: look them up
			m.release(l)
			err = session.ErrNotExist
		}
		for isLost(err) || errors.Is(err, session.ErrInvalid) {
			if earlier == nil {
				if earlier, err = m.before(at); err != nil {
					return err
				}
			}
			earlier = slices.DeleteFunc(earlier, func(id string) bool { return seen[id] })
			if len(earlier) == 0 {
				return nil
			}
			at = earlier[len(earlier)-1]
			seen[at] = true
			l, err = m.acquire(at)
		}
		if err != nil {
			return err
		}
		earlier = nil
	}
}

// before returns the sessions of a chain that come before one of them, in order.
func (m *Sessions) before(id string) ([]string, error) {
	chain, err := session.FindChain(m.context(), m.store, id, nil)
	return chain.Links[:max(0, slices.Index(chain.Links, id))], err
}

// isWhole reports whether all links before a link are there, each right after the one that it
// continues.
func (m *Sessions) isWhole(header session.Header) bool {
	for seen := map[string]bool{}; header.Relation == session.RelationContinuation && !seen[header.ParentSession]; {
		seen[header.ParentSession] = true
		earlier, err := m.header(m.context(), header.ParentSession)
		if err != nil || leavesRoom(header, earlier) {
			return false
		}
		header = earlier
	}
	return true
}

// leavesRoom reports whether there may be other links between a link and the one that it
// continues: those that it replaced, which may have come back.
func leavesRoom(l, continues session.Header) bool { return l.Continuation > continues.Continuation+1 }

// eachLink calls visit with the links of a chain in order, each locked, and with those of its
// messages that are not in earlier links. It returns which sessions are missing.
func (m *Sessions) eachLink(id string, visit func(*link, []session.Entry)) (session.Linked, error) {
	chain, err := m.chain(id)
	if err != nil {
		return chain, err
	}
	var seen map[string]bool
	if len(chain.Missing) > 0 {
		seen = make(map[string]bool)
	}
	for i, name := range chain.Links {
		l, err := m.acquire(name)
		if isLost(err) {
			chain.Missing = append(chain.Missing, name)
			continue
		}
		if err != nil {
			return chain, err
		}
		if err := m.lock(l); err != nil {
			m.release(l)
			return chain, err
		}
		switch {
		case seen != nil:
			visit(l, l.visible(seen))
		case i == 0:
			visit(l, l.choose(func(i int) bool { return !session.IsTransition(&l.entries[i]) }))
		default:
			visit(l, l.own())
		}
		l.mu.Unlock()
		m.release(l)
	}
	return chain, nil
}

// Conversation returns the whole conversation that a session is part of, as it is stored now.
func (m *Sessions) Conversation(id string) (Conversation, error) {
	if err := m.refreshTail(id, reading); err != nil {
		return Conversation{}, err
	}
	var c Conversation
	chain, err := m.eachLink(id, func(l *link, messages []session.Entry) {
		if len(c.Links) == 0 {
			c.Session = Session{CreatedAt: l.before.Created}
		}
		c.Links = append(c.Links, Link{ID: l.id, Started: l.header.CreatedAt, First: len(c.Messages), Messages: len(messages), Tokens: sumOf(messages)})
		c.Messages = append(c.Messages, clones(messages)...)
		c.LastActive, c.Metadata = l.active, l.describe()
	})
	if err != nil {
		return Conversation{}, err
	}
	c.ID, c.Missing = chain.ID, chain.Missing
	c.Metadata[MetaMessageCount], c.Metadata[MetaTokenCount] = len(c.Messages), c.TotalTokens()
	return c, nil
}

func sumOf(messages []session.Entry) int {
	var sum boundary.Amount
	for i := range messages {
		sum.Add(&messages[i])
	}
	return sum.Total()
}

// refreshTail reads what others have added to a conversation.
func (m *Sessions) refreshTail(id string, a access) error {
	for range maxAttempts {
		l, err := m.tailFor(id, a)
		if err != nil {
			return err
		}
		m.release(l)
		if l, err = m.acquireFresh(l.id, a); err != nil {
			return err
		}
		err = m.lock(l)
		ended := err == nil && (l.next == "" || l.next == l.lost)
		if err == nil {
			l.mu.Unlock()
		}
		m.release(l)
		if ended || err != nil {
			return err
		}
	}
	return nil // it grows faster than we can read; we have everything up to now
}

// rootOf returns the id of the conversation that a session is part of: that of the
// original session.
func (m *Sessions) rootOf(id string) (string, error) {
	l, err := m.tailFor(id, writing)
	if err != nil {
		return "", err
	}
	defer m.release(l)
	if err := m.lock(l); err != nil {
		return "", err
	}
	defer l.mu.Unlock()
	return l.before.Root, nil
}

// Totals returns the size of the conversation that a session is part of. Usually it reads
// only the last session, which knows what came before. If a session is missing, its messages
// do not count, and all the others have to be read.
func (m *Sessions) Totals(id string) (Totals, error) {
	if err := m.refreshTail(id, reading); err != nil {
		return Totals{}, err
	}
	l, err := m.tail(id)
	if err != nil {
		return Totals{}, err
	}
	defer m.release(l)
	if err := m.lock(l); err != nil {
		return Totals{}, err
	}
	tokens := l.before.Tokens.Plus(l.tokens())
	t := Totals{
		Conversation: l.before.Root, Tail: l.id, Sessions: l.header.Continuation + 1,
		Messages: l.count(), Tokens: tokens.Total(), Estimated: tokens.Estimated,
	}
	header, next := l.header, l.next
	l.mu.Unlock()
	if next == "" && m.isWhole(header) {
		return t, nil
	}
	return m.count(t)
}

// count computes Totals for a conversation with a missing session.
func (m *Sessions) count(t Totals) (Totals, error) {
	t.Sessions, t.Messages = 0, 0
	var tokens boundary.Amount
	chain, err := m.eachLink(t.Tail, func(_ *link, messages []session.Entry) {
		t.Sessions++
		t.Messages += len(messages)
		for i := range messages {
			tokens.Add(&messages[i])
		}
	})
	t.Conversation, t.Missing = chain.ID, chain.Missing
	t.Tokens, t.Estimated = tokens.Total(), tokens.Estimated
	return t, err
}

// Search returns the messages of a conversation that contain a text, ignoring case, oldest
// first. (Package index searches all sessions.)
func (m *Sessions) Search(id, text string) ([]Message, error) {
	if err := m.refreshTail(id, reading); err != nil {
		return nil, err
	}
	text = strings.ToLower(text)
	var found []Message
	_, err := m.eachLink(id, func(_ *link, messages []session.Entry) {
		for i := range messages {
			if strings.Contains(strings.ToLower(searchable(messages[i].Message.Content)), text) {
				found = append(found, fromEntry(messages[i].Clone()))
			}
		}
	})
	return found, err
}

// searchable returns the text of blocks, including tool results.
func searchable(blocks []session.Content) string {
	var b strings.Builder
	for i := range blocks {
		switch c := &blocks[i]; {
		case c.Text != nil:
			b.WriteString(c.Text.Content)
		case c.ToolResult != nil:
			b.WriteString(c.ToolResult.Content)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
