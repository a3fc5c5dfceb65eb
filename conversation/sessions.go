package conversation

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/internal/pool"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
)

// Sessions creates, loads, continues and lists sessions. All its methods may be called
// concurrently, and several managers, in one process or many, may work on the same sessions.
type Sessions struct {
	*sessionsCore
	ctx context.Context // for its operations, or nil: see WithContext
}

// sessionsCore is what all views of a Sessions share.
type sessionsCore struct {
	store   store.Store
	owned   bool // close the store with the manager
	options Options
	links   *pool.Pool[*link] // the sessions in memory, by id
	saver   *saver

	recovering gate.Mutex // held while a replacement for a session is found or created

	shelves   *pool.Pool[*shelf] // the sessions whose pages are read, by id
	surveying gate.Mutex         // guards what follows
	heads     map[string]*head   // what is known about all sessions, by name
	catalogue catalogue

	mu        sync.Mutex // guards what follows
	settings  Settings
	current   string            // the id of the current session, or ""
	tails     map[string]string // the last session of a chain when we last looked; a hint
	recovered map[string]string // the replacements of sessions that cannot be read
	closed    bool
}

// WithContext returns a view of the manager whose operations end when ctx ends: waiting for a
// lock, the disk or another writer, and reading what is long. In every other way it is the
// same manager: see session.Session.WithContext. An operation that ends like that returns an
// error that matches ctx.Err(), and a message that it was adding is added or not, never half.
// Background work does not end with it.
func (m *Sessions) WithContext(ctx context.Context) *Sessions { return &Sessions{m.sessionsCore, ctx} }

// context returns the context for the manager's operations.
func (m *Sessions) context() context.Context {
	if m.ctx == nil {
		return context.Background()
	}
	return m.ctx
}

// lock locks a link.
func (m *Sessions) lock(l *link) error { return l.mu.LockContext(m.context()) }

// OpenSessions returns the manager of the sessions in a directory, which is created if
// it does not exist. An empty path keeps them in memory. The caller closes the manager.
// Every message is on the disk when the call that adds it returns; NewSessions takes any
// other store.
func OpenSessions(basePath string, o *Options) (*Sessions, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	var st store.Store
	if basePath == "" {
		st = memory.New(nil)
	} else if st, err = file.Open(basePath, nil); err != nil {
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
	m.links = pool.New(limitsOf(opts.Settings), pool.Options[*link]{
		Close: m.closeLink, Size: func(l *link) int64 { return l.bytes.Load() }, IsShort: opts.UnderPressure,
	})
	m.shelves = pool.New(pool.Limits{Count: maxShelves}, pool.Options[*shelf]{Close: (*shelf).close})
	m.saver = newSaver(m.SaveAll, opts.OnSaveError, opts.Settings.AutoSaveInterval) // last, for it begins at once
	return m
}

// Settings returns the settings in force.
func (m *Sessions) Settings() Settings {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settings
}

// SetSettings changes the settings from now on. Zero values mean the defaults.
func (m *Sessions) SetSettings(s Settings) error {
	s, err := s.withDefaults()
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.settings = s
	m.mu.Unlock()
	m.links.Limit(limitsOf(s))
	m.saver.setInterval(s.AutoSaveInterval)
	return nil
}

// sessionOptions returns the options of every session: see link for why they report all
// conflicts.
func (m *Sessions) sessionOptions() *session.Options {
	return &session.Options{OnConflict: session.ReportAll, Logger: m.options.Logger}
}

// CreateSession creates an empty session and makes it the current one. The title may be
// empty.
func (m *Sessions) CreateSession(title string) (Session, error) {
	l, err := m.create(session.Header{})
	if err != nil {
		return Session{}, err
	}
	defer m.release(l)
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

// create creates a session and opens it. The caller must release the link.
func (m *Sessions) create(h session.Header) (*link, error) {
	s, err := session.Create(m.context(), m.store, h, m.sessionOptions())
	if err != nil {
		return nil, err
	}
	l, err := m.adopt(s)
	if err == nil {
		l.mu.Lock()
		l.modified = true // a new session has to be saved too
		l.mu.Unlock()
	}
	return l, err
}

// opener returns a function that opens a session a second time, beside the link.
func (m *Sessions) opener(id string) func() (*session.Session, error) {
	return func() (*session.Session, error) {
		return session.Open(m.context(), m.store, id, m.sessionOptions())
	}
}

// adopt puts an open session into the pool. The caller must release the link.
func (m *Sessions) adopt(s *session.Session) (*link, error) {
	l, err := openLink(m.context(), s)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	got, err := m.links.Get(context.Background(), l.id, func() (*link, error) { return l, nil })
	if got != l {
		m.closeLink(l) // another goroutine has loaded it already
	}
	return got, err
}

// release ends the use of a link.
func (m *Sessions) release(l *link) { m.links.Release(l.id, l) }

func limitsOf(s Settings) pool.Limits {
	return pool.Limits{Count: s.MaxSessionsInMemory, Bytes: s.MaxBytesInMemory}
}

// LoadSession returns a session as it is stored, and makes it the current one. If there is no
// session with that id, the error matches fs.ErrNotExist. Otherwise there is always something
// to return: damaged lines are skipped, and if the session cannot be read at all, its backup
// replaces it, or else a new session with a notice.
func (m *Sessions) LoadSession(id string) (Session, error) {
	l, err := m.acquireFresh(id, writing)
	if err != nil {
		return Session{}, err
	}
	defer m.release(l)
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
	defer m.release(l)
	if err := m.lock(l); err != nil {
		return Session{}, false, err
	}
	defer l.mu.Unlock()
	return l.session(), true, nil
}

// orCurrent returns a session or, for the zero Session, the current one. If there is no
// current one, it returns the zero Session.
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

// acquireFor is acquire for a kind of access. If the session is wanted for writing and cannot
// be read, it creates a replacement.
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
	l, err := m.links.Get(m.context(), id, func() (*link, error) { return m.load(id) })
	if errors.Is(err, session.ErrCorrupt) {
		return m.recover(id, err, a)
	}
	return l, err
}

// acquireFresh is acquire that reads what others have added. If the session was
// rewritten since we opened it, for example by a redaction, it is opened again.
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
	m.release(l)
	if !session.MustReopen(err) {
		return nil, err
	}
	m.links.Drop(l.id)
	return m.acquireFor(id, a)
}

