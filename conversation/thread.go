package conversation

import (
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// A thread is a chain of links that form one conversation. Messages are added to its
// last link; a link is continued once, by the first writer to do so.

// maxAttempts is how often an append is tried while others are faster. Every failed attempt
// means that another writer's append succeeded.
const maxAttempts = 1000

// maxUnsettled is how often an append with an unknown outcome is tried again.
const maxUnsettled = 3

// errUnsettled means that an append must be looked up and perhaps tried again.
var errUnsettled = errors.New("the outcome is not known yet")

// tail returns the last link of a session's chain. The caller must release it. The session
// itself may be missing, as long as one of its chain is there.
func (m *Sessions) tail(id string) (*link, error) { return m.tailFor(id, reading) }

// access says what a session is wanted for. Reading never writes: it must not bring back a
// session that was removed.
type access bool

const (
	reading access = false
	writing access = true
)

func (m *Sessions) tailFor(id string, a access) (*link, error) {
	l, err := m.acquireTail(id, a)
	if err != nil {
		return nil, err
	}
	for seen := map[string]bool{}; !seen[l.id]; {
		seen[l.id] = true
		if err := m.lock(l); err != nil {
			m.release(l)
			return nil, err
		}
		next := l.next
		l.mu.Unlock()
		if next == "" {
			m.rememberTail(id, l.id)
			return l, nil
		}
		following, err := m.follow(l, next, a)
		if err == nil && following == nil { // the session that it names is not there
			m.rememberTail(id, l.id)
			return l, nil
		}
		m.release(l)
		if err != nil {
			return nil, err
		}
		l = following
	}
	m.release(l)
	return nil, &session.Error{Op: "follow", Name: id, Kind: session.ErrCorrupt, Err: errors.New("its continuations form a circle")}
}

// acquireTail returns the last known link, or the session itself, or what is left of its
// chain.
func (m *Sessions) acquireTail(id string, a access) (*link, error) {
	m.mu.Lock()
	known := m.tails[id]
	m.mu.Unlock()
	if known != "" {
		if l, err := m.acquireFor(known, a); !isLost(err) {
			return l, err
		}
	}
	l, err := m.acquire(id)
	if !isLost(err) {
		return l, err
	}
	if left, findErr := m.survivors(id); findErr != nil {
		return nil, findErr
	} else if n := len(left); n > 0 {
		return m.acquireFor(left[n-1], a)
	}
	if errors.Is(err, session.ErrCorrupt) {
		return m.acquireFor(id, a)
	}
	return nil, err
}

// isLost reports whether an error means that a session counts as missing.
func isLost(err error) bool {
	return errors.Is(err, session.ErrNotExist) || errors.Is(err, session.ErrCorrupt)
}

// survivors returns the sessions of a chain in which one is missing or cannot be read,
// in order. There are none if no other session names the missing one.
func (m *Sessions) survivors(id string) ([]string, error) {
	ctx := m.context()
	chain, err := session.FindChain(ctx, m.store, id, nil)
	if err == nil || !errors.Is(err, session.ErrNotExist) && !errors.Is(err, session.ErrCorrupt) {
		return without(chain.Links, id), err
	}
	if errors.Is(err, session.ErrNotExist) {
		return nil, nil
	}
	names, err := store.Names(ctx, m.store)
	for _, name := range names {
		if l, err := session.ReadLink(ctx, m.store, name); err == nil && (l.Continues == id || l.Original == id) {
			chain, err := session.FindChain(ctx, m.store, name, nil)
			return without(chain.Links, id), err
		}
	}
	return nil, err
}

func without(ids []string, id string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(other string) bool { return other == id })
}

// rememberTail saves the next caller the search. It is only a hint: the link it leads to may
// have been continued since.
func (m *Sessions) rememberTail(id, tail string) {
	const enough = 10_000
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.tails) >= enough {
		clear(m.tails)
	}
	m.tails[id] = tail
}

