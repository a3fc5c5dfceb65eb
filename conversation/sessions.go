package conversation

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
)

// Sessions makes, loads, continues and lists sessions. All its methods may
// be called concurrently, and several managers, in several processes, may work
// on the same sessions.
type Sessions struct {
	*sessionsCore
	ctx context.Context // of its operations, or nil: see WithContext
}

// sessionsCore is what all views of a Sessions share.
type sessionsCore struct {
	store   store.Store
	owned   bool // the store is closed with the manager
	options Options
	cache   *cache
	saver   *saver

	recovering gate.Mutex // held while something is put in the place of a session

	shelves   shelves
	surveying gate.Mutex       // guards what follows
	heads     map[string]*head // what is known of all sessions, by name
	catalogue catalogue

	mu        sync.Mutex // guards what follows
	settings  Settings
	current   string            // the id of the current session, or ""
	tails     map[string]string // where the chain of a session ended when it was last looked at
	recovered map[string]string // what stands in for sessions that cannot be read
	closed    bool
}

// WithContext returns a view of the manager whose operations end when ctx does:
// waiting for a lock, the disk or another writer, and reading what is long. It is
// the same manager in all else: see session.Session.WithContext. An operation that
// ends like that returns an error that matches ctx.Err(); a message that it was to
// add is then added or not, and never half. What goes on in the background does not
// end with it.
func (m *Sessions) WithContext(ctx context.Context) *Sessions { return &Sessions{m.sessionsCore, ctx} }

// context returns the context of the manager's operations.
func (m *Sessions) context() context.Context {
	if m.ctx == nil {
		return context.Background()
	}
	return m.ctx
}

// lock locks a link.
func (m *Sessions) lock(l *link) error { return l.mu.LockContext(m.context()) }

// OpenSessions returns the manager of the sessions in a directory, which is
// made if it does not exist. An empty path keeps them in memory. The caller
// closes the manager.
func OpenSessions(basePath string, o *Options) (*Sessions, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	var st store.Store
	if basePath == "" {
		st = memory.New(nil)
	} else if st, err = file.Open(basePath, &opts.Files); err != nil {
		return nil, err
	}
	m := newSessions(st, opts)
	m.owned = true
	return m, nil
}

// NewSessions returns the manager of the sessions in a store, which the
// caller closes after the manager.
func NewSessions(st store.Store, o *Options) (*Sessions, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return newSessions(st, opts), nil
}

func newSessions(st store.Store, opts Options) *Sessions {
	m := &Sessions{sessionsCore: &sessionsCore{
		store: st, options: opts, settings: opts.Settings,
		tails: make(map[string]string), recovered: make(map[string]string),
	}}
	m.saver = newSaver(m.saveModified, opts.OnSaveError)
	m.cache = newCache(opts.Settings, opts.UnderPressure, m.closeLink)
	m.saver.start(opts.Settings.AutoSaveInterval)
	return m
}

// Settings returns the settings in force.
func (m *Sessions) Settings() Settings {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settings
}

// SetSettings changes the settings from now on. Zero values stand for defaults.
func (m *Sessions) SetSettings(s Settings) error {
	s, err := s.withDefaults()
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.settings = s
	m.mu.Unlock()
	m.cache.limit(s)
	m.saver.start(s.AutoSaveInterval)
	return nil
}

// sessionOptions are those of every session: see link.
func (m *Sessions) sessionOptions() *session.Options {
	return &session.Options{OnConflict: session.ReportAll, Logger: m.options.Logger}
}

// CreateSession makes an empty session, which becomes the current one. The title
// may be empty.
func (m *Sessions) CreateSession(title string) (Session, error) {
	l, err := m.create(session.Header{})
	if err != nil {
		return Session{}, err
	}
	defer m.cache.release(l)
	if err := m.lock(l); err != nil {
		return Session{}, err
	}
	defer l.mu.Unlock()
	if title != "" {
		if err := l.append(m.context(), titled(title)); err != nil {
			return Session{}, err
		}
	}
	m.setCurrent(l.id)
	return l.session(), nil
}

