package keyed_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// fill adds a message to each of many keys, the clock going on by a time.
func fill(m manager, c *clock, from, to int, pause time.Duration) {
	for i := from; i < to; i++ {
		c.at = c.at.Add(pause)
		m.AddMessage(fmt.Sprint("chat:", i), "user", fmt.Sprint("message ", i))
	}
}

func TestTheLeastRecentlyUsedAreClosed(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{t.TempDir(), ""} {
		c := newClock()
		m := open(t, keyed.Options{Dir: dir, Now: c.now})
		fill(m, c, 0, 20, 2*time.Second)
		if n := len(m.Active()); n != 20 {
			t.Errorf("%d active, want 20", n)
		}
		m.GetHistory("chat:0") // now the one used last
		fill(m, c, 20, 25, 2*time.Second)
		want := []string{"chat:24", "chat:23", "chat:22", "chat:21", "chat:20", "chat:0", "chat:19"}
		same(t, "active", m.Active()[:7], want)
		if n := len(m.Active()); n != 20 {
			t.Errorf("%d active, want 20", n)
		}
		for i := range 25 {
			if h := m.GetHistory(fmt.Sprint("chat:", i)); len(h) != 1 || h[0].Content != fmt.Sprint("message ", i) {
				t.Errorf("chat %d: %v", i, h)
			}
		}
	}
}

