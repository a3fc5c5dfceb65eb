package format_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/codex"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const rollout = "testdata/codex/rollout-2026-02-01T10-00-00-019c0000-0000-7000-8000-000000000001.jsonl"

func codexWrite(t *testing.T, s *transcript.Script) *transcript.Output {
	t.Helper()
	env := transcript.Env{Home: "/home/ada", Getenv: func(string) string { return "" }}
	out, err := codex.Format().Write(t.Context(), s, env)
	if err != nil {
		t.Fatal(err)
	}
	codexCheckRules(t, out.Files[0])
	return out
}

// codexCheckRules holds a rollout to what Codex insists on when it resumes one: a
// session meta first, whose id is a UUID and stands in the file's name; lines of
// a time, a known type and a payload; in each payload the members without which
// it is not read.
func codexCheckRules(t *testing.T, f transcript.OutputFile) {
	t.Helper()
	need := map[string][]string{
		"session_meta":  {"id", "timestamp", "cwd", "originator", "cli_version"},
		"turn_context":  {"cwd", "approval_policy", "sandbox_policy", "model", "summary"},
		"response_item": {"type"}, "event_msg": {"type"}, "compacted": {"message"}, "world_state": {"full"},
		"message": {"role", "content"}, "function_call": {"name", "arguments", "call_id"}, "function_call_output": {"call_id", "output"},
		"reasoning": {"summary"}, "user_message": {"message"}, "agent_message": {"message"}, "token_count": {"info"},
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(f.Data), "\n"), "\n") {
		var v struct {
			Timestamp time.Time
			Type      string
			Payload   map[string]json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		if v.Timestamp.IsZero() || need[v.Type] == nil || (v.Type == "session_meta") != (i == 0) {
			t.Errorf("line %d is not one of a rollout: %s", i+1, line)
		}
		var kind, id string
		_ = json.Unmarshal(v.Payload["type"], &kind)
		for _, name := range append(need[v.Type], need[kind]...) {
			if _, ok := v.Payload[name]; !ok {
				t.Errorf("line %d has no %s: %s", i+1, name, line)
			}
		}
		if _ = json.Unmarshal(v.Payload["id"], &id); i == 0 && !strings.HasSuffix(f.Path, "-"+id+".jsonl") {
			t.Errorf("the file %s does not have the id %s", f.Path, id)
		}
	}
	if !regexp.MustCompile(`^sessions/\d{4}/\d\d/\d\d/rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-[0-9a-f-]{36}\.jsonl$`).MatchString(f.Path) {
		t.Errorf("the path is %s", f.Path)
	}
}

// said is what was said on a path, without what a file cannot repeat: the names of
// records and of responses, which have other ancestors there, and times that were
// not known.
func said(entries []session.Entry) (list []string) {
	for _, e := range entries {
		if e.Message == nil {
			continue
		}
		m := *e.Message
		m.ResponseID = ""
		if m.Metadata["injected"] == "fork" { // a thread of its own has inherited nothing
			m.Metadata = nil
		}
		r := transcript.Record{Entry: session.Entry{Type: e.Type, Message: &m}}
		list = append(list, strings.TrimSpace(transcripttest.Line(&r)))
	}
	return list
}

// TestCodexRoundTrip: what the model sees of a rollout is in the rollout that is
// written of it, and what came before the compaction is there too.
func TestCodexRoundTrip(t *testing.T) {
	t.Parallel()
	for _, path := range codexFixtures(t) {
		switch filepath.Base(path) {
		case "exec.jsonl", "paginated.jsonl", "events.jsonl":
			continue // thinking without the provider's own form cannot be sent back
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			s, err := transcripttest.Script(t.Context(), codexCollect(t, path).Conversations[0])
			if err != nil {
				t.Fatal(err)
			}
			out := codexWrite(t, s)
			again := transcripttest.Collect(t, codex.Format(), transcript.FileOf(out.Files[0].Path, out.Files[0].Data))
			back, err := transcripttest.Script(t.Context(), again.Conversations[0])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(said(s.Context.Entries), said(back.Context.Entries)); diff != "" {
				t.Errorf("the context differs (-written +read):\n%s", diff)
			}
			if s.Context.Model != back.Context.Model || s.Name != back.Name || again.Conversations[0].CWD != s.Header.CWD {
				t.Errorf("model, name or directory differ: %+v, %+v", s.Context, back.Context)
			}
			if before, after := len(said(s.Path)), len(said(back.Path)); before > after+len(s.Context.Problems) {
				t.Errorf("of %d messages %d are written", before, after)
			}
		})
	}
}

