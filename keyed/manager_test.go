package keyed_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/store/remote"
)

// everywhere runs a test with files, in memory and on another machine.
func everywhere(t *testing.T, test func(t *testing.T, m manager)) {
	t.Run("files", func(t *testing.T) { test(t, inDir(t, t.TempDir())) })
	t.Run("memory", func(t *testing.T) { test(t, inDir(t, "")) })
	t.Run("elsewhere", func(t *testing.T) { test(t, open(t, keyed.Options{Store: elsewhere(t)})) })
}

// elsewhere returns a store on another machine.
func elsewhere(t *testing.T) store.Store {
	t.Helper()
	handler := remote.NewHandler(memory.New(nil))
	server := httptest.NewServer(handler)
	st := must(remote.Open(t.Context(), server.URL, nil))
	t.Cleanup(func() {
		if err := errors.Join(st.Close(), handler.Close()); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	return st
}

func TestGetOrCreate(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m manager) {
		s := m.GetOrCreate(key)
		if s.Key != key || s.Messages == nil || len(s.Messages) != 0 || s.Summary != "" || s.Created.IsZero() || !s.Updated.Equal(s.Created) {
			t.Errorf("a new session is %+v", s)
		}
		m.talk("u1", "a1")
		m.SetSummary(key, "sum")
		again := m.GetOrCreate(key)
		sameText(t, "messages", brief(again.Messages), []string{"u1", "a1"})
		if again.Summary != "sum" || !again.Created.Equal(s.Created) || again.Updated.Before(s.Updated) {
			t.Errorf("the session again: %+v, at first %+v", again, s)
		}
	})
}

// A session that is handed out is the caller's: changing it changes nothing.
func TestCallersCannotChangeTheStore(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m manager) {
		args := map[string]any{"path": "a", "list": []any{"x"}, "map": map[string]any{"k": "v"}}
		said := keyed.Message{
			Role: "assistant", ToolCalls: []keyed.ToolCall{{ID: "c", Name: "n", Arguments: args}},
			Extra: session.Fields{{Name: "media", Value: json.RawMessage(`["m"]`)}},
		}
		m.AddFullMessage(key, said)
		want := fmt.Sprintf("%+v", m.GetHistory(key))
		spoil := func(messages []keyed.Message) {
			messages[0].Role = "spoilt"
			messages[0].Extra[0].Value[2] = 'X'
			call := &messages[0].ToolCalls[0]
			call.ID = "spoilt"
			call.Arguments["path"] = "spoilt"
			call.Arguments["list"].([]any)[0] = "spoilt"
			call.Arguments["map"].(map[string]any)["k"] = "spoilt"
		}
		spoil([]keyed.Message{said})
		spoil(m.GetHistory(key))
		spoil(m.GetOrCreate(key).Messages)
		all, err := m.History(key, keyed.All)
		if err != nil {
			t.Fatal(err)
		}
		spoil(all)
		same(t, "history", fmt.Sprintf("%+v", m.GetHistory(key)), want)
	})
}

func TestHistoryOfAMissingSession(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m manager) {
		if h := m.GetHistory("nobody"); h == nil || len(h) != 0 {
			t.Errorf("history %#v, want an empty one", h)
		}
		if s := m.GetSummary("nobody"); s != "" {
			t.Errorf("summary %q", s)
		}
		m.TruncateHistory("nobody", 1)
		m.save("nobody")
		if all, err := m.History("nobody", keyed.All); err != nil || len(all) != 0 {
			t.Errorf("all: %v, %v", all, err)
		}
		if keys, err := m.Keys(); err != nil || len(keys) > 0 || len(m.Active()) > 0 {
			t.Errorf("asking made a session: %v, %v, %v", keys, m.Active(), err)
		}
	})
}

