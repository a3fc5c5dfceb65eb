package keyed_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/session"
)

const key = "telegram:123456"

// manager is a SessionManager whose promises are checked on the way.
type manager struct {
	*keyed.SessionManager
	t testing.TB
}

func open(t testing.TB, o keyed.Options) manager {
	t.Helper()
	m := manager{keyed.New(&o), t}
	t.Cleanup(func() { m.close() })
	return m
}

func inDir(t testing.TB, dir string) manager {
	t.Helper()
	return open(t, keyed.Options{Dir: dir})
}

func (m manager) close() {
	m.t.Helper()
	if err := m.Close(); err != nil {
		m.t.Error(err)
	}
}

func (m manager) save(key string) {
	m.t.Helper()
	if err := m.Save(key); err != nil {
		m.t.Errorf("save: %v", err)
	}
}

// sees compares the history, in the form of brief.
func (m manager) sees(want ...string) {
	m.t.Helper()
	sameText(m.t, "history", brief(m.GetHistory(key)), want)
}

// hasAll compares all that was ever said.
func (m manager) hasAll(want ...string) {
	m.t.Helper()
	all, err := m.History(key, keyed.All)
	if err != nil {
		m.t.Error(err)
	}
	sameText(m.t, "all messages", brief(all), want)
}

func (m manager) summaryIs(want string) {
	m.t.Helper()
	if got := m.GetSummary(key); got != want {
		m.t.Errorf("summary %q, want %q", got, want)
	}
}

// talk adds messages: "u" is the user's, "a" the assistant's, "s" the system's;
// "+x" is a call x, "=x" its result.
func (m manager) talk(words ...string) {
	for _, word := range words {
		m.AddFullMessage(key, message(word))
	}
}

func message(word string) keyed.Message {
	switch word[0] {
	case '+':
		return keyed.Message{Role: "assistant", ToolCalls: []keyed.ToolCall{{ID: word[1:], Name: "tool"}}}
	case '=':
		return keyed.Message{Role: "tool", Content: "result", ToolCallID: word[1:]}
	case 'a':
		return keyed.Message{Role: "assistant", Content: word}
	case 's':
		return keyed.Message{Role: "system", Content: word}
	}
	return keyed.Message{Role: "user", Content: word}
}

func messages(words ...string) []keyed.Message {
	var list []keyed.Message
	for _, word := range words {
		list = append(list, message(word))
	}
	return list
}

func brief(messages []keyed.Message) []string {
	var words []string
	for _, m := range messages {
		switch {
		case len(m.ToolCalls) > 0:
			words = append(words, "+"+m.ToolCalls[0].ID)
		case m.ToolCallID != "":
			words = append(words, "="+m.ToolCallID)
		default:
			words = append(words, m.Content)
		}
	}
	return words
}

func sameText(t testing.TB, what string, got, want []string) {
	t.Helper()
	if g, w := strings.Join(got, " "), strings.Join(want, " "); g != w {
		t.Errorf("%s: %s\nwant: %s", what, g, w)
	}
}

func same(t interface {
	Helper()
	Errorf(format string, args ...any)
}, what string, got, want any,
) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// logOf opens the session of the key itself.
func logOf(t testing.TB, dir string) *session.Session {
	t.Helper()
	id, err := session.KeyID(key)
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Load(filepath.Join(dir, id+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// types returns the types of the entries of a log, in order.
func types(t testing.TB, s *session.Session) []string {
	t.Helper()
	var list []string
	for e, err := range s.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(e.Type))
	}
	return list
}

// clock is a time that goes on when it is told to.
type clock struct{ at time.Time }

func newClock() *clock { return &clock{time.Date(2026, 3, 10, 9, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time { return c.at }

func numbered(prefix string, n int) []string {
	var words []string
	for i := range n {
		words = append(words, fmt.Sprintf("%s%d", prefix, i+1))
	}
	return words
}