func TestCodexWriteOutput(t *testing.T) {
	t.Parallel()
	s, err := transcripttest.Script(t.Context(), codexCollect(t, rollout).Conversations[0])
	if err != nil {
		t.Fatal(err)
	}
	out := codexWrite(t, s)
	if want := "sessions/2026/02/01/rollout-2026-02-01T10-00-00-019c0000-0000-7000-8000-000000000001.jsonl"; out.Files[0].Path != want {
		t.Errorf("the path is %s, want %s", out.Files[0].Path, want)
	}
	if out.Base != filepath.Join("/home/ada", ".codex") || out.Resume != "codex resume 019c0000-0000-7000-8000-000000000001" {
		t.Errorf("the output is %s, %s", out.Base, out.Resume)
	}
	if !strings.Contains(string(out.Files[0].Data), `"git":{"branch":"main","commit_hash":"abc"}`) {
		t.Error("the branch is not there")
	}
	if strings.Contains(string(out.Files[0].Data), `"user_message","message":"# AGENTS.md`) {
		t.Error("what was injected is shown as the user's")
	}
	index := out.Files[1]
	for old, want := range map[string]string{"": "", "{}\n": "{}\n", "{}": "{}\n"} {
		data, err := index.Merge([]byte(old))
		if err != nil || index.Path != "session_index.jsonl" || !strings.HasPrefix(string(data), want+`{"id":"019c0000`) || strings.Count(string(data), "Trees") != 1 {
			t.Errorf("the list of names becomes %s, %v", data, err)
		}
	}
	if last := out.Losses[len(out.Losses)-1]; last.What != "branches" || !strings.Contains(last.Why, "3 messages") {
		t.Errorf("the losses are %v", out.Losses)
	}
}

// TestCodexWriteCompacted: from the compaction on, the history is the summary and what
// was kept.
func TestCodexWriteCompacted(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 6, 1, 10, 0, 0, 0, time.UTC)
	id := func(s string) *string { return &s }
	message := func(m session.MessageEntry) *session.MessageEntry { return &m }
	usage := &session.Usage{Input: 5, Output: 2, CacheRead: 1, CacheWrite: 1}
	entries := []session.Entry{
		{Type: "message", ID: "u1", Timestamp: at, Message: message(session.MessageEntry{Role: "user", Content: []session.Content{session.Text("old")}})},
		{Type: "compaction", ID: "k0", ParentID: id("u1"), Timestamp: at, Compaction: &session.CompactionEntry{Summary: "older"}},
		{Type: "custom", ID: "x0", ParentID: id("k0"), Timestamp: at, Custom: &session.CustomEntry{CustomType: "codex.error", Data: map[string]any{"message": "no"}}},
		{Type: "custom", ID: "x1", ParentID: id("x0"), Timestamp: at, Custom: &session.CustomEntry{CustomType: "ext.state"}},
		{Type: "label", ID: "l0", ParentID: id("x1"), Timestamp: at, Label: &session.LabelEntry{TargetID: "u1", Label: "first"}},
		{Type: "model_change", ID: "m0", ParentID: id("l0"), Timestamp: at, ModelChange: &session.ModelChangeEntry{ModelID: "claude"}},
		{Type: "thinking_level", ID: "m1", ParentID: id("m0"), Timestamp: at, ThinkingLevel: &session.ThinkingLevelEntry{ThinkingLevel: "high"}},
		{Type: "message", ID: "u2", ParentID: id("m1"), Timestamp: at, Message: message(session.MessageEntry{Role: "user", Content: []session.Content{session.Text("kept")}})},
		{Type: "compaction", ID: "k1", ParentID: id("u2"), Timestamp: at, Compaction: &session.CompactionEntry{Summary: "S", FirstKeptEntryID: "u2"}},
		{Type: "message", ID: "a1", ParentID: id("k1"), Message: message(session.MessageEntry{
			Role: "assistant", Model: "claude", ResponseID: "r1", Usage: usage,
			Content: []session.Content{{Type: "thinking", Thinking: &session.ThinkingContent{Content: "hm", Signature: "other"}}, session.Text("new")},
		})},
		{Type: "message", ID: "a2", ParentID: id("a1"), Timestamp: at, Message: message(session.MessageEntry{
			Role: "assistant", Model: "claude", ResponseID: "r1", Usage: usage, Content: []session.Content{session.ToolUse("c1", "ls", nil)},
		})},
	}
	s, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "not a thread", Version: 1}, entries)
	if err != nil {
		t.Fatal(err)
	}
	out := codexWrite(t, s)
	var got []string
	for line := range strings.Lines(string(out.Files[0].Data)) {
		var v struct {
			Type    string
			Payload json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		got = append(got, v.Type+" "+string(v.Payload))
	}
	want := []string{
		`response_item {"type":"message","role":"user","content":[{"type":"input_text","text":"old"}]}`,
		`event_msg {"type":"user_message","message":"old","images":[]}`,
		`compacted {"message":"older","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Previous conversation summary: older"}]}]}`,
		`event_msg {"type":"error","message":"no"}`,
		`turn_context {"cwd":"","approval_policy":"on-request","sandbox_policy":{"type":"read-only"},"model":"claude","effort":"high","summary":"auto"}`,
		`response_item {"type":"message","role":"user","content":[{"type":"input_text","text":"kept"}]}`,
		`event_msg {"type":"user_message","message":"kept","images":[]}`,
		`compacted {"message":"S","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Previous conversation summary: S"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"kept"}]}]}`,
		`response_item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"new"}]}`,
		`event_msg {"type":"agent_reasoning","text":"hm"}`,
		`event_msg {"type":"agent_message","message":"new"}`,
		`event_msg {"type":"token_count","info":{"total_token_usage":{"input_tokens":7,"cached_input_tokens":1,"cache_write_input_tokens":1,"output_tokens":2,"reasoning_output_tokens":0,"total_tokens":9},"last_token_usage":{"input_tokens":7,"cached_input_tokens":1,"cache_write_input_tokens":1,"output_tokens":2,"reasoning_output_tokens":0,"total_tokens":9},"model_context_window":null},"rate_limits":null}`,
		`response_item {"type":"function_call","call_id":"c1","name":"ls","arguments":"{}"}`,
		`response_item {"type":"function_call_output","call_id":"c1","output":"[interrupted: the tool did not return a result]"}`,
	}
	if diff := cmp.Diff(want, got[1:]); diff != "" {
		t.Errorf("the lines differ (-want +got):\n%s", diff)
	}
	var losses []string
	for _, l := range out.Losses {
		losses = append(losses, l.EntryID+": "+l.What)
	}
	if diff := cmp.Diff([]string{"a1: thinking", "interrupted:c1: content", "x1: custom entry", "l0: label"}, losses); diff != "" {
		t.Errorf("losses differ (-want +got):\n%s", diff)
	}
}

