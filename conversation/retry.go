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
	if err := c.order.LockContext(c.sessions.context()); err != nil {
		return err
	}
	defer c.order.Unlock()
	return c.sessions.change("retry", id, (*link).reopen)
}

// reopen returns the entry that takes back an incomplete reply, if the path ends with one.
func (l *link) reopen() ([]session.Entry, error) {
	last := len(l.Entries) - 1
	for last >= 0 && l.Entries[last].Message.Role == session.RoleSystem {
		last-- // documents are not answered
	}
	if last < 0 || l.Pairs.Pending() {
		return nil, fmt.Errorf("session %s: %w", l.id, ErrAnswered)
	}
	e := &l.Entries[last]
	if e.Message.Role != session.RoleAssistant {
		return nil, nil
	}
	if _, incomplete := e.Message.Metadata[MetaIncomplete]; !incomplete {
		return nil, fmt.Errorf("session %s: %w", l.id, ErrAnswered)
	}
	stored, err := l.s.Entry(e.ID)
	if err != nil {
		return nil, err
	}
	if l.leaf != e.ID || stored.ParentID == nil { // what was recorded after it still counts
		return []session.Entry{session.ContextEdit(e.ID)}, nil
	}
	return []session.Entry{{Type: session.TypeLeaf, ParentID: stored.ParentID, Leaf: &session.LeafEntry{FromID: e.ID}}}, nil
}