func TestMessagesSurvive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := inDir(t, dir)
	said := []keyed.Message{
		{Role: "system", Content: "be brief"},
		{Role: "user", Content: "first line\nsecond \"line\" \u2028 \x00 🌲"},
		{Role: "user"},
		{Role: "assistant", Content: "text", ReasoningContent: "thought", Model: "gpt", ToolCalls: []keyed.ToolCall{
			{ID: "c1", Name: "read", Arguments: map[string]any{"n": 1.5, "b": true, "z": nil, "l": []any{"x", 2.0}}},
			{ID: "c2", Name: "empty", Arguments: map[string]any{}},
			{ID: "c3", Name: "none", Extra: session.Fields{{Name: "thought_signature", Value: json.RawMessage(`"sig"`)}}},
		}},
		{Role: "tool", ToolCallID: "c1", Content: strings.Repeat("a large result ", 10_000)},
		{Role: "tool", ToolCallID: "c2"},
		{Role: "tool", ToolCallID: "c3", Content: "x", Extra: session.Fields{{Name: "media", Value: json.RawMessage(`[{"a":1}]`)}}},
		{Role: "tool", Content: "without an id"},
	}
	for _, msg := range said {
		m.AddFullMessage(key, msg)
	}
	same(t, "history", m.GetHistory(key), said)
	same(t, "history of another manager", inDir(t, dir).GetHistory(key), said)
	m.close()
	same(t, "history after a restart", inDir(t, dir).GetHistory(key), said)
	if problems, err := logOf(t, dir).Problems(); err != nil || len(problems) > 0 {
		t.Errorf("problems: %v, %v", problems, err)
	}
}

func TestInvalidTextBecomesValid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := inDir(t, dir)
	m.AddMessage(key, "user", "bad \xff byte")
	m.AddFullMessage(key, keyed.Message{Role: "assistant", ToolCalls: []keyed.ToolCall{
		{ID: "c\xff", Arguments: map[string]any{"numbers": []int{1}, "bad": "\xff", "when": time.Unix(0, 0).UTC()}},
	}})
	got := m.GetHistory(key)
	if got[0].Content != "bad \uFFFD byte" || got[1].ToolCalls[0].ID != "c\uFFFD" {
		t.Errorf("history %+v", got)
	}
	same(t, "what is read again", inDir(t, dir).GetHistory(key), got)
}

func TestAMessageThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m manager) {
		m.AddFullMessage(key, keyed.Message{Role: "assistant", ToolCalls: []keyed.ToolCall{{ID: "c7", Arguments: map[string]any{"f": func() {}}}}})
		m.AddFullMessage(key, keyed.Message{Role: "user", Extra: session.Fields{{Name: "media", Value: json.RawMessage(`{`)}}})
		m.AddFullMessage(key, keyed.Message{Role: "user", ToolCalls: []keyed.ToolCall{{Extra: session.Fields{{Name: "x", Value: json.RawMessage(`{`)}}}}})
		m.talk("u1")
		m.SetHistory(key, []keyed.Message{{Role: "user", Extra: session.Fields{{Name: "x", Value: json.RawMessage(`{`)}}}})
		m.sees("u1")
		err := m.Save(key)
		if err == nil || !strings.Contains(err.Error(), `"c7"`) || strings.Count(err.Error(), "not recorded") != 4 {
			t.Errorf("save: %v, want it to say what was refused", err)
		}
		m.save(key) // it was said once
	})
}

