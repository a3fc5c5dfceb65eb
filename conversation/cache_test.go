package conversation_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

func inMemory(m *conversation.Sessions) []string {
	ids, _ := m.SessionsInMemory()
	slices.Sort(ids)
	return ids
}

func sorted(ids ...string) []string {
	slices.Sort(ids)
	return ids
}

// makeSessions makes sessions, the first being the least recently used.
func makeSessions(t *testing.T, m *conversation.Sessions, n int, text string) (ids []string) {
	t.Helper()
	for range n {
		ids = append(ids, say(t, m, "", user(text)))
	}
	return ids
}

func TestLeastRecentlyUsedGoFirst(t *testing.T) {
	t.Parallel()
	m := newManager(t, t.TempDir(), 100)
	settings := m.Settings()
	settings.MaxSessionsInMemory = 3
	do(t, m.SetSettings(settings))
	ids := makeSessions(t, m, 3, "x")
	must(m.LoadSession(ids[0]))(t)
	fourth := say(t, m, "", user("x"))
	if diff := cmp.Diff(sorted(ids[0], ids[2], fourth), inMemory(m)); diff != "" {
		t.Error(diff)
	}
	// What was closed is there when it is asked for.
	if s := must(m.LoadSession(ids[1]))(t); len(s.Messages) != 1 {
		t.Errorf("%+v", s)
	}
}

func TestPinnedSessionsStay(t *testing.T) {
	t.Parallel()
	m := newManager(t, "", 100)
	ids := makeSessions(t, m, 3, "x")
	m.Pin(ids[0])
	m.Prioritise(ids[1], 1)
	do(t, m.SetSettings(conversation.Settings{MaxSessionsInMemory: 2, AutoSaveInterval: -1}))
	if diff := cmp.Diff(sorted(ids[0], ids[1]), inMemory(m)); diff != "" {
		t.Errorf("the one of the lowest priority goes first:\n%s", diff)
	}
	m.ReleaseMemory(0)
	if diff := cmp.Diff(sorted(ids[0]), inMemory(m)); diff != "" {
		t.Error(diff)
	}
	m.Unpin(ids[0])
	m.ReleaseMemory(0)
	if left := inMemory(m); len(left) != 0 {
		t.Errorf("%v", left)
	}
}

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	m := newManager(t, "", 100)
	do(t, m.SetSettings(conversation.Settings{MaxBytesInMemory: 100_000, AutoSaveInterval: -1}))
	ids := makeSessions(t, m, 5, strings.Repeat("x", 40_000))
	if diff := cmp.Diff(sorted(ids[3], ids[4]), inMemory(m)); diff != "" {
		t.Error(diff)
	}
	if _, bytes := m.SessionsInMemory(); bytes < 80_000 || bytes > 100_000 {
		t.Errorf("%d bytes", bytes)
	}
}

func TestMemoryPressure(t *testing.T) {
	t.Parallel()
	pressure := false
	o := quiet(100)
	var m *conversation.Sessions
	o.UnderPressure = func() bool {
		m.SessionsInMemory() // it may want to know
		return pressure
	}
	m = must(conversation.OpenSessions("", o))(t)
	defer m.Close()
	makeSessions(t, m, 20, "x")
	if n := len(inMemory(m)); n != 20 {
		t.Errorf("%d sessions", n)
	}
	pressure = true
	makeSessions(t, m, 1, "x")
	if n := len(inMemory(m)); n != 10 {
		t.Errorf("%d sessions under pressure", n)
	}
	// The same for their bytes.
	do(t, m.SetSettings(conversation.Settings{MaxBytesInMemory: 100_000, AutoSaveInterval: -1}))
	makeSessions(t, m, 3, strings.Repeat("x", 20_000))
	if _, bytes := m.SessionsInMemory(); bytes < 40_000 || bytes > 50_000 {
		t.Errorf("%d bytes under pressure", bytes)
	}
}

// Everything counts towards the limit, whatever it is.
func TestMemoryOfAllContent(t *testing.T) {
	t.Parallel()
	m := newManager(t, "", 100)
	big := strings.Repeat("x", 10_000)
	id := must(m.CreateSession(""))(t).ID
	source := &session.Source{Type: "base64", Data: big}
	for i, c := range []session.Content{
		session.Text(big), session.ToolResult("a", big, false), session.Image("image/png", big),
		{Type: session.ContentTypeAudio, Audio: &session.AudioContent{Source: source}},
		{Type: session.ContentTypeFile, File: &session.FileContent{Source: source}},
		{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: big}},
		{Type: "hologram", Raw: fmt.Appendf(nil, `{"type":"hologram","x":%q}`, big)},
	} {
		must(m.AddMessage(id, conversation.Message{Role: "assistant", Content: []session.Content{c}}))(t)
		if _, bytes := m.SessionsInMemory(); bytes < int64(10_000*(i+1)) {
			t.Errorf("%d bytes after block %d", bytes, i)
		}
	}
	_, before := m.SessionsInMemory()
	must(m.AddMessage(id, call("a")))(t)
	if _, after := m.SessionsInMemory(); after <= before {
		t.Error("a call takes nothing")
	}
}

