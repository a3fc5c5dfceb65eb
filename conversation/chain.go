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
	// Links are the sessions, the original first.
	Links []Link
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
}

// walkBack calls visit with the links of a chain, the last first, until it
// returns false. Links are not locked.
func (m *Sessions) walkBack(id string, visit func(*link) bool) error {
	l, err := m.tail(id)
	if err != nil {
		return err
	}
	seen := make(map[string]bool)
	for {
		seen[l.id] = true
		goOn := visit(l)
		header := l.header
		m.cache.release(l)
		if !goOn || header.Relation != session.RelationContinuation || seen[header.ParentSession] {
			return nil
		}
		if l, err = m.acquire(header.ParentSession); err != nil {
			if errors.Is(err, session.ErrNotExist) || errors.Is(err, session.ErrInvalid) {
				return nil // it was removed: the chain begins here
			}
			return err
		}
	}
}

// eachLink calls visit with the links of a chain, the first first, each locked.
func (m *Sessions) eachLink(id string, visit func(*link) bool) error {
	var ids []string
	err := m.walkBack(id, func(l *link) bool {
		ids = append(ids, l.id)
		return true
	})
	if err != nil {
		return err
	}
	for _, id := range slices.Backward(ids) {
		goOn, err := m.visit(id, visit)
		if err != nil || !goOn {
			return err
		}
	}
	return nil
}

func (m *Sessions) visit(id string, visit func(*link) bool) (bool, error) {
	l, err := m.acquire(id)
	if err != nil {
		return false, err
	}
	defer m.cache.release(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	return visit(l), nil
}

// Conversation returns all of the conversation that a session is part of, as it
// is stored now.
func (m *Sessions) Conversation(id string) (Conversation, error) {
	if err := m.refreshTail(id, reading); err != nil {
		return Conversation{}, err
	}
	var c Conversation
	err := m.eachLink(id, func(l *link) bool {
		own := l.own()
		if len(c.Links) == 0 {
			c.Session = Session{ID: l.id, CreatedAt: l.header.CreatedAt}
			own = l.withoutMarker()
		}
		c.Links = append(c.Links, Link{ID: l.id, Started: l.header.CreatedAt, First: len(c.Messages), Messages: len(own), Tokens: l.tokens().total()})
		c.Messages = append(c.Messages, clones(own)...)
		c.LastActive, c.Metadata = l.active, l.describe()
		return true
	})
	if err != nil {
		return Conversation{}, err
	}
	c.Metadata[MetaMessageCount], c.Metadata[MetaTokenCount] = len(c.Messages), c.TotalTokens()
	return c, nil
}

// withoutMarker returns the messages of a link that is the first there is: what
// it was given by one that is gone has no other place.
func (l *link) withoutMarker() []session.Entry {
	return slices.DeleteFunc(slices.Clone(l.entries), func(e session.Entry) bool { return isMarker(&e) })
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
		l.mu.Lock()
		ended := l.next == ""
		l.mu.Unlock()
		m.cache.release(l)
		if ended {
			return nil
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
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.before.root, nil
}

// Totals returns the size of the conversation that a session is part of. It
// costs what its last session does: that knows what came before.
func (m *Sessions) Totals(id string) (Totals, error) {
	if err := m.refreshTail(id, reading); err != nil {
		return Totals{}, err
	}
	l, err := m.tail(id)
	if err != nil {
		return Totals{}, err
	}
	defer m.cache.release(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	tokens := l.before.tokens.plus(l.tokens())
	return Totals{
		Conversation: l.before.root, Tail: l.id, Sessions: l.header.Continuation + 1,
		Messages: l.count(), Tokens: tokens.total(), Estimated: tokens.estimated,
	}, nil
}

// LoadMessages returns a page of a conversation's messages; the first page is 1
// and has the oldest. Only the sessions that the page is in are read.
func (m *Sessions) LoadMessages(id string, page, pageSize int) ([]Message, error) {
	if page < 1 || pageSize < 1 {
		return nil, &session.Error{Op: "load messages", Name: id, Kind: session.ErrInvalid, Err: errors.New("page and page size begin at 1")}
	}
	if err := m.refreshTail(id, reading); err != nil {
		return nil, err
	}
	from := (page - 1) * pageSize
	to := from + pageSize
	var parts [][]Message
	err := m.walkBack(id, func(l *link) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		own, first := l.own(), l.before.messages
		if lo, hi := max(from-first, 0), min(to-first, len(own)); lo < hi {
			parts = append(parts, clones(own[lo:hi]))
		}
		return first > from
	})
	slices.Reverse(parts)
	return slices.Concat(parts...), err
}

// Search returns the messages of a conversation whose text contains a text,
// whatever the case, the oldest first. (Package index searches all sessions.)
func (m *Sessions) Search(id, text string) ([]Message, error) {
	if err := m.refreshTail(id, reading); err != nil {
		return nil, err
	}
	text = strings.ToLower(text)
	var found []Message
	first := true
	err := m.eachLink(id, func(l *link) bool {
		own := l.own()
		if first {
			own, first = l.withoutMarker(), false
		}
		for _, e := range own {
			if strings.Contains(strings.ToLower(searchable(e.Message.Content)), text) {
				found = append(found, fromEntry(e.Clone()))
			}
		}
		return true
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
