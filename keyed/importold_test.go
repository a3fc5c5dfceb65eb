package keyed_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// put writes old files into a new directory.
func put(t testing.TB, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// untouched makes sure that old files are what they were.
func untouched(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
			t.Errorf("%s has become %q, %v", name, got, err)
		}
	}
}

const (
	oldWhole = `{"key":"telegram:123456","messages":[
		{"role":"user","content":"u1"},
		{"role":"assistant","content":"","tool_calls":[{"id":"c1","name":"files_read","arguments":{"path":"a.json"}}]},
		{"role":"tool","content":"{}","tool_call_id":"c1"},
		{"role":"assistant","content":"a1"}],
		"summary":"before","created":"2024-01-15T10:30:00Z","updated":"2024-01-15T10:31:00Z"}`
	oldLines = `{"role":"user","content":"u1","created_at":"2026-03-10T09:00:00Z"}
{"role":"assistant","content":"a1","created_at":"2026-03-10T09:00:02+01:00"}

{"role":"user","content":"u2","created_at":"2026-03-10T09:05:00Z","media":["media://1"]}
{"role":"assistant","content":"","reasoning_content":"only a thought"}
{"role":"assistant","content":"","model_name":"gpt-4o","tool_calls":[{"id":"c1","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a.json\"}","thought_signature":"sig"}}]}
{"role":"tool","content":"{}","tool_call_id":"c1"}
{"role":"assistant","content":"a2","reasoning_content":"why","created_at":"2026-03-10T09:05:03Z"}
{"role":"user","content":"torn wri`
	oldMetaText = `{"key":"telegram:123456","summary":"They greeted.","skip":2,"count":8,
		"created_at":"2026-03-10T08:59:00Z","updated_at":"2026-03-10T09:06:00Z","aliases":["direct:123456"]}`
)

func TestOldJSONFile(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"telegram_123456.json", "telegram_123456.json.migrated"} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{name: oldWhole}
			dir := put(t, files)
			m := inDir(t, dir)
			s := m.GetOrCreate(key)
			sameText(t, "messages", brief(s.Messages), []string{"u1", "+c1", "=c1", "a1"})
			same(t, "call", s.Messages[1].ToolCalls[0], keyed.ToolCall{ID: "c1", Name: "files_read", Arguments: map[string]any{"path": "a.json"}})
			if s.Summary != "before" || s.Created.Format(time.RFC3339) != "2024-01-15T10:30:00Z" || s.Updated.Format(time.RFC3339) != "2024-01-15T10:31:00Z" {
				t.Errorf("session %+v", s)
			}
			m.talk("u2")
			m.sees("u1", "+c1", "=c1", "a1", "u2")
			m.close()
			// It is not taken over again.
			again := inDir(t, dir)
			again.sees("u1", "+c1", "=c1", "a1", "u2")
			again.hasAll("u1", "+c1", "=c1", "a1", "u2")
			untouched(t, dir, files)
		})
	}
}

func TestOldLines(t *testing.T) {
	t.Parallel()
	files := map[string]string{"telegram_123456.jsonl": oldLines, "telegram_123456.meta.json": oldMetaText}
	dir := put(t, files)
	m := inDir(t, dir)
	m.summaryIs("They greeted.")
	m.sees("u2", "+c1", "=c1", "a2")
	m.hasAll("u1", "a1", "u2", "+c1", "=c1", "a2")
	same(t, "history", m.GetHistory(key), []keyed.Message{
		{Role: "user", Content: "u2", Extra: session.Fields{{Name: "media", Value: json.RawMessage(`["media://1"]`)}}},
		{Role: "assistant", Model: "gpt-4o", ToolCalls: []keyed.ToolCall{{
			ID: "c1", Name: "read_file", Arguments: map[string]any{"path": "a.json"},
			Extra: session.Fields{{Name: "thought_signature", Value: json.RawMessage(`"sig"`)}},
		}}},
		{Role: "tool", Content: "{}", ToolCallID: "c1"},
		{Role: "assistant", Content: "a2", ReasoningContent: "why"},
	})
	untouched(t, dir, files)

	var times []string
	var note map[string]any
	for e, err := range logOf(t, dir).Entries() {
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, e.Timestamp.Format("15:04:05"))
		if e.Custom != nil {
			note = e.Custom.Data
		}
	}
	same(t, "times", times, []string{"09:00:00", "08:00:02", "09:05:00", "09:05:00", "09:05:00", "09:05:03", "09:06:00", "09:06:00"})
	same(t, "unreadable", note["unreadable"], any([]any{8.0}))
	meta, _ := note["meta"].(map[string]any)
	if note["file"] != "telegram_123456.jsonl" || meta["count"] != 8.0 {
		t.Errorf("note %v", note)
	}
}

