package conversation

import (
	"context"
	"fmt"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// ErrAnswered means that the last turn of a conversation has its answer, or waits for the
// result of a tool, so there is nothing to retry. It matches session.ErrInvalid.
var ErrAnswered = fmt.Errorf("nothing to retry: %w", session.ErrInvalid)

// Retry asks a model to answer the last turn again: see Manager.Retry. An incomplete reply
// stays in the log, on a branch of its own.
func (c *Chat) Retry(ctx context.Context, model provider.Model, emit func(text string)) (Message, error) {
	if err := c.WithContext(ctx).reopen(); err != nil {
		return Message{}, err
	}
	return c.Respond(ctx, model, emit)
}

// reopen makes the last turn of the conversation wait for its answer again.
func (c *Chat) reopen() error {
	id := c.ID()
	if id == "" {
		return ErrAnswered
	}
	if err := c.sessions.refreshTail(id, writing); err != nil {
		return err
	}
	if err := c.order.LockContext(c.sessions.context()); err != nil {
		return err
	}
	defer c.order.Unlock()
	return c.sessions.atTail("retry", id, c.sessions.reopenLink)
}

func (m *Sessions) reopenLink(l *link) (settled bool, _ error) {
	if err := m.lock(l); err != nil {
		return false, err
	}
	defer l.mu.Unlock()
	last := len(l.Entries) - 1
	for last >= 0 && l.Entries[last].Message.Role == session.RoleSystem {
		last-- // documents are not answered
	}
	if last < 0 || l.Pairs.Pending() {
		return true, fmt.Errorf("session %s: %w", l.id, ErrAnswered)
	}
	message := l.Entries[last].Message
	if message.Role != session.RoleAssistant {
		return true, nil
	}
	if _, incomplete := message.Metadata[MetaIncomplete]; !incomplete {
		return true, fmt.Errorf("session %s: %w", l.id, ErrAnswered)
	}
	return m.abandon(l, l.Entries[last].ID)
}

// abandon moves the leaf to before the last message of a link.
func (m *Sessions) abandon(l *link, id string) (settled bool, _ error) {
	if l.s.LeafID() != l.leaf {
		return false, m.settle(l, errBehind)
	}
	e, err := l.s.Entry(id)
	if err != nil {
		return true, err
	}
	if l.leaf != id || e.ParentID == nil {
		// Something that counts was recorded after the message, so do not move back:
		// remove only the message from the context.
		err = l.append(m.context(), session.Entry{ID: newID(), Type: session.TypeContextEdit, ContextEdit: &session.ContextEditEntry{TargetID: id}})
	} else if err = l.s.WithContext(m.context()).Branch(*e.ParentID); err == nil {
		l.modified = true
		err = l.read(m.context())
	}
	return err == nil, m.settle(l, err)
}