func TestSetHistory(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		before   string
		set      string
		wantAll  string // what the log has then
		wantMore bool   // whether anything is written
	}{
		{"on nothing", "", "s u a", "s u a", true},
		{"nothing on nothing", "", "", "", false},
		{"nothing", "u1 a1", "", "u1 a1", true},
		{"the same", "u1 a1", "u1 a1", "u1 a1", false},
		{"another", "u1 a1", "u2 a2", "u1 a1 u2 a2", true},
		{"the end of it", "u1 a1 u2 a2", "u2 a2", "u1 a1 u2 a2", true},
		{"the end of it, and more", "u1 a1 u2", "u2 a2", "u1 a1 u2 a2", true},
		{"it and more", "u1 a1", "u1 a1 u2", "u1 a1 u2", true},
		{"the beginning of it", "u1 a1 u2", "u1 a1", "u1 a1 u2 u1 a1", true},
		{"with something before", "u1 a1", "s u1 a1", "u1 a1 s u1 a1", true},
		{"repeated words", "u u u", "u u", "u u u", true},
		{"from within a pair, as it is asked for", "u +x =x a", "=x a", "u +x =x a =x a", true},
		{"within a turn", "u +x =x +y =y", "+y =y", "u +x =x +y =y", true},
		{"while a call waits", "u +x", "u2", "u +x u2", true},
		{"with a call that waits", "u +x =x +y", "+y", "u +x =x +y", true},
		{"without the system prompt", "s u a", "u a", "s u a", true},
		{"with another system prompt", "s u a", "s2 u a", "s u a s2 u a", true},
		{"an answer alone", "u1 a1 u2 a2", "a2", "u1 a1 u2 a2", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			m := inDir(t, dir)
			m.GetOrCreate(key)
			m.talk(strings.Fields(tt.before)...)
			m.SetSummary(key, "kept")
			m.save(key)
			before := len(types(t, logOf(t, dir)))
			m.SetHistory(key, messages(strings.Fields(tt.set)...))
			for _, m := range []manager{m, inDir(t, dir)} {
				m.sees(strings.Fields(tt.set)...)
				m.hasAll(strings.Fields(tt.wantAll)...)
				m.summaryIs("kept")
			}
			if wrote := len(types(t, logOf(t, dir))) > before; wrote != tt.wantMore {
				t.Errorf("wrote: %t", wrote)
			}
			m.talk("next")
			inDir(t, dir).sees(append(strings.Fields(tt.set), "next")...)
		})
	}
}

// A message that is a result and has calls at once becomes two; replacing keeps
// both.
func TestSetHistoryWithAnOddMessage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := inDir(t, dir)
	odd := keyed.Message{Role: "tool", ToolCallID: "x", Content: "r", ToolCalls: []keyed.ToolCall{{ID: "y"}}}
	m.talk("+x", "=x")
	m.SetHistory(key, []keyed.Message{message("+x"), odd})
	m.sees("+x", "=x", "+y")
	m.SetHistory(key, []keyed.Message{odd})
	m.sees("=x", "+y")
	inDir(t, dir).sees("=x", "+y")
}

// Other programs record the results of parallel calls in one entry. A history goes on from
// that as from entries of our own.
func TestSetHistoryAfterParallelResults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := inDir(t, dir)
	m.talk("u0", "u1")
	s := logOf(t, dir)
	mustSay(t, s, session.RoleAssistant, session.ToolUse("x", "tool", nil), session.ToolUse("y", "tool", nil))
	mustSay(t, s, session.RoleUser, session.ToolResult("x", "result", false), session.ToolResult("y", "result", false))
	m.sees("u0", "u1", "+x", "=x", "=y")
	history := m.GetHistory(key)

	m.SetHistory(key, history)
	same(t, "entries", types(t, logOf(t, dir)), []string{"message", "message", "message", "message"})
	m.SetHistory(key, append(history, message("a1")))
	m.hasAll("u0", "u1", "+x", "=x", "=y", "a1")
	same(t, "entries", types(t, logOf(t, dir))[4:], []string{"message"})
	m.SetHistory(key, append(history[1:], message("a1"), message("u2"))) // and from the middle
	same(t, "entries", types(t, logOf(t, dir))[5:], []string{"compaction", "message"})
	for _, m := range []manager{m, inDir(t, dir)} {
		m.sees("u1", "+x", "=x", "=y", "a1", "u2")
		m.hasAll("u0", "u1", "+x", "=x", "=y", "a1", "u2")
	}

	mustSay(t, logOf(t, dir), session.RoleUser, session.ToolResult("z", "result", false))
	odd := keyed.Message{Role: "tool", ToolCallID: "z", Content: "result", ToolCalls: []keyed.ToolCall{{ID: "v"}}}
	m.SetHistory(key, append(m.GetHistory(key)[:6], odd)) // the old history ends within its last entry
	for _, m := range []manager{m, inDir(t, dir)} {
		m.sees("u1", "+x", "=x", "=y", "a1", "u2", "=z", "+v")
	}
}

