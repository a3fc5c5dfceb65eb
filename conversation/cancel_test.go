package conversation_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// hold takes the lock of a session, as a writer in another process would.
func hold(t *testing.T, dir, id string) (release func()) {
	t.Helper()
	st := must(file.Open(dir, nil))(t)
	log := must(st.Open(t.Context(), id))(t)
	unpin := must(log.Pin(t.Context()))(t)
	return func() {
		unpin()
		do(t, errors.Join(log.Close(), st.Close()))
	}
}

// soon returns a context that is done in a moment: in a bubble of synctest that is
// when all others wait, however long the machine stalls.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// writers are operations that add to a conversation.
func writers(c *conversation.Chat, m *conversation.Sessions) map[string]func(context.Context) error {
	id := c.ID()
	return map[string]func(context.Context) error{
		"Sessions.AddMessage": func(ctx context.Context) error {
			_, err := m.WithContext(ctx).AddMessage(id, user("late"))
			return err
		},
		"Sessions.SaveSession": func(ctx context.Context) error {
			s, err := m.LoadSession(id)
			if err == nil {
				_, err = m.WithContext(ctx).SaveSession(s.AddMessage(user("late")))
			}
			return err
		},
		"Sessions.CreateContinuationSession": func(ctx context.Context) error {
			s, err := m.LoadSession(id)
			if err == nil {
				_, err = m.WithContext(ctx).CreateContinuationSession(s)
			}
			return err
		},
		"Sessions.Configure": func(ctx context.Context) error {
			return m.WithContext(ctx).Configure(id, conversation.Config{MaxMessages: 7})
		},
		"Sessions.DeleteSession": func(ctx context.Context) error {
			_, err := m.WithContext(ctx).DeleteSession(id)
			return err
		},
		"Chat.Add":      func(ctx context.Context) error { _, err := c.WithContext(ctx).Add(user("late")); return err },
		"Chat.SetTitle": func(ctx context.Context) error { return c.WithContext(ctx).SetTitle("late") },
		"Chat.PrepareConversation": func(ctx context.Context) error {
			_, err := c.WithContext(ctx).PrepareConversation("late")
			return err
		},
		"Chat.Compact": func(ctx context.Context) error {
			_, err := c.WithContext(ctx).Compact(1, func(*session.CompactionPlan) (string, error) { return "late", nil })
			return err
		},
	}
}

// Who waits for a writer in another process can give up, and has written nothing.
func TestWaitingForAnotherProcessEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		m := newManager(t, dir, 100)
		c := newSystem(t, m)
		said := []string{"user: one", "assistant: two", "user: three"}
		must(c.Add(user("one")))(t)
		must(c.Add(assistant("two")))(t)
		must(c.Add(user("three")))(t)
		release := hold(t, dir, c.ID())
		for name, wait := range writers(c, m) {
			if err := wait(soon(t)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want DeadlineExceeded", name, err)
			}
		}
		release()
		all := must(newManager(t, dir, 100).Conversation(c.ID()))(t)
		if diff := cmp.Diff(said, texts(all.Messages)); diff != "" || len(all.Links) != 1 || all.Metadata["title"] != nil {
			t.Errorf("%d sessions, title %v: %s", len(all.Links), all.Metadata["title"], diff)
		}
		must(c.Add(assistant("four")))(t) // it goes on
		if diff := cmp.Diff(append(said, "assistant: four"), texts(must(c.Conversation())(t).Messages)); diff != "" {
			t.Error(diff)
		}
	})
}

