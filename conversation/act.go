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
)

// act lets an agent add what the user says and answer it: it runs the tools that the model
// calls, until the model is done. Without content it continues where an earlier one stopped,
// and returns ErrAnswered if there is nothing to do. What is added to the chat in between
// waits.
func (c *Chat) act(ctx context.Context, model provider.Model, o agent.Options, content []session.Content, emit func(text string)) (answer Message, err error) {
	c = c.WithContext(ctx)
	if err := c.order.LockContext(ctx); err != nil {
		return Message{}, err
	}
	defer c.order.Unlock()
	id, err := c.idFor(content)
	if err != nil {
		return Message{}, err
	}
	o.Model = model
	if err := c.fitAgent(&o); err != nil {
		return Message{}, err
	}
	from := ""
	err = c.sessions.withWhole(id, func(whole *session.Session) error {
		from = whole.SessionOf("")
		answer, err = actIn(ctx, whole, o, content, emit)
		return err
	})
	// What the agent has written counts from now on, even if the caller no longer waits.
	m := c.sessions.WithContext(context.WithoutCancel(ctx))
	return answer, errors.Join(err, m.crossed(id, from))
}

// idFor returns the id of the conversation. What the user says may begin one.
func (c *Chat) idFor(content []session.Content) (string, error) {
	if content != nil {
		return c.ensure()
	}
	if id := c.ID(); id != "" {
		return id, nil
	}
	return "", ErrAnswered
}

// crossed reports the sessions in which an agent continued. from is the one where it began.
func (m *Sessions) crossed(id, from string) error {
	chain, err := m.chain(id, writing)
	if err != nil {
		return err
	}
	var moved []Transition
	for i, link := range chain.Links {
		if i > 0 && (len(moved) > 0 || chain.Links[i-1] == from) {
			moved = append(moved, Transition{Conversation: chain.ID, From: chain.Links[i-1], To: link, Index: i})
			m.moved(moved[len(moved)-1])
		}
	}
	m.report(moved)
	return nil
}

// fitAgent gives an agent the instructions, the window and the limits of the conversation.
func (c *Chat) fitAgent(o *agent.Options) error {
	config, err := c.Config()
	if err != nil {
		return err
	}
	w := config.apply(c.window.Options(), c.window.counters)
	o.Wait, o.Counter = true, w.Counter
	o.Boundary = cmp.Or(config.MaxMessages, c.sessions.Settings().MaxMessagesPerSession)
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
	run := a.Resume
	if content != nil {
		run = func(ctx context.Context) (*agent.Outcome, error) { return a.Send(ctx, content...) }
	}
	out, err := run(ctx)
	switch {
	case err != nil:
	case out.Steps == 0 && out.Stop == "":
		return Message{}, ErrAnswered
	case out.Stop == agent.StopApproval:
		err = fmt.Errorf("%d calls wait for approval: Retry continues", len(out.Waiting))
	case out.Why != "":
		err = fmt.Errorf("the turn ended before the model was done: %s: Retry continues", out.Why)
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