// follow returns the continuation of a link. If that is missing, it returns the last
// session of the chain after it, or nil if there is none.
func (m *Sessions) follow(l *link, next string, a access) (*link, error) {
	if !m.links.Has(next) {
		next = m.skip(next)
	}
	following, err := m.acquireFor(next, a)
	if !isLost(err) {
		return following, err
	}
	if err := m.lock(l); err != nil {
		return nil, err
	}
	known := l.lost == next
	l.mu.Unlock()
	if known { // do not look through the whole store a second time
		return nil, nil
	}
	chain, err := session.FindChain(m.context(), m.store, l.id, nil)
	if err != nil {
		return nil, err
	}
	at := slices.Index(chain.Links, l.id)
	if last := len(chain.Links) - 1; at >= 0 && at < last {
		return m.acquireFor(chain.Links[last], a)
	}
	if err := m.lock(l); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	l.lost = next
	return nil, nil
}

// skip returns the last link after a session without reading the messages in between, because
// a conversation is resumed at its end.
func (m *Sessions) skip(id string) string {
	for seen := map[string]bool{}; !seen[id]; {
		seen[id] = true
		next := m.nextOf(id)
		if there, err := m.exists(next); err != nil || !there {
			break
		}
		id = next
	}
	return id
}

// nextOf returns the continuation that a session names, or "".
func (m *Sessions) nextOf(id string) string {
	s, err := session.Open(m.context(), m.store, id, m.sessionOptions())
	if err != nil {
		return "" // the caller that acquires it gets the reason
	}
	defer s.Close()
	next, _ := s.WithContext(m.context()).Continuation()
	return next
}

// append adds entries at the end of a conversation. It returns the id of the session that has
// the last of them, and the transitions that happened. Entries must have ids, because that is
// how an append with an unknown outcome is looked up: an entry that the log has is never
// written again.
func (m *Sessions) append(id string, entries ...session.Entry) (_ string, transitions []Transition, _ error) {
	unsettled := 0
	for attempts := 0; attempts < maxAttempts; attempts++ {
		l, err := m.tailFor(id, writing)
		if err != nil {
			return "", transitions, err
		}
		rest, moved, err := m.appendTo(l, entries)
		m.release(l)
		if moved != nil {
			m.moved(*moved)
			transitions = append(transitions, *moved)
		}
		if errors.Is(err, errUnsettled) && unsettled < maxUnsettled {
			unsettled++
			rest, err = m.missing(l.id, rest)
		}
		if err != nil {
			return "", transitions, err
		}
		if len(rest) == 0 {
			m.advance(id, l.id)
			return l.id, transitions, nil
		}
		if len(rest) < len(entries) || moved != nil {
			attempts = 0 // we made progress
		}
		entries = rest
	}
	return "", transitions, tooSlow("append", id)
}

// tooSlow is the error of a writer that others were always ahead of.
func tooSlow(op, id string) error {
	return &session.Error{Op: op, Name: id, Kind: session.ErrConflict, Err: errors.New("other writers kept getting there first")}
}

// change appends to the last link of a conversation whatever wanted returns for that
// link in its present state. That may be nothing.
func (m *Sessions) change(op, id string, wanted func(*link) ([]session.Entry, error)) error {
	return m.atTail(op, id, func(l *link) (bool, error) { return m.changeLink(l, wanted) })
}

// atTail runs do on the last link of a conversation until it is settled. Others may add
// to the conversation, or continue it, in the meantime.
func (m *Sessions) atTail(op, id string, do func(*link) (settled bool, _ error)) error {
	return session.Retry(func() error {
		l, err := m.tailFor(id, writing)
		if err != nil {
			return err
		}
		defer m.release(l)
		settled, err := do(l)
		if err == nil && !settled {
			return tooSlow(op, id)
		}
		return err
	}, nil)
}

func (m *Sessions) changeLink(l *link, wanted func(*link) ([]session.Entry, error)) (settled bool, _ error) {
	if err := m.lock(l); err != nil {
		return false, err
	}
	defer l.mu.Unlock()
	entries, err := wanted(l)
	if err != nil || len(entries) == 0 {
		return true, err
	}
	err = l.append(m.context(), entries...)
	if err == nil {
		return true, nil
	}
	return false, m.settle(l, err)
}

// clear removes messages of the last link of a conversation from the context. They stay
// in the log.
func (m *Sessions) clear(id string, targets func(*link) []string) error {
	return m.change("clear", id, func(l *link) (edits []session.Entry, _ error) {
		for _, target := range targets(l) {
			edits = append(edits, session.Entry{ID: newID(), Type: session.TypeContextEdit, ContextEdit: &session.ContextEditEntry{TargetID: target}})
		}
		return edits, nil
	})
}