// Who waits for another goroutine, which waits without end, can give up, too.
func TestWaitingForAnotherGoroutineEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		m := newManager(t, dir, 100)
		c := newSystem(t, m)
		must(c.Add(user("one")))(t)
		must(c.Add(assistant("two")))(t)
		must(c.Add(user("three")))(t)
		ops := writers(c, m)
		delete(ops, "Sessions.SaveSession") // they load the session first, without a context
		delete(ops, "Sessions.CreateContinuationSession")
		for name, read := range map[string]func(*conversation.Chat, *conversation.Sessions) error{
			"Conversation": func(c *conversation.Chat, m *conversation.Sessions) error {
				_, err := m.Conversation(c.ID())
				return err
			},
			"Totals": func(c *conversation.Chat, m *conversation.Sessions) error { _, err := m.Totals(c.ID()); return err },
			"LoadSession": func(c *conversation.Chat, m *conversation.Sessions) error {
				_, err := m.LoadSession(c.ID())
				return err
			},
			"Search": func(c *conversation.Chat, m *conversation.Sessions) error {
				_, err := m.Search(c.ID(), "o")
				return err
			},
			"Save":    func(c *conversation.Chat, m *conversation.Sessions) error { return m.Save(c.ID()) },
			"View":    func(c *conversation.Chat, m *conversation.Sessions) error { _, err := c.View(); return err },
			"Request": func(c *conversation.Chat, m *conversation.Sessions) error { _, err := c.Request(); return err },
		} {
			ops[name] = func(ctx context.Context) error { return read(c.WithContext(ctx), m.WithContext(ctx)) }
		}
		release := hold(t, dir, c.ID())
		first := make(chan error)
		go func() { _, err := c.Add(assistant("four")); first <- err }()
		synctest.Wait() // until it waits
		for name, wait := range ops {
			if err := wait(soon(t)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want DeadlineExceeded", name, err)
			}
		}
		release()
		do(t, <-first)
		if diff := cmp.Diff([]string{"user: one", "assistant: two", "user: three", "assistant: four"}, texts(must(c.Conversation())(t).Messages)); diff != "" {
			t.Error(diff)
		}
	})
}

// A caller whose context is over already does not wait for a writer either.
func TestDeletingWithADoneContextWaitsForNobody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := must(file.Open(dir, &file.Options{LockWait: time.Hour}))(t)
	t.Cleanup(func() { st.Close() })
	m := newManagerOn(t, st, 100)
	c := newSystem(t, m)
	must(c.Add(user("one")))(t)
	release := hold(t, dir, c.ID())
	first, gone := make(chan error, 1), make(chan error, 1)
	go func() { _, err := c.Add(assistant("two")); first <- err }()
	for { // until it waits, or nearly so
		if _, err := m.WithContext(soon(t)).Totals(c.ID()); errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	go func() { _, err := m.WithContext(over).DeleteSession(c.ID()); gone <- err }()
	select {
	case err := <-gone:
		wantError(t, err, context.Canceled)
	case <-time.After(time.Minute):
		t.Error("it waits")
	}
	release()
	do(t, <-first)
}

// stuck is a model that ignores its context and answers only when the test lets it.
type stuck struct{ asked, answer chan struct{} }

func (s stuck) model() provider.Model {
	return provider.Func{Answer: func(context.Context, *provider.Request, func(string) error) (*session.MessageEntry, error) {
		s.asked <- struct{}{}
		<-s.answer
		return messageOf(reply("at last")), nil
	}}
}

// A turn that waits for another one can be given up, and the user has said nothing.
func TestWaitingForATurnEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := stuck{make(chan struct{}), make(chan struct{})}
		m := must(conversation.Open(t.TempDir(), &conversation.ManagerOptions{Model: model.model()}))(t)
		defer m.Close()
		id := must(m.CreateConversation(""))(t)
		first := make(chan error)
		go func() { _, err := m.ProcessMessage(t.Context(), "one", id); first <- err }()
		<-model.asked
		if _, err := m.ProcessMessage(soon(t), "late", id); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want DeadlineExceeded", err)
		}
		if _, err := m.Retry(soon(t), id, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want DeadlineExceeded", err)
		}
		model.answer <- struct{}{}
		do(t, <-first)
		if diff := cmp.Diff([]string{"user: one", "assistant: at last"}, texts(must(m.Current().Conversation())(t).Messages)); diff != "" {
			t.Error(diff)
		}
	})
}

// Who summarises need not look at a context.
func TestCompactDoesNotWaitForASummaryLongerThanItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := longChat(t, t.TempDir())
		before := sent(t, c)
		never := make(chan struct{})
		defer close(never)
		_, err := c.WithContext(soon(t)).Compact(200, func(*session.CompactionPlan) (string, error) {
			<-never
			return "late", nil
		})
		wantError(t, err, context.DeadlineExceeded)
		if diff := cmp.Diff(before, sent(t, c)); diff != "" {
			t.Error(diff)
		}
	})
}
