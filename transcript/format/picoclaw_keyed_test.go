package format_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/picoclaw"
)

const key = "telegram:123456"

// picoclawScriptOf returns the session of a key, for a writer.
func picoclawScriptOf(t *testing.T, dir string) *transcript.Script {
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
	script, err := transcript.NewScript(s, picoclaw.Format().Name, "", s.Header().CreatedAt)
	if err != nil {
		t.Fatal(err)
	}
	return script
}

// TestPicoClawKeyedSessionAsOneFile: a keyed session as picoclaw's single file is what
// the session manager shows, and keyed reads it again.
func TestPicoClawKeyedSessionAsOneFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sm := keyed.NewSessionManager(dir)
	for _, m := range []keyed.Message{
		{Role: "user", Content: "long ago"},
		{Role: "assistant", Content: "yes"},
		{Role: "user", Content: "send it", Extra: session.Fields{{Name: "media", Value: json.RawMessage(`["media://1"]`)}}},
		{Role: "assistant", ToolCalls: []keyed.ToolCall{{
			ID: "c1", Name: "send", Arguments: map[string]any{"chat": int64(123456789012345678)},
			Extra: session.Fields{{Name: "thought_signature", Value: json.RawMessage(`"sig"`)}},
		}}},
		{Role: "tool", Content: "sent", ToolCallID: "c1"},
		{Role: "assistant", Content: "done"},
	} {
		if err := sm.Add(key, m); err != nil {
			t.Fatal(err)
		}
	}
	sm.SetSummary(key, "they said hello")
	sm.TruncateHistory(key, 4)
	if err := sm.Save(key); err != nil {
		t.Fatal(err)
	}
	want := sm.GetHistory(key)
	if err := sm.Close(); err != nil {
		t.Fatal(err)
	}

	script := picoclawScriptOf(t, dir)
	script.OneFile = true
	x := &transcript.Exporter{Env: env}
	out, err := x.Prepare(t.Context(), picoclaw.Format(), script, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Files) != 1 || out.Files[0].Path != "telegram_123456.json" {
		t.Fatalf("files %+v", out.Files)
	}
	text := string(out.Files[0].Data)
	for _, part := range []string{"\n  \"key\": \"telegram:123456\"", `"messages": [`, `"summary": "they said hello"`, `"created": "`, `"updated": "`, "123456789012345678"} {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %s in\n%s", part, text)
		}
	}

	again := t.TempDir()
	picoclawWrite(t, filepath.Join(again, "telegram_123456.json"), text)
	sm = keyed.NewSessionManager(again)
	defer sm.Close()
	if diff := cmp.Diff(want, sm.GetHistory(key)); diff != "" || sm.GetSummary(key) != "they said hello" {
		t.Errorf("keyed reads it as (-want +got):\n%s\nwith the summary %q", diff, sm.GetSummary(key))
	}
}

// TestPicoClawKeyedSessionAsLines: the newer form holds what came before the summary too.
func TestPicoClawKeyedSessionAsLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sm := keyed.NewSessionManager(dir)
	for _, text := range []string{"one", "two", "three"} {
		sm.AddMessage(key, "user", text)
	}
	sm.SetSummary(key, "one and two")
	sm.TruncateHistory(key, 1)
	if err := sm.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := picoclaw.Format().Write(t.Context(), picoclawScriptOf(t, dir), env)
	if err != nil {
		t.Fatal(err)
	}
	again := t.TempDir()
	for _, f := range out.Files {
		picoclawWrite(t, filepath.Join(again, f.Path), string(f.Data))
	}
	sm = keyed.NewSessionManager(again)
	defer sm.Close()
	all, err := sm.History(key, keyed.All)
	if err != nil || len(all) != 3 || len(sm.GetHistory(key)) != 1 || sm.GetSummary(key) != "one and two" {
		t.Errorf("keyed reads %+v, %v, of which it shows %+v, with the summary %q", all, err, sm.GetHistory(key), sm.GetSummary(key))
	}
}

// TestPicoClawFactsKeepLargeIntegers: what a source says of a conversation comes back with
// every digit.
func TestPicoClawFactsKeepLargeIntegers(t *testing.T) {
	t.Parallel()
	const number = "123456789012345678"
	for name, text := range map[string]string{
		"doc.json": `{"key":"k","messages":[{"role":"user","content":"hi","chat":` + number + `}],"created":"2026-01-01T00:00:00Z","updated":"2026-01-01T00:00:00Z","owner":` + number + `}`,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		picoclawWrite(t, path, text)
		st, err := file.Open(filepath.Join(dir, "sessions"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		im := &transcript.Importer{Store: st}
		f, err := transcript.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		report, err := im.Import(t.Context(), picoclaw.Format(), f)
		if err != nil {
			t.Fatal(err)
		}
		s, err := session.Open(t.Context(), st, report.Sessions[0].ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		script, err := transcript.NewScript(s, picoclaw.Format().Name, "", s.Header().CreatedAt)
		if err != nil {
			t.Fatal(err)
		}
		out, err := picoclaw.Format().Write(t.Context(), script, env)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(out.Files[0].Data), number); n != 2 {
			t.Errorf("the number is there %d times, want 2, in\n%s", n, out.Files[0].Data)
		}
	}
}