// create makes a session and opens it. The caller releases the link.
func (m *Sessions) create(h session.Header) (*link, error) {
	s, err := session.Create(m.context(), m.store, h, m.sessionOptions())
	if err != nil {
		return nil, err
	}
	l, err := m.adopt(s)
	if err == nil {
		l.mu.Lock()
		l.modified = true // it is new, which has to be saved too
		l.mu.Unlock()
	}
	return l, err
}

// opener returns the function that opens a session once more, beside the link.
func (m *Sessions) opener(id string) func() (*session.Session, error) {
	return func() (*session.Session, error) {
		return session.Open(m.context(), m.store, id, m.sessionOptions())
	}
}

// adopt puts an open session into the cache. The caller releases the link.
func (m *Sessions) adopt(s *session.Session) (*link, error) {
	l, err := openLink(m.context(), s)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return m.cache.put(l), nil
}

// LoadSession returns the session of an id as it is stored, and makes it the
// current one. There is always a session to return unless there is none of that
// id (the error then matches fs.ErrNotExist): damaged lines are passed over, and
// for a session that cannot be read at all its backup, or else a new session
// with a notice, stands in.
func (m *Sessions) LoadSession(id string) (Session, error) {
	l, err := m.acquireFresh(id, writing)
	if err != nil {
		return Session{}, err
	}
	defer m.cache.release(l)
	if err := m.lock(l); err != nil {
		return Session{}, err
	}
	defer l.mu.Unlock()
	m.setCurrent(l.id)
	return l.session(), nil
}

// CurrentSession returns the current session; ok is false if there is none.
func (m *Sessions) CurrentSession() (_ Session, ok bool, _ error) {
	id := m.currentID()
	if id == "" {
		return Session{}, false, nil
	}
	l, err := m.acquire(id)
	if err != nil {
		return Session{}, false, err
	}
	defer m.cache.release(l)
	if err := m.lock(l); err != nil {
		return Session{}, false, err
	}
	defer l.mu.Unlock()
	return l.session(), true, nil
}

// orCurrent returns a session or, for the zero Session, the current one; that is
// zero too if there is none.
func (m *Sessions) orCurrent(s Session) (Session, error) {
	if s.ID != "" || len(s.Messages) > 0 {
		return s, nil
	}
	current, _, err := m.CurrentSession()
	return current, err
}

func (m *Sessions) currentID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current
}

func (m *Sessions) setCurrent(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current = id
}

// acquire returns the link of a session. The caller releases it.
func (m *Sessions) acquire(id string) (*link, error) { return m.acquireFor(id, reading) }

// acquireFor is acquire that, if a session is wanted for writing that cannot be
// read, puts something in its place.
func (m *Sessions) acquireFor(id string, a access) (*link, error) {
	if err := store.CheckName(id); err != nil {
		return nil, err
	}
	m.mu.Lock()
	closed := m.closed
	m.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("session manager: %w", session.ErrClosed)
	}
	id = m.resolve(id)
	l, err := m.cache.get(m.context(), id, func() (*link, error) { return m.load(id) })
	if errors.Is(err, session.ErrCorrupt) {
		return m.recover(id, err, a)
	}
	return l, err
}

// acquireFresh is acquire that takes in what others have added. A session that
// was rewritten since we opened it (redacted, say) is opened again.
func (m *Sessions) acquireFresh(id string, a access) (*link, error) {
	l, err := m.acquireFor(id, a)
	if err != nil {
		return nil, err
	}
	if err = m.lock(l); err == nil {
		err = l.refresh(m.context())
		l.mu.Unlock()
	}
	if err == nil {
		return l, nil
	}
	m.cache.release(l)
	if !session.MustReopen(err) {
		return nil, err
	}
	m.cache.drop(l.id)
	return m.acquireFor(id, a)
}

// resolve returns the id of what stands in for a session that cannot be read, or
// the id itself.
func (m *Sessions) resolve(id string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if stand := m.recovered[id]; stand != "" {
		return stand
	}
	return id
}