// resolve returns the id of the replacement of a session that cannot be read, or the id
// itself.
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
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return l, nil
}

// closeLink closes a link that leaves the pool. It flushes first, because no later Save could.
func (m *Sessions) closeLink(l *link) (gone bool) {
	err := l.flush(m.context(), m.opener(l.id))
	if errors.Is(err, session.ErrNotExist) || errors.Is(err, session.ErrClosed) {
		err = nil // there is nothing left to save, or it is closed already
	}
	for _, j := range l.joined {
		err = errors.Join(err, j.Close())
	}
	if err := errors.Join(err, l.s.Close()); err != nil {
		m.saver.report(fmt.Errorf("close session %s: %w", l.id, err))
	}
	return true
}

// Pin keeps a session in memory until it is unpinned.
func (m *Sessions) Pin(id string) { m.links.Pin(id, true) }

// Unpin lets a session be closed again when room is needed.
func (m *Sessions) Unpin(id string) { m.links.Pin(id, false) }

// Prioritise sets how much a session is worth keeping in memory: those with a lower
// priority go first. The default is 0.
func (m *Sessions) Prioritise(id string, priority int) { m.links.Prioritise(id, priority) }

// SessionsInMemory returns the ids of the sessions that are in memory, in no
// particular order, and roughly how many bytes their messages take.
func (m *Sessions) SessionsInMemory() (ids []string, bytes int64) { return m.links.Contents() }

// ReleaseMemory closes sessions until their messages take at most a number of bytes, or no
// other session may be closed.
func (m *Sessions) ReleaseMemory(bytes int64) { m.links.Shrink(bytes) }

// DeleteSession removes a session from the store. It reports whether the session is
// gone; it is gone, too, if it was not there. A file store keeps what it removes in its
// trash.
func (m *Sessions) DeleteSession(id string) (bool, error) {
	if err := store.CheckName(id); err != nil {
		return false, err
	}
	if m.links.Has(id) { // let a running write finish
		if l, err := m.acquire(id); err == nil {
			err = m.lock(l)
			if err == nil {
				l.mu.Unlock()
			}
			m.release(l)
			if err != nil {
				return false, err
			}
		}
	}
	if err := m.context().Err(); err != nil {
		return false, err // do not go on: closing a session waits for its writers, whatever the context
	}
	m.links.Drop(id)
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

// Close saves everything and closes all sessions. It returns what went wrong, including
// in the background since the last save.
func (m *Sessions) Close() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil
	}
	m.closed = true
	m.mu.Unlock()
	m.saver.stop()
	m.shelves.Close()
	m.surveying.Lock()
	m.catalogue.close()
	m.surveying.Unlock()
	err := m.SaveAll()
	m.links.Close()
	err = errors.Join(err, m.saver.take())
	if m.owned {
		err = errors.Join(err, m.store.Close())
	}
	return err
}
