package conversation

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// Conversation is a chain of sessions read as what it is: one conversation. What
// was carried from session to session is in it once, and markers are not in it.
type Conversation struct {
	// Session has the id of the original session and the messages of all.
	Session
	// Links are the sessions that are there, the first first.
	Links []Link
	// Missing are the ids of sessions that others name and that are not there, or
	// cannot be read. What they held is not among the messages.
	Missing []string
}

// Link is one session of a conversation.
type Link struct {
	ID      string
	Started time.Time
	// First is the index of its first message in the conversation: where a
	// thin line may be drawn.
	First int
	// Messages and Tokens are its own, without what was carried over to it.
	Messages, Tokens int
}

// Totals is the size of a conversation.
type Totals struct {
	Conversation string // its id: that of the original session
	Tail         string // the session that messages are added to
	Sessions     int
	Messages     int
	Tokens       int
	Estimated    int // how many of the tokens nobody counted
	// Missing are sessions whose messages do not count: see Conversation.
	Missing []string
}

// chain returns which sessions a conversation consists of, and which are missing.
func (m *Sessions) chain(id string) (session.Linked, error) {
	l, err := m.tail(id)
	if err != nil {
		return session.Linked{}, err
	}
	defer m.cache.release(l)
	return session.FindChain(m.context(), m.store, l.id, nil)
}

// walkBack calls visit with the links of a chain, the last first, each locked, until
// it returns false. What is missing is passed over.
func (m *Sessions) walkBack(id string, visit func(*link) bool) error {
	l, err := m.tail(id)
	if err != nil {
		return err
	}
	var earlier []string // what comes before, once a link was missing
	for seen := map[string]bool{}; ; {
		seen[l.id] = true
		if err := m.lock(l); err != nil {
			m.cache.release(l)
			return err
		}
		goOn := visit(l)
		l.mu.Unlock()
		at, header := l.id, l.header
		m.cache.release(l)
		parent := header.ParentSession
		if !goOn || header.Relation != session.RelationContinuation || seen[parent] {
			return nil
		}
		l, err = m.acquire(parent)
		if err == nil && !leavesRoom(header, l.header) {
			continue
		}
		if err == nil { // what stands between is not known yet
			m.cache.release(l)
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

// before returns the sessions of a chain that come before one of them, the first
// first.
func (m *Sessions) before(id string) ([]string, error) {
	chain, err := session.FindChain(m.context(), m.store, id, nil)
	return chain.Links[:max(0, slices.Index(chain.Links, id))], err
}

// isWhole reports whether all links before a link are there, each right after the
// one that it continues.
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

// leavesRoom reports whether a link leaves room for others between it and the one
// that it continues: those that it was made instead of, which may have come back.
func leavesRoom(l, continues session.Header) bool { return l.Continuation > continues.Continuation+1 }

// eachLink calls visit with the links of a chain, the first first, each locked, and
// with those of its messages that are not in the links before. It returns which
// sessions are missing.
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
			m.cache.release(l)
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
		m.cache.release(l)
	}
	return chain, nil
}

// Conversation returns all of the conversation that a session is part of, as it
// is stored now.
func (m *Sessions) Conversation(id string) (Conversation, error) {
	if err := m.refreshTail(id, reading); err != nil {
		return Conversation{}, err
	}
	var c Conversation
	chain, err := m.eachLink(id, func(l *link, messages []session.Entry) {
		if len(c.Links) == 0 {
			c.Session = Session{CreatedAt: l.before.created}
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
	var sum amount
	for i := range messages {
		sum.add(&messages[i])
	}
	return sum.total()
}

// refreshTail takes in what others have added to a conversation.
func (m *Sessions) refreshTail(id string, a access) error {
	for range maxAttempts {
		l, err := m.tailFor(id, a)
		if err != nil {
			return err
		}
		m.cache.release(l)
		if l, err = m.acquireFresh(l.id, a); err != nil {
			return err
		}
		err = m.lock(l)
		ended := err == nil && (l.next == "" || l.next == l.lost)
		if err == nil {
			l.mu.Unlock()
		}
		m.cache.release(l)
		if ended || err != nil {
			return err
		}
	}
	return nil // it grows faster than we read; what there was is there
}

// rootOf returns the id of the conversation that a session is part of: that of the
// original session.
func (m *Sessions) rootOf(id string) (string, error) {
	l, err := m.tailFor(id, writing)
	if err != nil {
		return "", err
	}
	defer m.cache.release(l)
	if err := m.lock(l); err != nil {
		return "", err
	}
	defer l.mu.Unlock()
	return l.before.root, nil
}

// Totals returns the size of the conversation that a session is part of. It
// costs what its last session does, which knows what came before; unless a session
// is missing, whose messages do not count.
func (m *Sessions) Totals(id string) (Totals, error) {
	if err := m.refreshTail(id, reading); err != nil {
		return Totals{}, err
	}
	l, err := m.tail(id)
	if err != nil {
		return Totals{}, err
	}
	defer m.cache.release(l)
	if err := m.lock(l); err != nil {
		return Totals{}, err
	}
	tokens := l.before.tokens.plus(l.tokens())
	t := Totals{
		Conversation: l.before.root, Tail: l.id, Sessions: l.header.Continuation + 1,
		Messages: l.count(), Tokens: tokens.total(), Estimated: tokens.estimated,
	}
	header, next := l.header, l.next
	l.mu.Unlock()
	if next == "" && m.isWhole(header) {
		return t, nil
	}
	return m.count(t)
}

// count is Totals of a conversation of which a session is missing.
func (m *Sessions) count(t Totals) (Totals, error) {
	t.Sessions, t.Messages = 0, 0
	var tokens amount
	chain, err := m.eachLink(t.Tail, func(_ *link, messages []session.Entry) {
		t.Sessions++
		t.Messages += len(messages)
		for i := range messages {
			tokens.add(&messages[i])
		}
	})
	t.Conversation, t.Missing = chain.ID, chain.Missing
	t.Tokens, t.Estimated = tokens.total(), tokens.estimated
	return t, err
}

// Search returns the messages of a conversation whose text contains a text,
// whatever the case, the oldest first. (Package index searches all sessions.)
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

// searchable is the text of blocks, the results of tools included.
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
