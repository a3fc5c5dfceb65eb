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
func (m *Sessions) chain(id string, a access) (session.Linked, error) {
	l, done, err := m.end(id, a)
	if err != nil {
		return session.Linked{}, err
	}
	defer done()
	return session.FindChain(m.context(), m.store, l.id, nil)
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

// messages returns all messages of a conversation, the sessions that they are in, and the
// conversation itself.
func (m *Sessions) messages(id string) (messages []session.Entry, in []string, chain session.Linked, err error) {
	if chain, err = m.chain(id, reading); err != nil {
		return nil, nil, chain, err
	}
	whole, err := session.OpenChain(m.context(), m.store, chain, m.sessionOptions())
	if err != nil {
		return nil, nil, chain, err
	}
	path, err := whole.WithContext(m.context()).Forward("")
	for i := range path {
		if path[i].Message != nil {
			messages, in = append(messages, path[i]), append(in, whole.SessionOf(path[i].ID))
		}
	}
	return messages, in, chain, errors.Join(err, whole.Close())
}

// Conversation returns the whole conversation that a session is part of, as it is stored now.
func (m *Sessions) Conversation(id string) (Conversation, error) {
	messages, in, chain, err := m.messages(id)
	if err != nil {
		return Conversation{}, err
	}
	c := Conversation{Links: make([]Link, len(chain.Links)), Missing: chain.Missing}
	if c.Session, err = m.describeEnd(id); err != nil {
		return Conversation{}, err
	}
	c.ID, c.Messages = chain.ID, clones(messages)
	for i := range messages {
		l := &c.Links[slices.Index(chain.Links, in[i])]
		l.Messages++
		l.Tokens += sumOf(messages[i : i+1]).Total()
	}
	for i, first := 0, 0; i < len(c.Links); i++ {
		l := &c.Links[i]
		h, err := m.header(m.context(), chain.Links[i])
		if err != nil && !isLost(err) {
			return Conversation{}, err
		}
		l.ID, l.Started, l.First = chain.Links[i], h.CreatedAt, first
		first += l.Messages
	}
	c.Metadata[MetaMessageCount], c.Metadata[MetaTokenCount] = len(c.Messages), c.TotalTokens()
	return c, nil
}

// describeEnd returns what the last session of a conversation says about it.
func (m *Sessions) describeEnd(id string) (s Session, _ error) {
	l, done, err := m.end(id, reading)
	if err != nil {
		return s, err
	}
	defer done()
	return Session{CreatedAt: l.Before.Created, LastActive: l.active, Metadata: l.describe()}, nil
}

func sumOf(messages []session.Entry) (sum boundary.Amount) {
	for i := range messages {
		sum.Add(&messages[i])
	}
	return sum
}

// rootOf returns the id of the conversation that a session is part of: that of the original
// session.
func (m *Sessions) rootOf(id string) (string, error) {
	m.mu.Lock()
	known, found := m.ends[id]
	m.mu.Unlock()
	if found { // nothing that others add changes it
		if l, err := m.acquire(known.link, writing); err == nil {
			defer m.release(l)
			if err := m.lock(l); err != nil {
				return "", err
			}
			defer l.mu.Unlock()
			return l.Before.Root, nil
		}
	}
	l, done, err := m.end(id, writing)
	if err != nil {
		return "", err
	}
	defer done()
	return l.Before.Root, nil
}

// Totals returns the size of the conversation that a session is part of. Usually it reads
// only the last session, which knows what came before. If a session is missing, its messages
// do not count, and all the others have to be read.
func (m *Sessions) Totals(id string) (Totals, error) {
	l, done, err := m.end(id, reading)
	if err != nil {
		return Totals{}, err
	}
	tokens := l.Before.Tokens.Plus(l.Own())
	t := Totals{
		Conversation: l.Before.Root, Tail: l.id, Sessions: l.header.Continuation + 1,
		Messages: l.Before.Messages + len(l.Entries) - l.Copies, Tokens: tokens.Total(), Estimated: tokens.Estimated,
	}
	header, next := l.header, l.next
	done()
	if next == "" && m.isWhole(header) {
		return t, nil
	}
	return m.count(t)
}

// count computes Totals for a conversation with a missing session.
func (m *Sessions) count(t Totals) (Totals, error) {
	messages, _, chain, err := m.messages(t.Tail)
	tokens := sumOf(messages)
	t.Conversation, t.Missing, t.Sessions, t.Messages = chain.ID, chain.Missing, len(chain.Links), len(messages)
	t.Tokens, t.Estimated = tokens.Total(), tokens.Estimated
	return t, err
}

// Search returns the messages of a conversation that contain a text, ignoring case, oldest
// first. (Package index searches all sessions.)
func (m *Sessions) Search(id, text string) ([]Message, error) {
	messages, _, _, err := m.messages(id)
	text = strings.ToLower(text)
	return clones(slices.DeleteFunc(messages, func(e session.Entry) bool {
		return !strings.Contains(strings.ToLower(searchable(e.Message.Content)), text)
	})), err
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
