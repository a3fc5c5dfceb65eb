package conversation

import (
	"cmp"
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
	links   *pool.Pool[*link]  // the sessions in memory, by id
	wholes  *pool.Pool[*whole] // the conversations that are read, by the id that they were asked for with
	recent  *pool.Pool[*whole] // the ends of conversations that fill a window, by the id of the last link
	saver   *saver

	recovering gate.Mutex // held while a replacement for a session is found or created

	surveying gate.Mutex       // guards what follows
	heads     map[string]*head // what is known about all sessions, by name

	mu        sync.Mutex // guards what follows
	settings  Settings
	current   string               // the id of the current session, or ""
	ends      map[string]knownEnd  // of conversations, by the id of any of their sessions
	recovered map[string]string    // the replacements of sessions that cannot be read
	described map[string]described // by lists, by the name of the session
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
		ends: make(map[string]knownEnd), recovered: make(map[string]string), described: make(map[string]described),
	}}
	m.links = pool.New(limitsOf(opts.Settings), pool.Options[*link]{
		Close: m.closeLink, Size: func(l *link) int64 { return l.bytes.Load() }, IsShort: opts.UnderPressure,
	})
	forReading := pool.Options[*whole]{Close: (*whole).close, Size: (*whole).Footprint, IsShort: opts.UnderPressure}
	m.wholes = pool.New(pool.Limits{Count: maxWholes, Bytes: opts.Settings.MaxBytesInMemory}, forReading)
	m.recent = pool.New(limitsOf(opts.Settings), forReading)
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
	m.recent.Limit(limitsOf(s))
	m.wholes.Limit(pool.Limits{Count: maxWholes, Bytes: s.MaxBytesInMemory})
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
		err = l.write(m.context(), func() ([]session.Entry, error) { return []session.Entry{session.Name(title)}, nil })
		if err != nil {
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
	return m.adopt(s)
}

// adopt puts a new session into the pool. The caller must release the link.
func (m *Sessions) adopt(s *session.Session) (*link, error) {
	l, err := newLink(m.context(), s)
	if err != nil {
		return nil, err
	}
	got, err := m.links.Get(context.Background(), l.id, func() (*link, error) { return l, nil })
	if got != l {
		m.closeLink(l) // another goroutine has loaded it already
	}
	if err == nil {
		got.mu.Lock()
		got.modified = true // it has to be saved
		got.mu.Unlock()
	}
	return got, err
}

// maxReopened is how often a session is opened again for one operation, because it can no longer
// be used: see session.MustReopen.
const maxReopened = 3

// maxWholes is how many conversations stay open as a whole.
const maxWholes = 4

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
	l, done, err := m.use(id, writing)
	if err != nil {
		return Session{}, err
	}
	defer done()
	m.setCurrent(l.id)
	return l.session(), nil
}

// CurrentSession returns the current session; ok is false if there is none.
func (m *Sessions) CurrentSession() (_ Session, ok bool, _ error) {
	id := m.currentID()
	if id == "" {
		return Session{}, false, nil
	}
	l, done, err := m.use(id, reading)
	if err != nil {
		return Session{}, false, err
	}
	defer done()
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

// check returns an error if no session can have an id, or if the manager is closed.
func (m *Sessions) check(id string) error {
	if err := store.CheckName(id); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fmt.Errorf("session manager: %w", session.ErrClosed)
	}
	return nil
}

// acquire returns the link of a session as we know it. The caller releases it. If the session
// cannot be read, the link is that of its replacement, which is created if it is wanted for writing.
func (m *Sessions) acquire(id string, a access) (*link, error) {
	if err := m.check(id); err != nil {
		return nil, err
	}
	id = m.resolve(id)
	l, err := m.links.Get(m.context(), id, func() (*link, error) { return m.load(id) })
	if errors.Is(err, session.ErrCorrupt) {
		return m.recover(id, err, a)
	}
	return l, err
}

// use is acquire for a link that is locked, and as it is stored now. The caller calls done. If the
// session was rewritten since we opened it, for example by a redaction, it is opened again.
func (m *Sessions) use(id string, a access) (_ *link, done func(), _ error) {
	for tries := 0; ; tries++ {
		l, err := m.acquire(id, a)
		if err != nil {
			return nil, nil, err
		}
		if err = m.lock(l); err != nil {
			m.release(l)
			return nil, nil, err
		}
		done := func() {
			l.mu.Unlock()
			m.release(l)
		}
		if err = l.refresh(m.context()); err == nil {
			return l, done, nil
		}
		done()
		if !session.MustReopen(err) || tries == maxReopened {
			return nil, nil, err
		}
		m.links.Drop(l.id)
	}
}

// resolve returns the id of the replacement of a session that cannot be read, or the id
// itself.
func (m *Sessions) resolve(id string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return cmp.Or(m.recovered[id], id)
}

func (m *Sessions) load(id string) (*link, error) {
	s, err := session.Open(m.context(), m.store, id, m.sessionOptions())
	if err != nil {
		return nil, err
	}
	return newLink(m.context(), s)
}

// closeLink closes a link that leaves the pool. It flushes first, because no later Save could.
func (m *Sessions) closeLink(l *link) (gone bool) {
	err := m.flush(l)
	if errors.Is(err, session.ErrNotExist) || errors.Is(err, session.ErrClosed) {
		err = nil // there is nothing left to save, or it is closed already
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
func (m *Sessions) ReleaseMemory(bytes int64) {
	m.links.Shrink(bytes)
	m.wholes.Shrink(bytes)
	m.recent.Shrink(bytes)
}

// DeleteSession removes a session from the store. It reports whether the session is
// gone; it is gone, too, if it was not there. A file store keeps what it removes in its
// trash.
func (m *Sessions) DeleteSession(id string) (bool, error) {
	if err := store.CheckName(id); err != nil {
		return false, err
	}
	if m.links.Has(id) { // let a running write finish
		if _, done, err := m.use(id, reading); err == nil {
			done()
		}
	}
	if err := m.context().Err(); err != nil {
		return false, err // do not go on: closing a session waits for its writers, whatever the context
	}
	m.links.Drop(id)
	err := m.store.Remove(m.context(), id)
	for _, p := range []*pool.Pool[*whole]{m.wholes, m.recent} { // any of them may have it
		keys, _ := p.Contents()
		for _, key := range keys {
			p.Drop(key)
		}
	}
	m.mu.Lock()
	delete(m.recovered, id)
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
	m.wholes.Close()
	m.recent.Close()
	err := m.SaveAll()
	m.links.Close()
	err = errors.Join(err, m.saver.errors())
	if m.owned {
		err = errors.Join(err, m.store.Close())
	}
	return err
}
