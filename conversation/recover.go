package conversation

import (
	"context"
	"errors"

	"github.com/coppice-dev/coppice/session"
)

// recover finds a replacement for a session that cannot be read: the one that replaced it
// before, in this program or another; or, if it is wanted for writing, its backup, or else a
// new session with a notice. (A session that can be read in part needs no replacement.) The
// caller must release the link.
func (m *Sessions) recover(id string, cause error, a access) (*link, error) {
	m.options.Logger.Error("session cannot be read", "session", id, "cause", cause)
	instead, err := m.replacement(id, cause, a)
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	if instead == "" {
		return nil, cause
	}
	m.options.Logger.Warn("session recovered", "session", id, "in", instead)
	if instead != id {
		m.mu.Lock()
		m.recovered[id] = instead
		m.mu.Unlock()
	}
	return m.links.Get(m.context(), instead, func() (*link, error) { return m.load(instead) })
}

// replacement returns the id of the replacement, or "" if there is none and none may be created.
func (m *Sessions) replacement(id string, cause error, a access) (string, error) {
	if err := m.recovering.LockContext(m.context()); err != nil { // so that two callers at once get the same one
		return "", err
	}
	defer m.recovering.Unlock()
	if known := m.resolve(id); known != id {
		return known, nil
	}
	ctx := m.context()
	if a == reading {
		return session.FindRecovery(ctx, m.store, id)
	}
	s, err := session.Recover(ctx, m.store, id, cause, m.sessionOptions())
	if err != nil {
		return "", err
	}
	return s.ID(), s.Close()
}

// header reads the first line of a session.
func (m *Sessions) header(ctx context.Context, name string) (h session.Header, _ error) {
	log, err := m.store.Open(ctx, name)
	if err != nil {
		return h, err
	}
	defer log.Close()
	for line, err := range log.Forward(ctx, 0) {
		if err == nil {
			err = h.UnmarshalJSON(line.Data)
		}
		return h, err
	}
	return h, nil
}

// Problems returns the faults of a session that can be read anyway.
func (m *Sessions) Problems(id string) ([]session.Problem, error) {
	l, err := m.acquire(id, reading)
	if err != nil {
		return nil, err
	}
	defer m.release(l)
	return l.s.Problems()
}
