package conversation

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
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

// openWhole opens a conversation as one session, as it is stored now. The caller closes it.
func (m *Sessions) openWhole(id string, a access) (*session.Session, session.Linked, error) {
	if err := m.refreshTail(id, a); err != nil {
		return nil, session.Linked{}, err
	}
	chain, err := m.chain(id)
	if err != nil {
		return nil, chain, err
	}
	whole, err := session.OpenChain(m.context(), m.store, chain, m.sessionOptions())
	if err != nil {
		return nil, chain, err
	}
	return whole.WithContext(m.context()), chain, nil
}

// messages returns all messages of a conversation, the sessions that they are in, and the
// conversation itself.
func (m *Sessions) messages(id string) (messages []session.Entry, in []string, _ session.Linked, _ error) {
	whole, chain, err := m.openWhole(id, reading)
	if err != nil {
		return nil, nil, chain, err
	}
	path, err := whole.Forward("")
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
		l.Tokens += sumOf(messages[i : i+1])
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
	l, err := m.tail(id)
	if err != nil {
		return s, err
	}
	defer m.release(l)
	if err := m.lock(l); err != nil {
		return s, err
	}
	defer l.mu.Unlock()
	return Session{CreatedAt: l.Before.Created, LastActive: l.active, Metadata: l.describe()}, nil
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
	return l.Before.Root, nil
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
	tokens := l.Before.Tokens.Plus(l.Own())
	t := Totals{
		Conversation: l.Before.Root, Tail: l.id, Sessions: l.header.Continuation + 1,
		Messages: l.Before.Messages + len(l.Entries) - l.Copies, Tokens: tokens.Total(), Estimated: tokens.Estimated,
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
	messages, _, chain, err := m.messages(t.Tail)
	var tokens boundary.Amount
	for i := range messages {
		tokens.Add(&messages[i])
	}
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

// joined is sessions of a chain as one.
type joined struct {
	*session.Session
	room    int      // how many tokens of it are wanted
	awaited []string // the sessions that it lacks; they may come back
	readers atomic.Int32
}

// everything is more tokens than any conversation has.
const everything = math.MaxInt

// inWhole calls do with a conversation as one session, which has what others have added. It is
// only for reading.
func (m *Sessions) inWhole(id string, do func(*session.Session) error) error {
	return m.inEnd(id, everything, do)
}

// inEnd is inWhole for as many of the last sessions as it takes to fill a room: earlier messages
// would only be left out of the context, but for those that sessions begin with copies of.
func (m *Sessions) inEnd(id string, room int, do func(*session.Session) error) error {
	for tries := 0; ; tries++ {
		if err := m.refreshTail(id, reading); err != nil {
			return err
		}
		l, err := m.tail(id)
		if err != nil {
			return err
		}
		s, leave, err := m.joinTo(l, room)
		if err == nil {
			err = do(s)
			leave()
		}
		m.release(l)
		if !session.MustReopen(err) || tries == maxUnsettled {
			return err
		}
		m.links.Drop(l.id)
	}
}

// joinTo returns the end of the conversation whose last link is l, brought up to date. The caller
// calls leave when it has read it. An error that session.MustReopen knows means that the link must be
// opened again.
func (m *Sessions) joinTo(l *link, room int) (s *session.Session, leave func(), _ error) {
	if l.header.Relation != session.RelationContinuation {
		return l.s.WithContext(m.context()), func() {}, nil
	}
	if err := m.lock(l); err != nil {
		return nil, nil, err
	}
	if l.reshaped {
		room = everything
	}
	j := l.joinedFor(room)
	l.mu.Unlock()
	var chain session.Linked
	var err error
	if j == nil { // without the lock, because links are locked from earlier to later
		chain, err = m.endOf(l, room)
	}
	if err = errors.Join(err, m.lock(l)); err != nil {
		return nil, nil, err
	}
	defer l.mu.Unlock()
	if j = l.joinedFor(room); j == nil {
		if j, err = m.join(chain, room); err != nil {
			return nil, nil, err
		}
		l.keep(j)
	}
	if m.isBack(j.awaited) {
		return nil, nil, session.ErrReplaced
	}
	s = j.WithContext(m.context())
	if _, err = s.Refresh(); err != nil {
		return nil, nil, err
	}
	j.readers.Add(1)
	return s, func() { j.readers.Add(-1) }, nil
}

// keep keeps the end of the conversation for the next reader. Smaller ones are not needed any more,
// and nobody begins to read one while l is locked.
func (l *link) keep(j *joined) {
	l.joined = append(slices.DeleteFunc(l.joined, func(old *joined) bool {
		isSmaller := old.room < j.room && j.room < everything && old.readers.Load() == 0
		if isSmaller {
			_ = old.Close() // it was only read
		}
		return isSmaller
	}), j)
}

// joinedFor returns the end of the conversation that fills a room, or nil.
func (l *link) joinedFor(room int) *joined {
	i := slices.IndexFunc(l.joined, func(j *joined) bool { return j.room >= room && (j.room < everything || room == everything) })
	if i < 0 {
		return nil
	}
	return l.joined[i]
}

// endOf returns the last sessions of the conversation that ends with l, as many as fill a room. It
// returns all if one of the last is lost or says something about those before it.
func (m *Sessions) endOf(l *link, room int) (c session.Linked, _ error) {
	end, following := 0, l.header
	for name := l.id; room < everything; name = following.ParentSession {
		e, err := m.acquire(name)
		if err != nil {
			break
		}
		if err := m.lock(e); err != nil {
			m.release(e)
			return c, err
		}
		end = max(end, e.Before.Tokens.Plus(e.Own()).Total())
		isNext := len(c.Links) == 0 || e.next == c.ID && !leavesRoom(following, e.header)
		isPlain, before := isNext && !e.reshaped, e.Before.Tokens.Total()
		following = e.header
		e.mu.Unlock()
		m.release(e)
		if !isPlain || end <= room {
			break
		}
		c.ID, c.Links = name, slices.Insert(c.Links, 0, name)
		if end-before > room {
			return c, nil
		}
	}
	return l.s.FindChain(m.context(), nil)
}

// join opens a chain as one session.
func (m *Sessions) join(c session.Linked, room int) (*joined, error) {
	j := &joined{room: room, awaited: slices.Clone(c.Missing)}
	first, err := m.header(m.context(), c.Links[0])
	if err != nil && !isLost(err) {
		return nil, err
	}
	last, err := m.header(m.context(), c.Links[len(c.Links)-1])
	if err != nil && !isLost(err) {
		return nil, err
	}
	for i := 0; i < len(c.Links) && last.Continuation-first.Continuation >= len(c.Links); i++ { // some were replaced
		l, err := session.ReadLink(m.context(), m.store, c.Links[i])
		if err != nil {
			return nil, err
		}
		j.awaited = append(j.awaited, l.Replaced...)
	}
	j.awaited = slices.DeleteFunc(j.awaited, func(id string) bool { return slices.Contains(c.Links, id) || m.isThere(id) })
	j.Session, err = session.OpenChain(m.context(), m.store, c, m.sessionOptions())
	return j, err
}

// isBack reports whether one of some lost sessions is there again.
func (m *Sessions) isBack(lost []string) bool { return slices.ContainsFunc(lost, m.isThere) }

func (m *Sessions) isThere(id string) bool {
	there, err := m.exists(id)
	return there && err == nil
}
