package conversation

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-dev/coppice/session"
)

// recover finds something that stands in for a session that cannot be read: its
// backup, or a new session with a notice. (Of what can be read in part, that
// part is read: that needs no standing in.) The caller releases the link.
func (m *Sessions) recover(id string, cause error) (*link, error) {
	m.options.Logger.Error("session cannot be read", "session", id, "cause", cause)
	stand, err := m.standIn(id, cause)
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	m.options.Logger.Warn("session recovered", "session", id, "in", stand)
	if stand != id {
		m.mu.Lock()
		if earlier := m.recovered[id]; earlier != "" {
			stand = earlier
		}
		m.recovered[id] = stand
		m.mu.Unlock()
	}
	return m.cache.get(stand, func() (*link, error) { return m.load(stand) })
}

// standIn returns the id of what can be read instead.
func (m *Sessions) standIn(id string, cause error) (string, error) {
	if files, ok := m.store.(interface{ Path(string) string }); ok {
		s, err := session.LoadOrRecover(files.Path(id))
		if err != nil {
			return "", err
		}
		return s.ID(), s.Close()
	}
	h := session.Header{ParentSession: id, Relation: session.RelationRecovery}
	s, err := session.Create(context.Background(), m.store, h, m.sessionOptions())
	if err != nil {
		return "", err
	}
	notice := fmt.Sprintf("This is a recovery session. The original session %q could not be read: %v", id, cause)
	_, err = s.AppendMessage(session.RoleSystem, []session.Content{session.Text(notice)})
	return s.ID(), errors.Join(err, s.Close())
}

// Problems returns the faults of a session that can be read all the same.
func (m *Sessions) Problems(id string) ([]session.Problem, error) {
	l, err := m.acquire(id)
	if err != nil {
		return nil, err
	}
	defer m.cache.release(l)
	return l.s.Problems()
}
