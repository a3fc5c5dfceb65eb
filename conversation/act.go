package conversation

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// act has an agent answer what was said last: it runs the tools that the model calls, until
// the model is done. It goes on where an earlier one stopped, and returns ErrAnswered if
// there is nothing to do. Meanwhile, what is added to the chat waits.
func (c *Chat) act(ctx context.Context, o agent.Options, emit func(text string)) (answer Message, err error) {
	c = c.WithContext(ctx)
	id := c.ID()
	if id == "" {
		return Message{}, ErrAnswered
	}
	if err := c.fitAgent(&o); err != nil {
		return Message{}, err
	}
	if err := c.order.LockContext(ctx); err != nil {
		return Message{}, err
	}
	defer c.order.Unlock()
	err = c.sessions.withTail(id, func(s *session.Session) error {
		answer, err = actIn(ctx, s, o, emit)
		return err
	})
	// What the agent has written counts from now on, even if the caller no longer waits.
	return answer, errors.Join(err, c.sessions.WithContext(context.WithoutCancel(ctx)).refreshTail(id, writing))
}

// fitAgent gives an agent the window of the conversation.
func (c *Chat) fitAgent(o *agent.Options) error {
	config, err := c.Config()
	if err != nil {
		return err
	}
	w := config.apply(c.window.Options(), c.window.counters)
	o.Wait, o.Counter = true, w.Counter
	if o.Compaction.Window == 0 {
		o.Compaction.Window = w.Budget.Tokens
	}
	if o.Compaction.Reserve == 0 {
		o.Compaction.Reserve = w.Budget.Reserve
	}
	return nil
}

// actIn has an agent work in a session until its turn is over.
func actIn(ctx context.Context, s *session.Session, o agent.Options, emit func(text string)) (Message, error) {
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
	out, err := a.Resume(ctx)
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

// withTail has do work in the last session of a conversation, through a handle of its own.
func (m *Sessions) withTail(id string, do func(*session.Session) error) (err error) {
	if err := m.refreshTail(id, writing); err != nil {
		return err
	}
	l, err := m.tailFor(id, writing)
	if err != nil {
		return err
	}
	defer m.release(l)
	s, err := session.Open(m.context(), m.store, l.id, &session.Options{Logger: m.options.Logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return do(s)
}