// In a burst of more chats than are kept open none is closed at once; but there
// is an end to that.
func TestBurst(t *testing.T) {
	t.Parallel()
	c := newClock()
	m := open(t, keyed.Options{Now: c.now, MaxOpen: 2})
	fill(m, c, 0, 10, 0)
	if n := len(m.Active()); n != 10 {
		t.Errorf("%d active in a burst of 10", n)
	}
	fill(m, c, 10, 50, 0)
	if n := len(m.Active()); n != 16 {
		t.Errorf("%d active in a burst of 50, want 16", n)
	}
	fill(m, c, 0, 1, 2*time.Second)
	if n := len(m.Active()); n != 2 {
		t.Errorf("%d active after it, want 2", n)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	c := newClock()
	m := open(t, keyed.Options{Now: c.now, MaxBytes: 100_000})
	for i := range 10 {
		m.AddMessage(fmt.Sprint("chat:", i), "user", strings.Repeat("x", 30_000))
	}
	same(t, "active", m.Active(), []string{"chat:9", "chat:8", "chat:7"})
	m.AddFullMessage("chat:9", keyed.Message{Role: "assistant", ToolCalls: []keyed.ToolCall{
		{Arguments: map[string]any{"l": []any{strings.Repeat("x", 60_000), 1.0, nil}}},
	}})
	same(t, "active", m.Active(), []string{"chat:9"})
	m.TruncateHistory("chat:9", 0)
	m.AddMessage("chat:8", "user", strings.Repeat("x", 30_000))
	same(t, "active", m.Active(), []string{"chat:8", "chat:9"})
	if n := len(m.GetHistory("chat:8")); n != 2 {
		t.Errorf("%d messages, want 2", n)
	}
}

// What is not written yet is written before a chat is closed; what nobody was
// told yet keeps it open.
func TestClosingLosesNothing(t *testing.T) {
	t.Parallel()
	c := newClock()
	m := open(t, keyed.Options{Dir: t.TempDir(), Now: c.now, MaxOpen: 1})
	m.talk("u1")
	m.SetSummary(key, "sum")
	m.SetSummary("only a summary", "of nothing")
	m.AddFullMessage("refused", keyed.Message{ToolCalls: []keyed.ToolCall{{Arguments: map[string]any{"f": func() {}}}}})
	fill(m, c, 0, 3, 2*time.Second)
	same(t, "active", m.Active(), []string{"chat:2"})
	m.summaryIs("sum")
	m.sees("u1")
	if s := m.GetSummary("only a summary"); s != "of nothing" {
		t.Errorf("summary %q", s)
	}
	wantRefused(t, m.Save("refused"))
}

func TestALineThatIsTooLong(t *testing.T) {
	t.Parallel()
	st, err := file.Open("/d", &file.Options{FS: vfstest.NewMemory(), MaxLine: 2000})
	if err != nil {
		t.Fatal(err)
	}
	m := open(t, keyed.Options{Store: st})
	m.talk("u1")
	m.AddMessage(key, "user", strings.Repeat("x", 3000))
	m.talk("u2")
	m.SetHistory(key, []keyed.Message{message("u3"), {Role: "user", Content: strings.Repeat("x", 3000)}})
	m.sees("u1", "u2")
	if err := m.Save(key); !errors.Is(err, session.ErrTooLarge) || !strings.Contains(err.Error(), key) {
		t.Errorf("save: %v", err)
	}
	m.save(key)
	m.sees("u1", "u2")
}

// A session that somebody removes while it is open starts over.
func TestARemovedSession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := inDir(t, dir)
	m.talk("u1", "a1")
	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	id, err := session.KeyID(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	m.talk("u2")
	m.sees("u2")
	m.save(key)
	inDir(t, dir).sees("u2")
}

// Sessions that other programs write to are shown as well as messages can.
func TestOtherWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := inDir(t, dir)
	m.talk("u1", "a1")
	s := logOf(t, dir)
	image := session.Image("image/png", "AAAA")
	first := mustSay(t, s, session.RoleUser, session.Text("one"), session.Text("two"), image)
	mustSay(t, s, session.RoleAssistant, session.ToolUse("x", "f", nil), session.ToolUse("y", "f", nil))
	mustSay(t, s, session.RoleUser, session.ToolResult("x", "rx", false), session.Content{
		Type: session.ContentTypeToolResult, ToolResult: &session.ToolResultContent{ToolUseID: "y", Content: "ry", Parts: []session.Content{session.Text("ry"), image}},
	}, session.Text("and this"))
	last := mustSay(t, s, session.RoleUser, session.Content{Type: session.ContentTypeAudio, Audio: &session.AudioContent{}},
		session.Content{Type: session.ContentTypeFile, File: &session.FileContent{Source: &session.Source{MediaType: "text/csv"}}})
	same(t, "history", m.GetHistory(key), []keyed.Message{
		message("u1"), message("a1"),
		{Role: "user", Content: "one\ntwo\n[image image/png]"},
		{Role: "assistant", ToolCalls: []keyed.ToolCall{{ID: "x", Name: "f"}, {ID: "y", Name: "f"}}},
		{Role: "tool", ToolCallID: "x", Content: "rx"},
		{Role: "tool", ToolCallID: "y", Content: "ry\n[image image/png]"},
		{Role: "user", Content: "and this"},
		{Role: "user", Content: "[audio]\n[file text/csv]"},
	})
	// A result message is not cut in two, and what the others do counts.
	m.TruncateHistory(key, 3)
	if h := m.GetHistory(key); len(h) != 6 {
		t.Errorf("%d messages, want 6: %v", len(h), brief(h))
	}
	if _, err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Undo(); err != nil {
		t.Fatal(err)
	}
	if h := m.GetHistory(key); len(h) != 8 {
		t.Errorf("%d messages after the undo, want 8", len(h))
	}
	left := s.LeafID()
	if _, err := s.BranchWithSummary(first, "the other way failed"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendEntry(session.Merge(left, "merged", last)); err != nil {
		t.Fatal(err)
	}
	m.sees("u1", "a1", "one\ntwo\n[image image/png]", "the other way failed", "merged", "[audio]\n[file text/csv]")
	m.TruncateHistory(key, 1) // a merged entry cannot come first
	m.sees("merged", "[audio]\n[file text/csv]")
	m.talk("u2")
	inDir(t, dir).sees("merged", "[audio]\n[file text/csv]", "u2")
}

func mustSay(t testing.TB, s *session.Session, role session.MessageRole, content ...session.Content) string {
	t.Helper()
	id, err := s.AppendMessage(role, content)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Somebody who goes back into the middle of a replaced history, on purpose, is
// followed.
func TestBranchIntoAReplacedHistory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := inDir(t, dir)
	m.talk("u1")
	m.SetHistory(key, messages("u2", "a2", "u3"))
	s := logOf(t, dir)
	path, err := s.Forward("")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Branch(path[1].ID); err != nil { // u2
		t.Fatal(err)
	}
	m.sees("u2")
	inDir(t, dir).sees("u2")
	m.talk("other")
	inDir(t, dir).sees("u2", "other")
	if _, err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendEntry(session.ContextEdit(path[1].ID)); err != nil {
		t.Fatal(err)
	}
	inDir(t, dir).sees("other")
}
