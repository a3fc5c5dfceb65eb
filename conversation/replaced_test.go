package conversation_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
)

// A program that runs while somebody redacts its conversations shows what is
// left, and goes on.
func TestConversationRewrittenUnderAManager(t *testing.T) {
	dir := t.TempDir()
	m := newManager(t, dir, 100)
	s := must(m.CreateSession(""))(t)
	must(m.AddMessage(s.ID, user("the word is xyzzy")))(t)
	rewrite(t, dir, s.ID, "xyzzy", "[gone]")
	sees := func(want ...string) {
		t.Helper()
		if got := texts(must(m.LoadSession(s.ID))(t).Messages); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if c := must(m.Conversation(s.ID))(t); !slices.Equal(texts(c.Messages), want) {
			t.Errorf("the conversation has %q, want %q", texts(c.Messages), want)
		}
	}
	sees("user: the word is [gone]")
	rewrite(t, dir, s.ID, "[gone]", "lost")
	must(m.AddMessage(s.ID, assistant("noted")))(t)
	sees("user: the word is lost", "assistant: noted")
}

// rewrite exchanges a session's file as redaction does.
func rewrite(t *testing.T, dir, id, old, new string) {
	t.Helper()
	path := must(file.Open(dir, nil))(t).Path(id)
	data := must(os.ReadFile(path))(t)
	if !bytes.Contains(data, []byte(old)) {
		t.Fatalf("%q is not in %q", old, data)
	}
	if err := os.WriteFile(path+".new", bytes.ReplaceAll(data, []byte(old), []byte(new)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// A session that was missing comes back, and the caller gives up when that has just been noticed.
func TestReadingEndsWhenASessionIsBack(t *testing.T) {
	t.Parallel()
	st := must(file.Open(t.TempDir(), nil))(t)
	t.Cleanup(func() { st.Close() })
	after := func(string) {}
	m := newManagerOn(t, asked{st, func(name string) { after(name) }}, 3)
	id := say(t, m, "", user("1"), assistant("2"), user("3"), assistant("4"), user("5"), assistant("6"), user("7"))
	gone := must(m.Conversation(id))(t).Links[1].ID
	must(m.DeleteSession(gone))(t)
	must(m.LoadMessages(id, 1, 100))(t)
	do(t, st.Trash().Restore(t.Context(), must(st.Trash().List(t.Context()))(t)[0].ID))
	ctx, cancel := context.WithCancel(t.Context())
	after = func(name string) {
		if name == gone {
			cancel()
		}
	}
	_, err := m.WithContext(ctx).LoadMessages(id, 1, 100)
	wantError(t, err, context.Canceled)
}

// asked is a store that calls a function when it has been asked for the state of a log.
type asked struct {
	store.Store
	after func(name string)
}

func (a asked) Stat(ctx context.Context, name string) (store.Stat, error) {
	s, err := a.Store.Stat(ctx, name)
	a.after(name)
	return s, err
}

// Whoever reads a conversation does not notice that others are deleted.
func TestReadingWhileOthersAreDeleted(t *testing.T) {
	t.Parallel()
	const n = 400
	m := newManagerOn(t, memory.New(nil), 100)
	id := ""
	for i := range n {
		id = say(t, m, id, user(fmt.Sprint("message ", i)))
	}
	var reading sync.WaitGroup
	for range 4 {
		reading.Go(func() {
			for range 50 {
				if page, err := m.LoadMessages(id, 1, n); err != nil || len(page) != n {
					t.Errorf("%d messages, %v", len(page), err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { reading.Wait(); close(done) }()
	for {
		select {
		case <-done:
			return
		default:
			must(m.DeleteSession(must(m.CreateSession(""))(t).ID))(t)
		}
	}
}

// Whenever a session is rewritten while it is read, it is read again.
func TestRewrittenWhileReading(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(*conversation.Sessions, *conversation.Chat) error{
		"view": func(_ *conversation.Sessions, c *conversation.Chat) error { _, err := c.View(); return err },
		"page": func(m *conversation.Sessions, c *conversation.Chat) error {
			_, err := m.LoadMessages(c.ID(), 1, 9)
			return err
		},
		"context": func(m *conversation.Sessions, c *conversation.Chat) error { _, err := m.Context(c.ID()); return err },
	} {
		for said := 2; said <= 8; said += 6 { // in one session, and in three
			for at := 1; ; at++ {
				dir := t.TempDir()
				st := must(file.Open(dir, &file.Options{Sync: file.Never}))(t)
				t.Cleanup(func() { st.Close() })
				id, steps := "", 0
				m := newManagerOn(t, stepped{st, func() {
					if steps++; steps == at {
						rewrite(t, dir, id, "xyzzy", "[gone]")
					}
				}}, 3)
				id = must(m.CreateSession(""))(t).ID
				steps = at
				for range said {
					say(t, m, id, user("xyzzy"))
				}
				c := newSystem(t, m)
				do(t, c.Load(id))
				id = must(m.Tail(id))(t)
				do(t, m.SaveAll())
				steps = 0
				if err := read(m, c); err != nil {
					t.Errorf("%s of %d messages, rewritten at step %d: %v", name, said, at, err)
				}
				if steps < at {
					break
				}
			}
		}
	}
}

// stepped is a store that calls a function before each step of reading a log.
type stepped struct {
	store.Store
	before func()
}

func (s stepped) Open(ctx context.Context, name string) (store.Log, error) {
	log, err := s.Store.Open(ctx, name)
	return steppedLog{log, s.before}, err
}

type steppedLog struct {
	store.Log
	before func()
}

func (l steppedLog) Current() error {
	l.before()
	return l.Log.Current()
}

func (l steppedLog) Forward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	l.before()
	return l.Log.Forward(ctx, from)
}

func (l steppedLog) Backward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	l.before()
	return l.Log.Backward(ctx, from)
}
