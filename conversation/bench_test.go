package conversation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/conversation"
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
				text := strings.Repeat("some words of a message ", 12)
				answer := conversation.Reply{Content: []session.Content{session.Text(text)}}
				b.ReportAllocs()
				for b.Loop() {
					must(c.AddUserMessage(text))(b)
					must(c.Request())(b)
					must(c.AddAssistantMessage(answer))(b)
				}
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
