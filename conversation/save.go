package conversation

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// now returns the time for new messages.
func now() time.Time { return time.Now().UTC() }

// SaveSession stores what was added to a session since it was loaded: messages at the end of
// its conversation, and metadata. It is a barrier: when it returns without an error, all of
// that and everything stored before survives a power cut, whatever the store's Sync is. It
// reports whether there was a session to save. The zero Session means the current one, if
// there is any.
//
// Nothing that is stored is ever taken back. Messages that the given session lacks,
// because it was trimmed or another process added them, stay; messages that were
// changed stay as they were.
func (m *Sessions) SaveSession(s Session) (bool, error) {
	s, err := m.orCurrent(s)
	if err != nil || s.ID == "" && len(s.Messages) == 0 {
		return false, err
	}
	if err := s.Validate(); err != nil {
		return false, err
	}
	if err := m.ensure(s); err != nil {
		return false, err
	}
	if err := m.saveMessages(s); err != nil {
		return false, err
	}
	if err := m.saveMetadata(s); err != nil {
		return false, err
	}
	return true, m.Save(s.ID)
}

// ensure creates the session if neither the store has it nor a conversation that has lost it.
func (m *Sessions) ensure(s Session) error {
	there, err := m.exists(s.ID)
	if err != nil || there {
		return err
	}
	if _, err := m.chainOf(s.ID, reading); !errors.Is(err, session.ErrNotExist) {
		return err
	}
	h := session.Header{ID: s.ID, CreatedAt: s.CreatedAt}
	h.CWD, _ = s.Metadata[MetaDirectory].(string)
	l, err := m.create(h)
	if errors.Is(err, session.ErrExist) {
		return nil // another process was faster
	}
	if err == nil {
		m.release(l)
	}
	return err
}

// saveMessages appends those messages that the conversation does not have.
func (m *Sessions) saveMessages(s Session) error {
	ids := make([]string, len(s.Messages))
	for i := range s.Messages {
		ids[i] = s.Messages[i].ID
	}
	known, err := m.known(s.ID, ids...)
	if err != nil {
		return err
	}
	var fresh []session.Entry
	for _, msg := range s.Messages {
		if known[msg.ID] {
			continue
		}
		if err := session.CheckRole(msg.Role); err != nil {
			return fmt.Errorf("message %.80q: %w", msg.ID, err)
		}
		e, err := msg.own()
		if err != nil {
			return err
		}
		fresh = append(fresh, e)
	}
	if len(fresh) == 0 {
		return nil
	}
	moved, err := m.append(s.ID, fresh...)
	m.report(moved)
	return err
}

func (m *Sessions) saveMetadata(s Session) error {
	return m.change("save", s.ID, func(l *link) ([]session.Entry, error) { return l.changes(s.Metadata) })
}

// Save is a barrier: it returns when everything added to a session is on the disk,
// whatever the store's Sync is, and checks that it can be found there. (Adding a
// message has stored it already. This waits for the disk, and notices what happened to
// the store since.)
func (m *Sessions) Save(id string) error {
	l, err := m.acquire(id, reading)
	if err != nil {
		return err
	}
	defer m.release(l)
	if err := m.lock(l); err != nil {
		return err
	}
	root := l.Before.Root // rootOf may open l again, and then nobody knows what has to be there
	l.mu.Unlock()
	return m.saveEach(func(other *link) bool { return other == l || other.modified && other.Before.Root == root })
}

// saveChain saves the modified links of a conversation. There may be several, because messages
// for a full session go into the one that continues it.
func (m *Sessions) saveChain(id string) error {
	root, err := m.rootOf(id)
	if err != nil {
		return err
	}
	return m.saveEach(func(l *link) bool { return l.modified && l.Before.Root == root })
}

// SaveAll saves all sessions that are in memory and were modified.
func (m *Sessions) SaveAll() error { return m.saveEach(func(l *link) bool { return l.modified }) }

// saveEach saves those of the sessions in memory that are wanted.
func (m *Sessions) saveEach(isWanted func(*link) bool) error {
	var errs []error
	m.links.Each(func(l *link) {
		if err := m.lock(l); err != nil {
			errs = append(errs, err)
			return
		}
		defer l.mu.Unlock()
		if !isWanted(l) {
			return
		}
		if err := m.verify(l); err != nil {
			errs = append(errs, fmt.Errorf("save session %s: %w", l.id, err))
			return
		}
		l.modified = false
	})
	return errors.Join(errs...)
}

// verify makes sure that what was appended to a link, which is locked, is on the disk and can be
// found in the store.
func (m *Sessions) verify(l *link) error {
	if err := m.flush(l); err != nil {
		return err
	}
	return m.beside(l, func(s *session.Session) error {
		if l.leaf == "" {
			return nil
		}
		if _, err := s.Entry(l.leaf); err != nil {
			return fmt.Errorf("the last entry is not in the store: %w", err)
		}
		return nil
	})
}

// flush waits until what was appended to a link is on the disk. If its session cannot tell any
// more, or another caller has just closed it to open it again, another handle is asked, which
// rewrites the log if it has to.
func (m *Sessions) flush(l *link) error {
	err := l.s.Flush(m.context())
	if !errors.Is(err, session.ErrUnknown) && !errors.Is(err, session.ErrClosed) {
		return err
	}
	if again := m.beside(l, func(s *session.Session) error { return s.Flush(m.context()) }); again != nil {
		return errors.Join(err, again)
	}
	return nil
}

// beside calls do with a link's session, opened a second time.
func (m *Sessions) beside(l *link, do func(*session.Session) error) error {
	s, err := session.Open(m.context(), m.store, l.id, m.sessionOptions())
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

// SaveError returns what went wrong in the background since it was last called, or nil.
func (m *Sessions) SaveError() error { return m.saver.errors() }

// saver saves at an interval, and keeps errors until the caller asks for them.
type saver struct {
	save    func() error
	onError func(error)

	saving sync.Mutex // held while it saves in the background

	mu       sync.Mutex    // guards what follows
	interval time.Duration // not positive: never
	timer    *time.Timer   // for the next time, or nil
	stopped  bool
	unread   []error // not reported yet
}

func newSaver(save func() error, onError func(error), interval time.Duration) *saver {
	s := &saver{save: save, onError: onError}
	s.setInterval(interval)
	return s
}

// setInterval saves at another interval from now on, or not at all if that is not positive.
func (s *saver) setInterval(interval time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interval = interval
	s.schedule()
}

// schedule saves when the interval is over. It is called with mu held.
func (s *saver) schedule() {
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.interval > 0 && !s.stopped {
		s.timer = time.AfterFunc(s.interval, s.run)
	}
}

func (s *saver) run() {
	s.saving.Lock()
	defer s.saving.Unlock()
	s.mu.Lock()
	stopped := s.stopped
	s.mu.Unlock()
	if stopped {
		return
	}
	if err := s.save(); err != nil {
		s.report(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.schedule()
}

// stop ends saving for good, and waits for a save in progress.
func (s *saver) stop() {
	s.mu.Lock()
	s.stopped = true
	s.schedule()
	s.mu.Unlock()
	s.saving.Lock()
	defer s.saving.Unlock()
}

// report keeps an error until the caller asks for it, and calls OnSaveError.
func (s *saver) report(err error) {
	const enough = 16
	s.mu.Lock()
	if len(s.unread) < enough {
		s.unread = append(s.unread, err)
	}
	s.mu.Unlock()
	s.onError(err)
}

// errors returns what was not reported yet.
func (s *saver) errors() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := errors.Join(s.unread...)
	s.unread = nil
	return err
}