func (m *Sessions) load(id string) (*link, error) {
	s, err := session.Open(m.context(), m.store, id, m.sessionOptions())
	if err != nil {
		return nil, err
	}
	l, err := openLink(m.context(), s)
	if err == nil {
		err = m.traceBack(l)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return l, nil
}

// traceBack finds out what came before a continuation that has no marker,
// because another program made it.
func (m *Sessions) traceBack(l *link) error {
	if l.header.Relation != session.RelationContinuation || l.before.root != l.id {
		return nil
	}
	chain, err := session.Chain(m.context(), m.store, l.id)
	if err != nil {
		return err
	}
	for _, id := range chain {
		if id == l.id {
			return nil
		}
		s, err := session.Open(m.context(), m.store, id, m.sessionOptions())
		if err != nil {
			return err
		}
		earlier, err := openLink(m.context(), s)
		if err = errors.Join(err, s.Close()); err != nil {
			return err
		}
		if l.before.root == l.id {
			l.before = origin{root: earlier.id, created: earlier.header.CreatedAt}
		}
		l.before.messages += len(earlier.entries) - earlier.copies
		l.before.tokens = l.before.tokens.plus(earlier.tokens())
	}
	return nil
}

// closeLink closes a link that is no longer in the cache. No later Save could wait
// for what it has not synced, so that is done now.
func (m *Sessions) closeLink(l *link) {
	err := l.flush(m.context(), m.opener(l.id))
	if errors.Is(err, session.ErrNotExist) || errors.Is(err, session.ErrClosed) {
		err = nil // there is nothing left to be saved, or somebody has closed it already
	}
	if err := errors.Join(err, l.s.Close()); err != nil {
		m.saver.report(fmt.Errorf("close session %s: %w", l.id, err))
	}
}

// Pin keeps a session in memory until it is unpinned.
func (m *Sessions) Pin(id string) { m.cache.pin(id, true) }

// Unpin lets a session go when room is needed.
func (m *Sessions) Unpin(id string) { m.cache.pin(id, false) }

// Prioritise says how much a session is worth keeping in memory: those of lower
// priority go first. Every session has priority 0 until it is given another.
func (m *Sessions) Prioritise(id string, priority int) { m.cache.prioritise(id, priority) }

// SessionsInMemory returns the ids of the sessions that are in memory, in no
// particular order, and roughly how many bytes their messages take.
func (m *Sessions) SessionsInMemory() (ids []string, bytes int64) { return m.cache.contents() }

// ReleaseMemory closes sessions until their messages take at most so many bytes,
// or none is left that may be closed.
func (m *Sessions) ReleaseMemory(bytes int64) { m.cache.shrinkTo(bytes) }

// DeleteSession takes a session out of the store. It reports whether the session
// is gone, which it is too if it was not there. A store of files keeps what it
// removes in its trash.
func (m *Sessions) DeleteSession(id string) (bool, error) {
	if err := store.CheckName(id); err != nil {
		return false, err
	}
	if m.cache.has(id) { // who is writing to it is let finish
		if l, err := m.acquire(id); err == nil {
			err = m.lock(l)
			if err == nil {
				l.mu.Unlock()
			}
			m.cache.release(l)
			if err != nil {
				return false, err
			}
		}
	}
	if err := m.context().Err(); err != nil {
		return false, err // closing a session that somebody writes to waits for them
	}
	m.cache.drop(id)
	err := m.store.Remove(m.context(), id)
	m.mu.Lock()
	delete(m.recovered, id)
	clear(m.tails)
	if m.current == id {
		m.current = ""
	}
	m.mu.Unlock()
	if errors.Is(err, session.ErrNotExist) {
		err = nil
	}
	return err == nil, err
}

// Close saves everything and closes all sessions. It returns what went wrong,
// also in the background since the last save.
func (m *Sessions) Close() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil
	}
	m.closed = true
	m.mu.Unlock()
	m.saver.stop()
	m.shelves.close()
	m.surveying.Lock()
	m.catalogue.close()
	m.surveying.Unlock()
	err := m.SaveAll()
	m.cache.close()
	err = errors.Join(err, m.saver.take())
	if m.owned {
		err = errors.Join(err, m.store.Close())
	}
	return err
}