func TestTruncateHistory(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		talk string
		keep int
		want string
	}{
		{"the last", "u1 a1 u2 a2", 1, "a2"},
		{"some", "u1 a1 u2 a2", 3, "a1 u2 a2"},
		{"as many as there are", "u1 a1", 2, "u1 a1"},
		{"more than there are", "u1 a1", 9, "u1 a1"},
		{"none", "u1 a1", 0, ""},
		{"less than none", "u1 a1", -1, ""},
		{"the first is no system prompt", "u1 a1 u2", 1, "u2"},
		{"system messages stay", "s1 u1 a1 s2 u2", 1, "s1 s2 u2"},
		{"but are not counted", "s u1 a1", 1, "s a1"},
		{"system messages are cleared with all the rest", "s u1 a1", 0, ""},
		{"an answer alone", "u1 +x =x a1", 1, "a1"},
		{"between a call and its result", "u0 u1 +x =x a1", 2, "u1 +x =x a1"},
		{"within a turn, whose prompt stays", "u0 a0 +x =x a1 u2", 4, "u0 +x =x a1 u2"},
		{"a call that waits", "u1 a1 u2 +x", 1, "u2 +x"},
		{"a call that waits, with the result of another", "u1 a1 u2 +x =x +y", 1, "u2 +y"},
		{"a call that waits while the user speaks", "u1 a1 u2 +x u3", 1, "u2 +x u3"},
		{"a call that was interrupted", "u1 +x u2 a2 u3", 2, "a2 u3"},
		{"nothing but one turn", "u1 +x =x +y =y", 1, "u1 +y =y"},
		{"an orphan from before", "=x u1 a1", 2, "u1 a1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			m := inDir(t, dir)
			m.talk(strings.Fields(tt.talk)...)
			m.TruncateHistory(key, tt.keep)
			for _, m := range []manager{m, inDir(t, dir)} {
				m.sees(strings.Fields(tt.want)...)
				m.hasAll(strings.Fields(tt.talk)...)
			}
		})
	}
}

// A result that comes when its call has been cleared is recorded, but a model
// that got it would refuse everything from then on.
func TestResultOfAClearedCall(t *testing.T) {
	t.Parallel()
	for _, clear := range []struct {
		name string
		do   func(m manager)
		left []string
	}{
		{"truncated", func(m manager) { m.TruncateHistory(key, 0) }, nil},
		{"replaced", func(m manager) { m.SetHistory(key, messages("u9")) }, []string{"u9"}},
		{"truncated after it was interrupted", func(m manager) { m.talk("u8", "a8", "u9"); m.TruncateHistory(key, 1) }, []string{"u9"}},
	} {
		t.Run(clear.name, func(t *testing.T) {
			dir := t.TempDir()
			m := inDir(t, dir)
			m.talk("u1", "+x")
			clear.do(m)
			m.sees(clear.left...)
			m.SetSummary(key, "what is known of the call survives another summary")
			m.save(key)
			other := inDir(t, dir)
			other.talk("=x")
			for _, m := range []manager{m, other, inDir(t, dir)} {
				m.sees(clear.left...)
			}
			if all, err := m.History(key, keyed.All); err != nil || brief(all)[len(all)-1] != "=x" {
				t.Errorf("the result was not recorded: %v, %v", brief(all), err)
			}
			m.talk("+x", "=x", "a1") // the id is used again
			want := append(clear.left, "+x", "=x", "a1")
			m.sees(want...)
			inDir(t, dir).sees(want...)
		})
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := inDir(t, dir)
	m.SetSummary(key, "of nothing")
	m.summaryIs("of nothing")
	m.talk("u1")
	inDir(t, dir).summaryIs("of nothing")
	m.SetSummary(key, "one")
	m.SetSummary(key, "two")
	m.summaryIs("two")
	m.sees("u1")
	m.save(key)
	inDir(t, dir).summaryIs("two")
	inDir(t, dir).sees("u1")
	m.SetSummary(key, "")
	m.save(key)
	inDir(t, dir).summaryIs("")
	same(t, "entries", types(t, logOf(t, dir)), []string{"compaction", "message", "compaction", "compaction"})
}

// A summary and the truncation that follows are one entry (and so survive a
// crash together or not at all); nothing is written before.
func TestSummaryAndTruncationAreOneEntry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := inDir(t, dir)
	m.talk(numbered("u", 21)...)
	m.SetSummary(key, "seventeen messages")
	if n := len(types(t, logOf(t, dir))); n != 21 {
		t.Errorf("%d entries before the truncation, want 21", n)
	}
	m.TruncateHistory(key, 4)
	m.save(key)
	s := logOf(t, dir)
	if list := types(t, s); len(list) != 22 || list[21] != "compaction" {
		t.Errorf("entries: %v", list)
	}
	e, err := s.Entry(s.LeafID())
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.Entry(e.Compaction.FirstKeptEntryID)
	if err != nil || first.Message.Content[0].Text.Content != "u18" || e.Compaction.Summary != "seventeen messages" {
		t.Errorf("the compaction keeps from %+v on and says %q, %v", first, e.Compaction.Summary, err)
	}
	m.sees("u18", "u19", "u20", "u21")
	inDir(t, dir).sees("u18", "u19", "u20", "u21")
	inDir(t, dir).summaryIs("seventeen messages")
	inDir(t, dir).hasAll(numbered("u", 21)...)
}