// missing loads a link again and returns those of the entries that it does not have. After an
// append with an unknown outcome, only the log can tell.
func (m *Sessions) missing(id string, entries []session.Entry) ([]session.Entry, error) {
	m.links.Drop(id)
	l, err := m.acquire(id)
	if err != nil {
		return nil, err
	}
	defer m.release(l)
	if err := m.lock(l); err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	return l.lacks(entries), nil
}

// advance makes the conversation's last session the current one, if the conversation is the
// current one.
func (m *Sessions) advance(id, tail string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current == id {
		m.current = tail
	}
}

// appendTo adds as many of the entries to a link as belong there, and returns the rest.
// moved is set if the link was continued instead.
func (m *Sessions) appendTo(l *link, entries []session.Entry) (rest []session.Entry, moved *Transition, _ error) {
	if err := m.lock(l); err != nil {
		return entries, nil, err
	}
	defer l.mu.Unlock()
	rest = l.lacks(entries)
	if len(rest) == 0 {
		return rest, nil, nil
	}
	if there, err := m.isContinued(l); err != nil || there {
		return rest, nil, err
	}
	limit := m.limitOf(l)
	if l.next != "" || l.Due(&rest[0], limit) {
		moved, err := m.continueLink(l, &rest[0])
		return rest, moved, m.settle(l, err)
	}
	batch := rest[:min(len(rest), max(1, limit-len(l.Entries)))] // after these, the boundary may be due before any entry
	err := l.append(m.context(), batch...)
	if err == nil {
		return rest[len(batch):], nil, nil
	}
	settled := m.settle(l, err)
	if errors.Is(err, session.ErrExist) && len(l.lacks(batch)) == len(batch) {
		return rest, nil, err // another branch has an entry with that id
	}
	return rest, nil, settled
}

// isContinued reports whether the continuation of a link is there. The link is locked.
func (m *Sessions) isContinued(l *link) (bool, error) {
	if l.next == "" {
		return false, nil
	}
	there, err := m.exists(l.next)
	if errors.Is(err, session.ErrInvalid) {
		return false, nil // no session can have such a name
	}
	return there, err
}

// limitOf returns how many messages a link may have. The link is locked.
func (m *Sessions) limitOf(l *link) int {
	if l.config.MaxMessages > 0 {
		return l.config.MaxMessages
	}
	return m.Settings().MaxMessagesPerSession
}

// lacks returns those of the entries that the link does not have.
func (l *link) lacks(entries []session.Entry) []session.Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e session.Entry) bool { return l.known[e.ID] })
}

// continueLink starts the continuation of a link, for a message or, if that is nil,
// because the caller asked for it. The link is locked. The continuation is locked after
// it, which is the order for all links of a chain.
func (m *Sessions) continueLink(l *link, first *session.Entry) (*Transition, error) {
	if l.s.LeafID() != l.leaf {
		return nil, errBehind
	}
	s, err := l.s.WithContext(m.context()).Continue(l.Carry(m.limitOf(l), first)...)
	if err != nil {
		return nil, err
	}
	next, err := m.adopt(s)
	if err != nil {
		return nil, err
	}
	defer m.release(next)
	next.mu.Lock()
	next.modified = true
	next.mu.Unlock()
	l.next = next.id
	l.leaf = l.s.LeafID() // the record of the continuation
	l.modified = true
	return &Transition{Conversation: next.Before.Root, From: l.id, To: next.id, Index: next.header.Continuation}, nil
}

// settle turns an error of a link into what the caller has to know: nil if the attempt can
// simply be repeated.
func (m *Sessions) settle(l *link, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, session.ErrConflict), errors.Is(err, errBehind):
		return l.refresh(m.context())
	case errors.Is(err, session.ErrExist): // perhaps on another branch
		return errors.Join(l.refresh(m.context()), l.read(m.context()))
	case session.MustReopen(err):
		return fmt.Errorf("%w: %w", errUnsettled, err)
	}
	return err
}

// moved records that a conversation continues in another session.
func (m *Sessions) moved(t Transition) {
	m.mu.Lock()
	if m.current == t.From {
		m.current = t.To
	}
	m.mu.Unlock()
	m.options.Logger.Info("conversation continued in another session", "conversation", t.Conversation, "from", t.From, "to", t.To, "index", t.Index)
}

// tell calls OnTransition. It is called without locks, so that the function can call any
// method.
func (m *Sessions) tell(transitions []Transition) {
	for _, t := range transitions {
		m.options.OnTransition(t)
	}
}

