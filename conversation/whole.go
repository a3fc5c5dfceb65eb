package conversation

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/internal/pool"
	"github.com/coppice-dev/coppice/session"
)

// whole is a conversation, or its last sessions, open as one session for reading. It follows what
// others add, in new sessions, too; only what it cannot follow has it opened again: a session that
// was lost and is back.
type whole struct {
	*session.Session
	room    int      // how many tokens of the conversation are wanted of it
	awaited []string // the sessions that it lacks; they may come back

	mu      sync.Mutex // guards what follows
	readers int
	dropped bool     // by the pool; the last reader closes it
	leaf    int32    // of the shape from which ids was read
	size    int      // of that shape
	ids     []string // of the messages, for their pages
}

// everything is more tokens than any conversation has.
const everything = math.MaxInt

// begin begins to read, or returns an error that session.MustReopen knows. The caller calls end.
func (w *whole) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dropped {
		return session.ErrClosed
	}
	w.readers++
	return nil
}

// end ends what begin began.
func (w *whole) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readers--
	w.closeIfUnread()
}

// close closes the session when nobody reads it any more. The pool drops it because of one reader,
// or because any session was deleted; the other readers go on.
func (w *whole) close() (gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropped = true
	w.closeIfUnread()
	return true
}

// closeIfUnread is called with mu held.
func (w *whole) closeIfUnread() {
	if w.dropped && w.readers == 0 {
		_ = w.Close() // it was only read
	}
}

// inWhole calls do with all of a conversation, as it is stored now.
func (m *Sessions) inWhole(id string, do func(*whole) error) error {
	return m.inOpen(m.wholes, id, everything, func() (*whole, error) {
		chain, err := m.chainOf(id, reading)
		if err != nil {
			return nil, err
		}
		return m.openWhole(chain, everything)
	}, do)
}

// inEnd is inWhole for as many of the last sessions as it takes to fill a room: earlier messages
// would only be left out of the context, but for those that sessions begin with copies of. roomAt
// returns how large the room is, given the last link.
func (m *Sessions) inEnd(id string, roomAt func(*link) int, do func(*session.Session) error) error {
	for tries := 0; ; tries++ {
		l, done, err := m.end(id, reading)
		if err != nil {
			return err
		}
		room := roomAt(l)
		if l.reshaped {
			room = everything
		}
		if l.header.Relation == session.RelationContinuation {
			done() // because links are locked from earlier to later
			return m.inRecent(l.id, room, do)
		}
		err = do(l.s.WithContext(m.context()))
		done()
		if !session.MustReopen(err) || tries == maxReopened {
			return err
		}
	}
}

// inRecent calls do with the last sessions of the conversation that ends with a link, as many as
// fill a room.
func (m *Sessions) inRecent(last string, room int, do func(*session.Session) error) error {
	return m.inOpen(m.recent, last, room, func() (*whole, error) {
		chain, err := m.lastOf(last, room)
		if err != nil {
			return nil, err
		}
		return m.openWhole(chain, room)
	}, func(w *whole) error { return do(w.WithContext(m.context())) })
}

// inOpen calls do with what a pool has of a conversation, brought up to date. What cannot be, or
// lacks something, is opened again.
func (m *Sessions) inOpen(p *pool.Pool[*whole], key string, room int, open func() (*whole, error), do func(*whole) error) error {
	ctx := m.context()
	for tries := 0; ; tries++ {
		isStale := false
		w, err := p.Get(ctx, key, open)
		if err == nil {
			isStale, err = m.readOpen(w, room, do)
			p.Release(key, w)
		}
		if !isStale && !session.MustReopen(err) || ctx.Err() != nil || tries == maxReopened {
			return err
		}
		p.Drop(key)
	}
}

// readOpen calls do with a conversation that is open, brought up to date. If isStale, it could not be,
// and do was not called.
func (m *Sessions) readOpen(w *whole, room int, do func(*whole) error) (isStale bool, _ error) {
	if err := w.begin(); err != nil {
		return true, err
	}
	defer w.end()
	if err := m.update(w, room); err != nil {
		return true, err
	}
	return false, do(w)
}

// update reads what others have added. An error means that the conversation must be opened again,
// unless the context is done.
func (m *Sessions) update(w *whole, room int) error {
	ctx := m.context()
	if w.room < room || slices.ContainsFunc(w.awaited, m.isThere) {
		return cmp.Or(ctx.Err(), session.ErrReplaced)
	}
	_, err := w.WithContext(ctx).Refresh()
	return err
}