func TestWhichOldFile(t *testing.T) {
	t.Parallel()
	whole := func(key, text string) string {
		return `{"key":` + string(must(json.Marshal(key))) + `,"messages":[{"role":"user","content":"` + text + `"}]}`
	}
	line := `{"role":"user","content":"line"}`
	tests := []struct {
		name  string
		key   string
		files map[string]string
		want  string // the only message, or ""
	}{
		{"its own", "telegram:a_b", map[string]string{"telegram_a_b.json": whole("telegram:a_b", "mine")}, "mine"},
		{"another's of the same name", "telegram_a:b", map[string]string{"telegram_a_b.json": whole("telegram:a_b", "not mine")}, ""},
		{"with slashes", `forum/1\2:3`, map[string]string{"forum_1_2_3.json": whole(`forum/1\2:3`, "mine")}, "mine"},
		{"a negative id", "telegram:-100", map[string]string{"telegram_-100.json": whole("telegram:-100", "mine")}, "mine"},
		{"lines before JSON", "k:1", map[string]string{
			"k_1.json": whole("k:1", "old"), "k_1.jsonl": line, "k_1.meta.json": `{"key":"k:1"}`,
		}, "line"},
		{"JSON before what was migrated", "k:1", map[string]string{"k_1.json": whole("k:1", "new"), "k_1.json.migrated": whole("k:1", "old")}, "new"},
		{"lines of another key", "k:1", map[string]string{"k_1.jsonl": line, "k_1.meta.json": `{"key":"k_1"}`}, ""},
		{"lines without a meta file", "k:1", map[string]string{"k_1.jsonl": line}, ""},
		{"lines without a meta file, whose name is the key", "main", map[string]string{"main.jsonl": line}, "line"},
		{"lines with a broken meta file", "k:1", map[string]string{"k_1.jsonl": line, "k_1.meta.json": `{`}, ""},
		{"lines with a broken meta file, whose name is the key", "main", map[string]string{"main.jsonl": line, "main.meta.json": `{`}, "line"},
		{"an alias", "agent:main:direct:42", map[string]string{
			"sk_v1_0f3c.jsonl": line, "sk_v1_0f3c.meta.json": `{"key":"sk_v1_0f3c","aliases":["agent:main:direct:42"]}`,
		}, "line"},
		{"a meta file is no session", "k:1.meta", map[string]string{"k_1.meta.json": `{"key":"k:1.meta","summary":"x"}`}, ""},
		{"a directory", "k:1", map[string]string{}, ""},
		{"a key that is no file name", strings.Repeat("x", 300), map[string]string{}, ""},
		{"a key with a NUL", "a\x00b", map[string]string{}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := put(t, tt.files)
			if len(tt.files) == 0 {
				if err := os.Mkdir(filepath.Join(dir, "k_1.json"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			m := inDir(t, dir)
			got := brief(m.GetOrCreate(tt.key).Messages)
			sameText(t, "messages", got, strings.Fields(tt.want))
			m.save(tt.key)
			untouched(t, dir, tt.files)
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestKeysOfOldFiles(t *testing.T) {
	t.Parallel()
	dir := put(t, map[string]string{
		"telegram_1.json": `{"key":"telegram:1","messages":[]}`, "x.json": `{"key":"not a session"}`, "y.json": `[1]`,
		"a_b.jsonl": "{}", "a_b.meta.json": `{"key":"a:b"}`, "bad.meta.json": `{`, "none.meta.json": `{}`,
	})
	m := inDir(t, dir)
	m.AddMessage("new", "user", "hi")
	m.AddMessage("a:b", "user", "hi")
	if err := os.Mkdir(filepath.Join(dir, "directory.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	keys, err := m.Keys()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "keys", keys, []string{"a:b", "new", "telegram:1"})
}

// A file that makes no sense is named in the new session and in what Save says,
// and does not stop the conversation.
func TestBrokenOldFile(t *testing.T) {
	t.Parallel()
	files := map[string]string{"telegram_123456.json": `{"key":"telegram:123456","messages":[{"role":"us`}
	dir := put(t, files)
	m := inDir(t, dir)
	m.talk("u1")
	m.sees("u1")
	err := m.Save(key)
	if !errors.Is(err, session.ErrCorrupt) || !strings.Contains(err.Error(), "telegram_123456.json") {
		t.Errorf("save: %v", err)
	}
	m.save(key)
	untouched(t, dir, files)
	inDir(t, dir).sees("u1")
	other := inDir(t, dir) // whose key has the same name, but is not in the file
	other.AddMessage("telegram_123456", "user", "hi")
	if err := other.Save("telegram_123456"); !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("save: %v, want the file whose name is the key reported", err)
	}
	other.AddMessage("telegram/123456", "user", "hi")
	other.save("telegram/123456")
}

// TestKeyInABrokenOldFile: picoclaw escapes some characters of a key, and other programs do not.
func TestKeyInABrokenOldFile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"key":"tg:a\u0026b<\u003e","mess`, `{"key":"tg:a&b<>","mess`, `{"key":"tg:a\u0026b\u003c\u003e","mess`} {
		m := inDir(t, put(t, map[string]string{"tg_a&b<>.json": text}))
		m.AddMessage("tg:a&b<>", "user", "hi")
		if err := m.Save("tg:a&b<>"); !errors.Is(err, session.ErrCorrupt) {
			t.Errorf("save beside %s: %v", text, err)
		}
		m.AddMessage("tg/a&b<>", "user", "hi")
		m.save("tg/a&b<>")
	}
}

func TestOddOldMessages(t *testing.T) {
	t.Parallel()
	dir := put(t, map[string]string{"telegram_123456.json": `{"key":"telegram:123456","created":"long ago","updated":7,"messages":[
		{"role":"user","content":null,"created_at":"yesterday"}, {"content":"nobody said this"}, 7, null, "text",
		{"role":"user","content":["parts"]},
		{"role":"assistant","content":"a","tool_calls":"none","created_at":"2026-03-10T09:00:00Z"},
		{"role":"assistant","tool_calls":[{"id":"c","function":"f","arguments":"not json"},{"function":{"arguments":7}}]}]}`})
	m := inDir(t, dir)
	got := m.GetHistory(key)
	same(t, "history", got, []keyed.Message{
		{Role: "user", Extra: session.Fields{{Name: "created_at", Value: json.RawMessage(`"yesterday"`)}}},
		{Role: "user", Extra: session.Fields{{Name: "content", Value: json.RawMessage(`["parts"]`)}}},
		{Role: "assistant", Content: "a", Extra: session.Fields{{Name: "tool_calls", Value: json.RawMessage(`"none"`)}}},
		{Role: "assistant", ToolCalls: []keyed.ToolCall{
			{ID: "c", Extra: session.Fields{{Name: "arguments", Value: json.RawMessage(`"not json"`)}, {Name: "function", Value: json.RawMessage(`"f"`)}}},
			{Extra: session.Fields{{Name: "arguments", Value: json.RawMessage(`7`)}}},
		}},
	})
	if created := m.GetOrCreate(key).Created; created.Format(time.DateOnly) != "2026-03-10" {
		t.Errorf("created %v", created)
	}
}

// Two managers that find an old file at once take it over once.
func TestTakeOverAtOnce(t *testing.T) {
	t.Parallel()
	files := map[string]string{"telegram_123456.json": oldWhole}
	for range 20 {
		dir := put(t, files)
		a, b := inDir(t, dir), inDir(t, dir)
		var wait sync.WaitGroup
		wait.Go(func() { a.talk("ua") })
		wait.Go(func() { b.talk("ub") })
		wait.Wait()
		all := brief(a.GetHistory(key))
		if len(all) != 6 || all[0] != "u1" {
			t.Fatalf("history %v", all)
		}
		sameText(t, "the other's", brief(b.GetHistory(key)), all)
	}
}

// An old file that cannot be read now is no reason to begin without it.
func TestUnreadableOldFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	loop := filepath.Join(dir, "telegram_123456.json")
	if err := os.Symlink(loop, loop); err != nil {
		return // where there are no symbolic links this cannot happen
	}
	m := keyed.NewSessionManager(dir)
	m.AddMessage(key, "user", "u1")
	if err := m.Save(key); err == nil {
		t.Error("Save says nothing")
	}
	if _, err := m.Keys(); err == nil {
		t.Error("Keys says nothing")
	}
	if err := os.Remove(loop); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(loop, []byte(oldWhole), 0o600); err != nil {
		t.Fatal(err)
	}
	manager{m, t}.save(key)
	manager{m, t}.sees("u1", "+c1", "=c1", "a1", "u1")
	manager{m, t}.close()
}

// picoclaw could truncate between a call and its result; the model then refused
// every request. What is taken over is whole again.
func TestRegressionOldTruncationInAToolPair(t *testing.T) {
	t.Parallel()
	lines := `{"role":"user","content":"u1"}
{"role":"assistant","content":"","tool_calls":[{"id":"c1","name":"f"}]}
{"role":"tool","content":"1","tool_call_id":"c1"}
{"role":"assistant","content":"a1"}`
	for _, tt := range []struct {
		name, lines string
		skip        string
		want        []string
	}{
		{"the call is there", lines, "2", []string{"u1", "+c1", "=c1", "a1"}},
		{"the call is gone", lines[strings.LastIndex(lines[:strings.Index(lines, `"tool"`)], "\n")+1:], "0", []string{"a1"}},
		{"everything", lines, "9", nil},
		{"less than nothing", lines, "-1", []string{"u1", "+c1", "=c1", "a1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := put(t, map[string]string{"telegram_123456.jsonl": tt.lines, "telegram_123456.meta.json": `{"key":"telegram:123456","skip":` + tt.skip + `}`})
			inDir(t, dir).sees(tt.want...)
		})
	}
}

func FuzzOldFiles(f *testing.F) {
	f.Add([]byte(oldWhole), []byte(oldLines), []byte(oldMetaText))
	f.Add([]byte(`{"key":"k"}`), []byte("{}\n{\"role\":\"tool\"}"), []byte(`{"key":"telegram:123456","skip":-1}`))
	f.Fuzz(func(t *testing.T, whole, lines, meta []byte) {
		for _, files := range []map[string]string{
			{"telegram_123456.json": string(whole)},
			{"telegram_123456.jsonl": string(lines), "telegram_123456.meta.json": string(meta)},
		} {
			dir := put(t, files)
			sessions := memory.New(nil) // what is new goes there: a disk would be waited for
			m := keyed.New(&keyed.Options{Dir: dir, Store: sessions})
			m.AddMessage(key, "user", "last")
			_ = m.Save(key) // what is broken is reported
			if err := m.Save(key); err != nil {
				t.Fatal(err)
			}
			history := m.GetHistory(key)
			if n := len(history); n == 0 || history[n-1].Content != "last" {
				t.Fatalf("history %v", history)
			}
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			again := keyed.New(&keyed.Options{Dir: dir, Store: sessions})
			same(t, "history after a restart", again.GetHistory(key), history)
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
			untouched(t, dir, files)
		}
	})
}

func FuzzMessageJSON(f *testing.F) {
	for _, line := range strings.Split(oldLines, "\n") {
		f.Add([]byte(line))
	}
	f.Add([]byte(`{"role":"assistant","content":["parts"],"tool_calls":[{"arguments":null},{"arguments":""},{"arguments":"x"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var m keyed.Message
		if json.Unmarshal(text, &m) != nil {
			return
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var back keyed.Message
		if err := json.Unmarshal(again, &back); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		third, err := json.Marshal(back)
		if err != nil || string(third) != string(again) {
			t.Fatalf("%s became %s, %v", again, third, err)
		}
		var members map[string]any
		if err := json.Unmarshal(text, &members); err != nil {
			t.Fatal(err)
		}
		var kept map[string]any
		if err := json.Unmarshal(again, &kept); err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if _, ok := kept[name]; !ok && members[name] != nil && members[name] != "" && name != "tool_calls" {
				t.Fatalf("%s is lost in %s", name, again)
			}
		}
	})
}