// AddMessage adds a message at the end of the conversation that a session is part of,
// and returns it as it was stored. If the session is full, the message goes into its
// continuation. Missing fields (id, time, category) are filled in.
func (m *Sessions) AddMessage(id string, msg Message) (Message, error) {
	given := msg.ID != ""
	msg, moved, err := m.addMessage(id, msg.withDefaults(now()), given)
	m.tell(moved)
	return msg, err
}

// addMessage is AddMessage without calling OnTransition. given is true if the caller
// chose the message's id; ours are unique.
func (m *Sessions) addMessage(id string, msg Message, given bool) (Message, []Transition, error) {
	if err := errors.Join(msg.Validate(), session.CheckRole(msg.Role)); err != nil {
		return Message{}, nil, err
	}
	e, err := msg.own()
	if err != nil {
		return Message{}, nil, err
	}
	if given {
		if err := m.checkFree(id, msg.ID); err != nil {
			return Message{}, nil, err
		}
	}
	_, moved, err := m.append(id, e)
	if err != nil {
		return Message{}, moved, err
	}
	return msg, moved, nil
}

// checkFree returns an error that matches session.ErrExist if a conversation has an entry
// with an id.
func (m *Sessions) checkFree(id, message string) error {
	err := m.inWhole(id, func(whole *session.Session) error {
		taken, err := whole.Has(message)
		if err == nil && taken {
			err = &session.Error{Op: "add message", Name: whole.SessionOf(message), Kind: session.ErrExist, Err: fmt.Errorf("message %q", message)}
		}
		return err
	})
	if errors.Is(err, session.ErrCorrupt) {
		return nil // we do not know; appending will tell
	}
	return err
}

// CheckSessionBoundary reports whether a session is full. The zero Session means the current
// one.
func (m *Sessions) CheckSessionBoundary(s Session) bool {
	s, err := m.orCurrent(s)
	return err == nil && s.MessageCount() >= m.Settings().MaxMessagesPerSession
}

// CreateContinuationSession starts the continuation of a session, full or not, and
// makes it the current one. The zero Session means the current one. If the session has
// been continued already, that continuation is returned.
func (m *Sessions) CreateContinuationSession(source Session) (Session, error) {
	source, err := m.orCurrent(source)
	if err != nil {
		return Session{}, err
	}
	if _, err := m.SaveSession(source); err != nil {
		return Session{}, err
	}
	for range maxAttempts {
		next, moved, err := m.continued(source.ID)
		if moved != nil {
			m.moved(*moved)
			m.tell([]Transition{*moved})
		}
		if err != nil {
			return Session{}, err
		}
		if next != "" {
			return m.LoadSession(next)
		}
	}
	return Session{}, tooSlow("continue", source.ID)
}

// continued returns the continuation of a session, and creates it if there is none. "" means
// that the caller must try again.
func (m *Sessions) continued(id string) (next string, moved *Transition, _ error) {
	l, err := m.acquire(id)
	if err != nil {
		return "", nil, err
	}
	defer m.release(l)
	if err := m.lock(l); err != nil {
		return "", nil, err
	}
	defer l.mu.Unlock()
	if there, err := m.isContinued(l); err != nil || there {
		return l.next, nil, err
	}
	moved, err = m.continueLink(l, nil)
	if err = m.settle(l, err); moved != nil {
		next = moved.To
	}
	return next, moved, err
}

// Tail returns the id of the session that messages of a conversation are added to. If
// the session that should follow is not there, another one is created.
func (m *Sessions) Tail(id string) (string, error) {
	tail := ""
	err := m.atTail("continue", id, func(l *link) (settled bool, _ error) {
		if err := m.lock(l); err != nil {
			return false, err
		}
		next := l.next
		l.mu.Unlock()
		if tail = l.id; next == "" {
			return true, nil
		}
		next, moved, err := m.continued(l.id)
		if moved != nil {
			m.moved(*moved)
			m.tell([]Transition{*moved})
		}
		tail = next
		return next != "", err
	})
	return tail, err
}

// exists reports whether there is a session of an id.
func (m *Sessions) exists(id string) (bool, error) {
	if err := store.CheckName(id); err != nil {
		return false, err
	}
	log, err := m.store.Open(m.context(), id)
	if errors.Is(err, session.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, log.Close()
}