// Sessions come and go under many readers and writers.
func TestCacheUnderLoad(t *testing.T) {
	t.Parallel()
	m := newManager(t, "", 4)
	do(t, m.SetSettings(conversation.Settings{MaxSessionsInMemory: 2, MaxMessagesPerSession: 4, AutoSaveInterval: time.Millisecond}))
	ids := makeSessions(t, m, 5, "x")
	var wg sync.WaitGroup
	for w := range 6 {
		wg.Go(func() {
			for i := range 30 {
				id := ids[(w+i)%len(ids)]
				if _, err := m.AddMessage(id, user(fmt.Sprint(w, i))); err != nil {
					t.Error(err)
				}
				if _, err := m.Totals(id); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for _, id := range ids {
		total += len(must(m.Conversation(id))(t).Messages)
	}
	if total != 6*30+5 {
		t.Errorf("%d messages", total)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	m := must(conversation.OpenSessions("", nil))(t)
	defer m.Close()
	want := conversation.Settings{Format: "jsonl", MaxMessagesPerSession: 5000, MaxSessionsInMemory: 20, MaxBytesInMemory: 256 << 20, AutoSaveInterval: 60 * time.Second}
	if diff := cmp.Diff(want, m.Settings()); diff != "" {
		t.Error(diff)
	}
	wantError(t, m.SetSettings(conversation.Settings{MaxBytesInMemory: -1}), session.ErrInvalid)
	// They hold from the next message on.
	id := say(t, m, "", user("1"), assistant("2"), user("3"), assistant("4"))
	do(t, m.SetSettings(conversation.Settings{MaxMessagesPerSession: 2}))
	say(t, m, id, user("5"))
	if n := len(must(m.Conversation(id))(t).Links); n != 2 {
		t.Errorf("%d links", n)
	}
}

func TestLoadSettings(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.yml")
	if got := must(conversation.LoadSettings(path))(t); got != conversation.DefaultSettings {
		t.Errorf("without a file: %+v", got)
	}
	tests := []struct {
		yaml string
		want conversation.Settings
	}{
		{"", conversation.DefaultSettings},
		{"model: x\n", conversation.DefaultSettings},
		{
			"sessions:\n  format: json\n  max_messages_per_session: 7\n  max_sessions_in_memory: 3\n  auto_save_interval: 1.5  # seconds\n  max_bytes_in_memory: 9\nother: [1]\n",
			conversation.Settings{Format: "jsonl", MaxMessagesPerSession: 7, MaxSessionsInMemory: 3, MaxBytesInMemory: 9, AutoSaveInterval: 1500 * time.Millisecond},
		},
		{
			"sessions:\n  auto_save_interval: 0\n",
			conversation.Settings{Format: "jsonl", MaxMessagesPerSession: 5000, MaxSessionsInMemory: 20, MaxBytesInMemory: 256 << 20, AutoSaveInterval: -1},
		},
	}
	for _, tt := range tests {
		do(t, os.WriteFile(path, []byte(tt.yaml), 0o600))
		if diff := cmp.Diff(tt.want, must(conversation.LoadSettings(path))(t)); diff != "" {
			t.Errorf("%q:\n%s", tt.yaml, diff)
		}
	}
	for _, bad := range []string{"sessions: 5\n", "sessions:\n  format: msgpack\n", "sessions:\n  max_sessions_in_memory: many\n", "sessions:\n  max_messages_per_session: -5\n", ":\n\t-"} {
		do(t, os.WriteFile(path, []byte(bad), 0o600))
		_, err := conversation.LoadSettings(path)
		wantError(t, err, session.ErrInvalid)
	}
	_, err := conversation.LoadSettings(filepath.Dir(path))
	if err == nil {
		t.Error("a directory is no configuration")
	}
}

func FuzzLoadSettings(f *testing.F) {
	f.Add([]byte("sessions:\n  max_messages_per_session: 7\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		path := filepath.Join(t.TempDir(), "config.yml")
		do(t, os.WriteFile(path, raw, 0o600))
		if s, err := conversation.LoadSettings(path); err == nil && (s.MaxMessagesPerSession < 1 || s.MaxSessionsInMemory < 1) {
			t.Errorf("%+v", s)
		}
	})
}

// counted is a store that counts the logs that are open.
type counted struct {
	store.Store
	open *atomic.Int32
}

func (c counted) Open(ctx context.Context, name string) (store.Log, error) {
	log, err := c.Store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	c.open.Add(1)
	return &countedLog{Log: log, open: c.open}, nil
}

type countedLog struct {
	store.Log
	open *atomic.Int32
	once sync.Once
}

func (l *countedLog) Close() error {
	l.once.Do(func() { l.open.Add(-1) })
	return l.Log.Close()
}

// Of the end of a conversation, only as much stays open as the largest window needs.
func TestSmallerEndsAreClosed(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	id := ""
	writer := newManagerOn(t, st, 3)
	for i := range 40 {
		id = say(t, writer, id, user(fmt.Sprint("message ", i)))
	}
	openAfter := func(rooms ...int) int32 {
		var open atomic.Int32
		m := newManagerOn(t, counted{st, &open}, 3)
		for _, room := range rooms {
			c := conversation.NewChat(m, small(t, room))
			do(t, c.Load(id))
			must(c.View())(t)
		}
		return open.Load()
	}
	if once, rising := openAfter(160), openAfter(40, 60, 80, 100, 120, 140, 160); rising > once {
		t.Errorf("%d logs are open after windows that rise to one for which %d are", rising, once)
	}
}