// TestCodexWriteOwn: Codex gets back what its threads go by: the instructions before the
// conversation, what started it, its settings, and calls that were aborted, about which it
// has its own words. At any time these are the same bytes.
func TestCodexWriteOwn(t *testing.T) {
	t.Parallel()
	const id = "019c1000-0000-7000-8000-000000000077"
	const meta = `"source":{"subagent":"review"},"base_instructions":{"text":"You review."}`
	const settings = `"type":"thread_settings_applied","thread_settings":{"model":"gpt","service_tier":"priority"}`
	line := func(kind, payload string) string {
		return `{"timestamp":"2026-03-02T10:00:00.000Z","type":"` + kind + `","payload":{` + payload + "}}\n"
	}
	rollout := line("session_meta", `"id":"`+id+`","timestamp":"2026-03-02T10:00:00.000Z","cwd":"/w","originator":"codex_cli_rs","cli_version":"0.166.0",`+meta) +
		line("event_msg", settings) + line("event_msg", settings) +
		line("response_item", `"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]`) +
		line("response_item", `"type":"function_call","name":"exec","arguments":"{\"cmd\":\"a\"}","call_id":"call_a"`) +
		line("response_item", `"type":"message","role":"user","content":[{"type":"input_text","text":"stop"}]`)
	st := memory.New(nil)
	r, err := (&transcript.Importer{Store: st}).Import(t.Context(), codex.Format(), transcript.FileOf("/x/rollout-2026-03-02T10-00-00-"+id+".jsonl", []byte(rollout)))
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(t.Context(), st, r.Sessions[0].ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AppendSessionInfo("Review"); err != nil {
		t.Fatal(err)
	}
	var files [][]byte
	for _, now := range []time.Time{transcripttest.Now(), transcripttest.Now().Add(time.Hour)} {
		script, err := transcript.NewScript(s, codex.Format().Name, "", now)
		if err != nil {
			t.Fatal(err)
		}
		old := func(string) ([]byte, error) {
			if len(files) > 1 {
				return files[1], nil
			}
			return nil, nil
		}
		out, err := (&transcript.Exporter{Env: transcript.Env{Home: "/home/ada", Getenv: func(string) string { return "" }}}).Prepare(t.Context(), codex.Format(), script, old)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, out.Files[0].Data, out.Files[1].Data)
	}
	if text := string(files[0]); !strings.Contains(text, meta) || strings.Count(text, settings) != 1 || strings.Contains(text, "function_call_output") {
		t.Errorf("written is %s", text)
	}
	if !bytes.Equal(files[0], files[2]) || !bytes.Equal(files[1], files[3]) {
		t.Error("an hour later the bytes are others")
	}
}

// TestCodexThinkingIsLostOnce: what the writer says of a thought is not said again by the
// comparison with what was read back.
func TestCodexThinkingIsLostOnce(t *testing.T) {
	t.Parallel()
	first := "a1"
	s, err := transcripttest.ScriptOf(t.Context(), session.Header{ID: "s", CreatedAt: transcripttest.Now()}, []session.Entry{
		{Type: session.TypeMessage, ID: first, Timestamp: transcripttest.Now(), Message: &session.MessageEntry{
			Role: session.RoleUser, Content: []session.Content{session.Text("Hi")},
		}},
		{Type: session.TypeMessage, ID: "a2", ParentID: &first, Timestamp: transcripttest.Now(), Message: &session.MessageEntry{
			Role: session.RoleAssistant, Provider: "anthropic", Content: []session.Content{
				{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "Hm.", Signature: "sealed"}}, session.Text("Hello"),
			},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	x := &transcript.Exporter{Env: transcript.Env{Home: "/home/ada", Getenv: func(string) string { return "" }}}
	out, err := x.Prepare(t.Context(), codex.Format(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Losses) != 1 || out.Losses[0].EntryID != "a2" {
		t.Errorf("the losses are %+v, want one thought of a2", out.Losses)
	}
}
