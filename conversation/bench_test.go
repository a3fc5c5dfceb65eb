package conversation_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/index/sqlite"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
)

// long returns a conversation of so many messages, in sessions of so many.
func long(b *testing.B, st store.Store, messages, limit int) (*conversation.Sessions, *conversation.Chat) {
	b.Helper()
	m := newManagerOn(b, st, limit)
	c := newSystem(b, m)
	c.SetSystemPrompt("be brief")
	s := conversation.NewSession()
	text := strings.Repeat("some words of a message ", 12)
	for i := range messages / 2 {
		s = conversation.Session{
			ID: s.ID, CreatedAt: s.CreatedAt, LastActive: s.LastActive,
			Messages: append(s.Messages, withID(user(fmt.Sprint("question ", i, " ", text))), withID(assistant(text))),
		}
	}
	must(m.SaveSession(s))(b)
	do(b, c.Load(s.ID))
	must(c.Request())(b)
	return m, c
}

func withID(m conversation.Message) conversation.Message {
	m = conversation.NewSession().AddMessage(m).Messages[0]
	tokens := 70
	m.Tokens = &tokens
	return m
}

// BenchmarkTurn is a turn: what the user says is added, the request is made, the
// reply is added.
func BenchmarkTurn(b *testing.B) {
	stores := []struct {
		name string
		open func(b *testing.B) store.Store
	}{
		{"memory", func(*testing.B) store.Store { return memory.New(nil) }},
		{"files", func(b *testing.B) store.Store {
			return must(file.Open(b.TempDir(), &file.Options{Sync: file.Never}))(b)
		}},
		{"synced", func(b *testing.B) store.Store { return must(file.Open(b.TempDir(), nil))(b) }},
	}
	for _, st := range stores {
		for _, size := range []struct{ messages, limit int }{{100, 5000}, {10_000, 20_000}, {10_000, 500}} {
			b.Run(fmt.Sprintf("%s/messages=%d/sessions=%d", st.name, size.messages, max(1, size.messages/size.limit)), func(b *testing.B) {
				_, c := long(b, st.open(b), size.messages, size.limit)
				turns(b, c)
			})
		}
	}
}

// BenchmarkRequest is what keeping and preparing the request takes of a turn.
func BenchmarkRequest(b *testing.B) {
	_, c := long(b, memory.New(nil), 10_000, 500)
	for b.Loop() {
		must(c.Request())(b)
	}
}

// BenchmarkLoad is going on with a conversation of which nothing is in memory.
func BenchmarkLoad(b *testing.B) {
	dir := b.TempDir()
	st := must(file.Open(dir, &file.Options{Sync: file.Never}))(b)
	b.Cleanup(func() { st.Close() })
	_, c := long(b, st, 10_000, 500)
	id := c.ID()
	for b.Loop() {
		m := must(conversation.NewSessions(st, quiet(500)))(b)
		fresh := newSystem(b, m)
		do(b, fresh.Load(id))
		must(fresh.Request())(b)
		do(b, m.Close())
	}
}

// BenchmarkBoundary is a message that goes into a continuation.
func BenchmarkBoundary(b *testing.B) {
	m := newManagerOn(b, memory.New(nil), 1)
	id := say(b, m, "", user("1"), assistant("2"))
	for b.Loop() {
		must(m.AddMessage(id, user("x")))(b)
		must(m.AddMessage(id, assistant("y")))(b)
	}
}

// BenchmarkTurnAfterAnEdit is a turn of a conversation in which a context file was
// superseded: an edit of the past must not make the present slow.
func BenchmarkTurnAfterAnEdit(b *testing.B) {
	_, c := long(b, memory.New(nil), 4000, 100_000)
	dir, l := contextDir(b, map[string]string{"spec.md": "one"})
	must(l.LoadCoreContext(c))(b)
	_, _, err := l.LoadFile(c, "spec.md")
	do(b, err)
	change(b, filepath.Join(dir, "spec.md"), "two", time.Hour)
	if added := must(l.Refresh(c))(b); len(added) != 1 {
		b.Fatal("the file was not superseded")
	}
	turns(b, c)
}

// turns asks and answers until the benchmark has enough.
func turns(b *testing.B, c *conversation.Chat) {
	text := strings.Repeat("some words of a message ", 12)
	answer := conversation.Reply{Content: []session.Content{session.Text(text)}}
	b.ReportAllocs()
	for b.Loop() {
		must(c.AddUserMessage(text))(b)
		must(c.Request())(b)
		must(c.AddAssistantMessage(answer))(b)
	}
}

// BenchmarkLoadMessages is a page of 50 of a long conversation: of one that is in
// memory, of one that was paged through before, and of one that nothing is known of.
func BenchmarkLoadMessages(b *testing.B) {
	for _, messages := range []int{2000, 20_000} {
		st := must(file.Open(b.TempDir(), &file.Options{Sync: file.Never}))(b)
		b.Cleanup(func() { st.Close() })
		m, c := long(b, st, messages, 100_000)
		id := c.ID()
		b.Run(fmt.Sprintf("loaded/messages=%d", messages), func(b *testing.B) {
			for b.Loop() {
				must(m.LoadMessages(id, 1, 50))(b)
			}
		})
		b.Run(fmt.Sprintf("again/messages=%d", messages), func(b *testing.B) {
			m := newManagerOn(b, st, 100_000)
			for page := 1; b.Loop(); page++ {
				must(m.LoadMessages(id, page%10+1, 50))(b)
			}
		})
		b.Run(fmt.Sprintf("first/messages=%d", messages), func(b *testing.B) {
			for b.Loop() {
				m := must(conversation.NewSessions(st, quiet(100_000)))(b)
				if got := must(m.LoadMessages(id, 1, 50))(b); len(got) != 50 {
					b.Fatal(len(got))
				}
				do(b, m.Close())
			}
		})
	}
}

// BenchmarkList is a page of conversations of a store of many, for a program that
// has just begun and for one that has listed them before, without an index and with
// one.
func BenchmarkList(b *testing.B) {
	st := must(file.Open(b.TempDir(), &file.Options{Sync: file.Never}))(b)
	b.Cleanup(func() { st.Close() })
	m := newManagerOn(b, st, 100)
	for i := range 10_000 {
		id := must(m.CreateSession(fmt.Sprint("session ", i)))(b).ID
		for range 5 {
			must(m.AddMessage(id, user("a question")))(b)
			must(m.AddMessage(id, assistant(strings.Repeat("an answer ", 50))))(b)
		}
	}
	both := func(o *conversation.Options) func(b *testing.B) {
		return func(b *testing.B) {
			b.Run("first", func(b *testing.B) {
				for b.Loop() {
					m := must(conversation.NewSessions(st, o))(b)
					must(m.ListConversations(50, 0))(b)
					do(b, m.Close())
				}
			})
			b.Run("again", func(b *testing.B) {
				m := must(conversation.NewSessions(st, o))(b)
				must(m.ListConversations(50, 0))(b)
				for b.Loop() {
					must(m.ListConversations(50, 0))(b)
				}
				do(b, m.Close())
			})
		}
	}
	b.Run("files", both(quiet(100)))
	ix := index.New(st, must(sqlite.Open(b.Context(), st.IndexPath(), nil))(b), nil)
	b.Cleanup(func() { ix.Close() })
	must(ix.CatchUp(b.Context(), nil))(b)
	o := quiet(100)
	o.Index = ix
	b.Run("index", both(o))
}
