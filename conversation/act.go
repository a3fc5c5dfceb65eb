package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/lease"
)

// act has an agent add what the user says, and answer it: it runs the tools that the model
// calls, until the model is done. Without content it goes on where an earlier one stopped, and
// returns ErrAnswered if there is nothing to do. Meanwhile, what is added to the chat waits.
func (c *Chat) act(ctx context.Context, model provider.Model, o agent.Options, content []session.Content, emit func(text string)) (answer Message, err error) {
	c = c.WithContext(ctx)
	if err := c.order.LockContext(ctx); err != nil {
		return Message{}, err
	}
	defer c.order.Unlock()
	id, err := c.place(content)
	if err != nil {
		return Message{}, err
	}
	o.Model = model
	if err := c.fitAgent(&o); err != nil {
		return Message{}, err
	}
	err = c.sessions.withWhole(id, func(whole *session.Session) error {
		answer, err = actIn(ctx, whole, o, content, emit)
		return err
	})
	// What the agent has written counts from now on, even if the caller no longer waits.
	return answer, errors.Join(err, c.sessions.WithContext(context.WithoutCancel(ctx)).refreshTail(id, writing))
}

// place returns the id of the conversation, which has room for what the user says.
func (c *Chat) place(content []session.Content) (string, error) {
	if content == nil {
		id := c.ID()
		if id == "" {
			return "", ErrAnswered
		}
		return id, nil
	}
	id, err := c.ensure()
	if err != nil {
		return "", err
	}
	return id, c.sessions.makeRoom(id, &session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{Role: session.RoleUser, Content: content}})
}

// makeRoom continues the last session of a conversation if it is full for a message. It waits
// for an agent that works there: the rest of its turn belongs to that session.
func (m *Sessions) makeRoom(id string, e *session.Entry) error {
	for {
		full, err := m.isFull(id, e)
		if err != nil || full == "" {
			return err
		}
		held, err := lease.At(m.store, full).Wait(m.context(), nil)
		if err != nil {
			return err
		}
		moved, err := m.continueFull(id, full, e)
		err = errors.Join(err, held.Release(context.WithoutCancel(m.context())))
		m.tell(moved)
		if err != nil {
			return err
		}
	}
}

// isFull returns the last session of a conversation if it is full for a message, or "".
func (m *Sessions) isFull(id string, e *session.Entry) (string, error) {
	if err := m.refreshTail(id, writing); err != nil {
		return "", err
	}
	l, err := m.tailFor(id, writing)
	if err != nil {
		return "", err
	}
	defer m.release(l)
	if err := m.lock(l); err != nil {
		return "", err
	}
	defer l.mu.Unlock()
	if l.due(e, m.limitOf(l)) {
		return l.id, nil
	}
	return "", nil
}

// continueFull continues a session for a message, if it is still the last one and full.
func (m *Sessions) continueFull(id, full string, e *session.Entry) (moved []Transition, _ error) {
	if err := m.refreshTail(id, writing); err != nil {
		return nil, err
	}
	err := m.atTail("continue", id, func(l *link) (settled bool, _ error) {
		if err := m.lock(l); err != nil {
			return false, err
		}
		defer l.mu.Unlock()
		if l.id != full || !l.due(e, m.limitOf(l)) {
			return true, nil
		}
		t, err := m.continueLink(l, e)
		if err != nil {
			return false, m.settle(l, err)
		}
		moved = append(moved, *t)
		return true, nil
	})
	return moved, err
}

// fitAgent gives an agent the instructions and the window of the conversation.
func (c *Chat) fitAgent(o *agent.Options) error {
	config, err := c.Config()
	if err != nil {
		return err
	}
	w := config.apply(c.window.Options(), c.window.counters)
	o.Wait, o.Counter = true, w.Counter
	c.mu.Lock()
	o.System = cmp.Or(c.prompt, o.System)
	c.mu.Unlock()
	if o.Compaction.Window == 0 {
		o.Compaction.Window = w.Budget.Tokens
	}
	if o.Compaction.Reserve == 0 {
		o.Compaction.Reserve = w.Budget.Reserve
	}
	return nil
}

// actIn has an agent work in a session until its turn is over.
func actIn(ctx context.Context, s *session.Session, o agent.Options, content []session.Content, emit func(text string)) (Message, error) {
	a, err := agent.New(s, o)
	if err != nil {
		return Message{}, err
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	defer a.Close()
	news := a.Subscribe(0)
	reading.Go(func() {
		for e := range news.Events(context.WithoutCancel(ctx)) {
			if u := e.Update; u != nil && u.Type == provider.EventText && emit != nil && ctx.Err() == nil {
				emit(u.Text)
			}
		}
	})
	take := a.Resume
	if content != nil {
		take = func(ctx context.Context) (*agent.Outcome, error) { return a.Send(ctx, content...) }
	}
	out, err := take(ctx)
	switch {
	case err != nil:
	case out.Steps == 0 && out.Stop == "":
		return Message{}, ErrAnswered
	case out.Stop == agent.StopApproval:
		err = fmt.Errorf("%d calls wait for approval: Retry goes on", len(out.Waiting))
	case out.Why != "":
		err = fmt.Errorf("the turn ended before the model was done: %s: Retry goes on", out.Why)
	case out.Message == nil:
		err = ErrEmptyReply
	}
	if out.Entry == "" {
		return Message{}, err
	}
	e, readErr := a.Session().Entry(out.Entry)
	if readErr != nil {
		return Message{}, errors.Join(err, readErr)
	}
	return fromEntry(e), err
}