func TestSessionJSON(t *testing.T) {
	t.Parallel()
	clock := newClock()
	m := open(t, keyed.Options{Now: clock.now})
	m.GetOrCreate(key)
	clock.at = clock.at.Add(time.Minute)
	m.AddMessage(key, "user", "Hello!")
	m.talk("+x")
	text, err := json.Marshal(m.GetOrCreate(key))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "JSON", string(text), `{"key":"telegram:123456","messages":[{"role":"user","content":"Hello!"},`+
		`{"role":"assistant","content":"","tool_calls":[{"id":"x","name":"tool","arguments":null}]}],`+
		`"created":"2026-03-10T09:00:00Z","updated":"2026-03-10T09:01:00Z"}`)
}

func TestFilesAreNamedByIDs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made when it is needed")
	m := inDir(t, dir)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("a new manager has touched the disk: %v", err)
	}
	m.AddMessage("telegram:-1001234567890", "user", "hi")
	files, err := filepath.Glob(filepath.Join(dir, "[^.]*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	id, err := session.KeyID("telegram:-1001234567890")
	if err != nil || filepath.Base(files[0]) != id+".jsonl" || strings.Contains(files[0], "1001234567890") {
		t.Errorf("the file is %s; the id %s, %v", files[0], id, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || !strings.Contains(string(text), `"key":"telegram:-1001234567890"`) {
		t.Errorf("the header lacks the key: %s, %v", text, err)
	}
}

// A result that is left out stays left out when what stands around it is kept.
func TestLateResultAmongWhatIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := inDir(t, dir)
	m.talk("u1", "+x")
	m.TruncateHistory(key, 0)
	m.talk("u2", "=x", "a2")
	for _, change := range []func(){
		func() { m.SetSummary(key, "sum"); m.save(key) },
		func() { m.SetHistory(key, messages("u2", "a2", "u3")) },
	} {
		change()
		inDir(t, dir).sees(brief(m.GetHistory(key))...)
	}
	m.sees("u2", "a2", "u3")
}

// Whoever clears a conversation clears its summary with it: a model must not be sent what
// is left of it. A summary that was given just before is of what was cleared, and stays.
func TestClearingDropsTheSummary(t *testing.T) {
	t.Parallel()
	for name, clear := range map[string]func(m manager) error{
		"replaced by nothing": func(m manager) error { return m.Replace(key, nil) },
		"truncated to nothing": func(m manager) error {
			_, err := m.Truncate(key, 0)
			return err
		},
	} {
		dir := t.TempDir()
		m := inDir(t, dir)
		m.talk("u1", "a1", "u2")
		m.SetSummary(key, "they spoke of beans")
		m.TruncateHistory(key, 1)
		if err := clear(m); err != nil {
			t.Fatal(err)
		}
		for _, m := range []manager{m, inDir(t, dir)} {
			if got := m.GetSummary(key); got != "" {
				t.Errorf("%s: the summary is still %q", name, got)
			}
			m.sees()
		}
	}
	m := inDir(t, t.TempDir())
	m.talk("u1", "a1")
	if _, err := m.Truncate(key, -1); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("keeping -1 messages: %v", err)
	}
	m.sees("u1", "a1")
	m.SetSummary(key, "all of it")
	m.TruncateHistory(key, 0)
	if got := m.GetSummary(key); got != "all of it" {
		t.Errorf("the summary is %q", got)
	}
}