// openWhole opens a chain as one session.
func (m *Sessions) openWhole(c session.Linked, room int) (*whole, error) {
	replaced, err := m.replacedIn(c)
	if err != nil {
		return nil, err
	}
	w := &whole{room: room, awaited: slices.DeleteFunc(slices.Concat(c.Missing, replaced), func(id string) bool {
		return slices.Contains(c.Links, id) || m.isThere(id)
	})}
	w.Session, err = session.OpenChain(m.context(), m.store, c, m.sessionOptions())
	return w, err
}

// replacedIn returns the sessions that were lost when a chain was continued, in the place of which
// it has others. Each has left room in the numbers of the links.
func (m *Sessions) replacedIn(c session.Linked) (replaced []string, _ error) {
	var numbers [2]int
	for i, name := range []string{c.Links[0], c.Links[len(c.Links)-1]} {
		h, err := m.header(m.context(), name)
		if err != nil && !isLost(err) {
			return nil, err
		}
		numbers[i] = h.Continuation
	}
	if numbers[1]-numbers[0] < len(c.Links) {
		return nil, nil
	}
	for _, name := range c.Links {
		l, err := session.ReadLink(m.context(), m.store, name)
		if err != nil {
			return nil, err
		}
		replaced = append(replaced, l.Replaced...)
	}
	return replaced, nil
}

// lastOf returns the last sessions of the conversation that ends with a link, as many as fill a
// room. It returns all if one of the last is lost or says something about those before it.
func (m *Sessions) lastOf(id string, room int) (c session.Linked, _ error) {
	tokens, after := 0, session.Header{}
	for name := id; room < everything; name = after.ParentSession {
		l, err := m.acquire(name, reading)
		if err != nil {
			break
		}
		if err := m.lock(l); err != nil {
			m.release(l)
			return c, err
		}
		tokens = max(tokens, l.Before.Tokens.Plus(l.Own()).Total())
		isNext := len(c.Links) == 0 || l.next == c.ID && !leavesRoom(after, l.header)
		isPlain, before := isNext && !l.reshaped, l.Before.Tokens.Total()
		after = l.header
		l.mu.Unlock()
		m.release(l)
		if !isPlain || tokens <= room {
			break
		}
		c.ID, c.Links = name, slices.Insert(c.Links, 0, name)
		if tokens-before > room {
			return c, nil
		}
	}
	return session.FindChain(m.context(), m.store, id, nil)
}

// LoadMessages returns a page of a conversation's messages; the first page is 1
// and has the oldest. Only the messages of the page are read.
func (m *Sessions) LoadMessages(id string, page, pageSize int) (messages []Message, _ error) {
	if page < 1 || pageSize < 1 {
		return nil, &session.Error{Op: "load messages", Name: id, Kind: session.ErrInvalid, Err: errors.New("page and page size must be at least 1")}
	}
	err := m.inWhole(id, func(w *whole) (err error) {
		messages, err = w.page(m.context(), page, pageSize)
		return err
	})
	if !errors.Is(err, session.ErrCorrupt) {
		return messages, err
	}
	all, _, _, err := m.messages(id)
	return clones(pageOf(all, page, pageSize)), err
}

// pageOf returns as much of a page of a list as there is. It multiplies only what is in the list,
// because a page and its size may be as large as an int.
func pageOf[T any](list []T, page, size int) []T {
	if page-1 > len(list)/size {
		return nil
	}
	rest := list[(page-1)*size:]
	return rest[:min(size, len(rest))]
}

// page reads a page of the messages. From the others we only need the first bytes of their lines,
// once. If one of the page cannot be read, what is a message is not known.
func (w *whole) page(ctx context.Context, page, size int) (messages []Message, _ error) {
	shape, err := w.WithContext(ctx).Shape()
	if err != nil {
		return nil, err
	}
	for e, err := range shape.Entries(shape.Numbers(pageOf(w.messageIDs(shape), page, size))) {
		if err != nil {
			return nil, err
		}
		if e.Message == nil {
			return nil, session.ErrCorrupt
		}
		messages = append(messages, fromEntry(e))
	}
	return messages, nil
}

// messageIDs returns the ids of the messages.
func (w *whole) messageIDs(shape *session.Shape) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leaf != shape.Leaf() || w.size != shape.Len() {
		w.leaf, w.size, w.ids = shape.Leaf(), shape.Len(), nil
		for _, n := range shape.Path(w.leaf) {
			if shape.Type(n) == session.TypeMessage {
				w.ids = append(w.ids, shape.ID(n))
			}
		}
	}
	return w.ids
}
