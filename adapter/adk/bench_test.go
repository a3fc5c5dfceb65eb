package adk_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/adk/v2/session"
)

// grown returns a session of so many events, each of 400 bytes of text. Every tenth changes
// state.
func grown(b *testing.B, events int) (conversation, session.Session) {
	b.Helper()
	c := converse(b, fileStore(b, b.TempDir()), nil)
	s := c.create("s", map[string]any{"app:theme": "dark", "user:name": "Ada"})
	start := time.Now()
	body := strings.Repeat("word ", 80)
	for i := range events {
		author := []string{"user", "agent"}[i%2]
		e := text(author, fmt.Sprint(i, " ", body))
		e.Timestamp = start.Add(time.Duration(i) * time.Millisecond)
		if i%10 == 0 {
			e.Actions.StateDelta = map[string]any{fmt.Sprint("k", i%100): i}
		}
		c.append(s, e)
	}
	return c, s
}

func BenchmarkGetRecent20(b *testing.B) {
	for _, events := range []int{100, 10_000} {
		b.Run(fmt.Sprint("of ", events), func(b *testing.B) {
			c, _ := grown(b, events)
			for b.Loop() {
				if n := c.get("s", 20).Events().Len(); n != 20 {
					b.Fatal(n)
				}
			}
		})
	}
}

func BenchmarkGetAll(b *testing.B) {
	for _, events := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(events), func(b *testing.B) {
			c, _ := grown(b, events)
			for b.Loop() {
				if n := c.get("s", 0).Events().Len(); n != events {
					b.Fatal(n)
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, events := range []int{100, 10_000} {
		b.Run(fmt.Sprint("to ", events), func(b *testing.B) {
			c, s := grown(b, events)
			for b.Loop() {
				c.append(s, text("agent", strings.Repeat("word ", 80)))
			}
		})
	}
}

func BenchmarkGetAndAppend(b *testing.B) {
	c, _ := grown(b, 10_000)
	for b.Loop() {
		c.append(c.get("s", 20), text("agent", strings.Repeat("word ", 80)))
	}
}

// BenchmarkList lists the sessions of one user of a hundred, ten each.
func BenchmarkList(b *testing.B) {
	c := converse(b, fileStore(b, b.TempDir()), nil)
	for i := range 1000 {
		user := fmt.Sprint("user", i%100)
		s := mustGet(c.Create(b.Context(), &session.CreateRequest{AppName: "app", UserID: user}))(b).Session
		c.append(s, text("user", "hello"))
	}
	for name, user := range map[string]string{"one user": "user7", "all users": ""} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				mustGet(c.List(b.Context(), &session.ListRequest{AppName: "app", UserID: user}))(b)
			}
		})
	}
}
