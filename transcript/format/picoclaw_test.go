package format_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/picoclaw"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

var (
	document      = filepath.Join("testdata", "picoclaw", "telegram_-100_7.json")
	picoclawLines = filepath.Join("testdata", "picoclaw", "agent_main_cli_1.jsonl")
)

func TestPicoClawStandard(t *testing.T) {
	t.Parallel()
	transcripttest.Standard(t, transcripttest.Suite{
		Format: picoclaw.Format(), Fixtures: []string{document, picoclawLines}, Sessions: 2,
		Place: ".picoclaw/workspace/sessions", Match: "a.jsonl", Pass: "a.meta.json",
	})
}

// TestPicoClawAfterCompaction: when the program rewrites a file without the lines that it
// skips, the messages that stay are the same ones.
func TestPicoClawAfterCompaction(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, err := os.ReadFile(picoclawLines)
	if err != nil {
		t.Fatal(err)
	}
	rest := strings.SplitN(string(data), "\n", 3)[2]
	picoclawWrite(t, filepath.Join(dir, "x.jsonl"), rest)
	picoclawWrite(t, filepath.Join(dir, "x.meta.json"), `{"key":"agent:main:cli:1","summary":"s","skip":0,"created_at":"2026-01-01T00:00:00Z"}`)
	before := transcripttest.Collect(t, picoclaw.Format(), transcripttest.Open(t, picoclawLines)).Conversations[0].Records
	after := transcripttest.Collect(t, picoclaw.Format(), transcripttest.Open(t, filepath.Join(dir, "x.jsonl"))).Conversations[0].Records
	if after[0].ID != before[2].ID {
		t.Error("a message has another id when the lines before it are gone")
	}
	last := after[len(after)-1].Entry.Compaction
	if last == nil || last.FirstKeptEntryID != after[0].ID {
		t.Errorf("the summary keeps from %+v", last)
	}
}

// TestPicoClawLinesThatRanTogether: the messages on one line are all read, and the lines to
// skip are counted as the program counts them.
func TestPicoClawLinesThatRanTogether(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.jsonl")
	say := func(text string) string { return `{"role":"user","content":"` + text + `"}` }
	picoclawWrite(t, path, say("one")+say("two")+"\n"+`{"role":"us`+"\n"+say("three")+"\n"+say("four")+`{"role":`)
	picoclawWrite(t, strings.TrimSuffix(path, ".jsonl")+".meta.json", `{"key":"k","summary":"s","skip":2,"created_at":"2026-01-01T00:00:00Z"}`)
	c := transcripttest.Collect(t, picoclaw.Format(), transcripttest.Open(t, path))
	var got []string
	records := c.Conversations[0].Records
	for _, r := range records[:len(records)-1] {
		got = append(got, r.Entry.Message.Content[0].Text.Content)
	}
	if diff := cmp.Diff([]string{"one", "two", "three", "four"}, got); diff != "" {
		t.Errorf("messages differ (-want +got):\n%s", diff)
	}
	if cut := records[len(records)-1].Entry.Compaction; len(c.Problems) != 1 || cut == nil || cut.FirstKeptEntryID != records[2].ID {
		t.Errorf("there are the problems %v, and the summary is %+v", c.Problems, cut)
	}
}

func picoclawWrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPicoClawRoundTrip: what the program wrote comes back with equal JSON values.
func TestPicoClawRoundTrip(t *testing.T) {
	t.Parallel()
	paths := []string{document, picoclawLines}
	for _, pattern := range []string{"picoclaw-json/*.json", "picoclaw/agent*.json", "picoclaw-jsonl/*.jsonl", "picoclaw/*.jsonl"} {
		paths = append(paths, transcripttest.Samples(t, pattern)...)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			c := transcripttest.Collect(t, picoclaw.Format(), transcripttest.Open(t, path)).Conversations[0]
			script, err := transcripttest.Script(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			out, err := picoclaw.Format().Write(t.Context(), script, env)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range out.Files {
				if got, want := values(t, f.Data), original(t, path, filepath.Ext(f.Path)); !cmp.Equal(want, got) {
					t.Errorf("%s differs (-want +got):\n%s", f.Path, cmp.Diff(want, got))
				}
			}
		})
	}
}

// original returns the values of a session's file, or of that beside it.
func original(t *testing.T, path, ext string) []any {
	t.Helper()
	if ext == ".json" && strings.HasSuffix(path, ".jsonl") {
		path = strings.TrimSuffix(path, ".jsonl") + ".meta.json"
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := values(t, data)
	if count, ok := found[0].(map[string]any)["count"]; ok && len(found) == 1 {
		// Lines that are not JSON are kept as bytes only, and not written.
		if count.(float64) == 8 {
			found[0].(map[string]any)["count"] = 7.0
		}
	}
	return found
}

// values returns the JSON values of a text, one a line or all of it.
func values(t *testing.T, data []byte) []any {
	t.Helper()
	var whole any
	if err := json.Unmarshal(data, &whole); err == nil {
		return []any{whole}
	}
	var found []any
	for line := range strings.Lines(string(data)) {
		var v any
		if err := json.Unmarshal([]byte(line), &v); err == nil {
			found = append(found, v)
		}
	}
	return found
}

// TestPicoClawWhatStaysBeforeASummary: system messages and the question of a turn that was
// cut are still sent after a compaction. The single file has them before what is
// kept; the lines cannot, and the writer says so of each.
func TestPicoClawWhatStaysBeforeASummary(t *testing.T) {
	t.Parallel()
	s, err := session.New(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	say := func(role string, content session.Content) string {
		t.Helper()
		id, err := s.AppendMessage(role, []session.Content{content})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	system := say("system", session.Text("be kind"))
	prompt := say("user", session.Text("fix it all"))
	say("assistant", session.ToolUse("1", "look", nil))
	say("tool", session.ToolResult("1", "a wall", false))
	kept := say("assistant", session.ToolUse("2", "dig", nil))
	say("tool", session.ToolResult("2", "a hole", false))
	if _, err := s.AppendCompaction("looked around", kept, 0); err != nil {
		t.Fatal(err)
	}
	script, err := transcript.NewScript(s, picoclaw.Format().Name, "", transcripttest.Now())
	if err != nil {
		t.Fatal(err)
	}
	prepare := func() *transcript.Output {
		t.Helper()
		out, err := (&transcript.Exporter{Env: env}).Prepare(t.Context(), picoclaw.Format(), script, nil)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}

	lost := make(map[string]bool)
	for _, l := range prepare().Losses {
		lost[l.EntryID] = true
	}
	if !lost[system] || !lost[prompt] || lost[kept] {
		t.Errorf("said to be left out of the lines: %v, want %s and %s", lost, system, prompt)
	}

	script.OneFile = true
	var file struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal(prepare().Files[0].Data, &file); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range file.Messages {
		got = append(got, m.Role+" "+m.Content)
	}
	if diff := cmp.Diff([]string{"system be kind", "user fix it all", "assistant ", "tool a hole"}, got); diff != "" {
		t.Errorf("messages of the single file (-want +got):\n%s", diff)
	}
}

// TestPicoClawWriteOurs writes a session that never was picoclaw's.
func TestPicoClawWriteOurs(t *testing.T) {
	t.Parallel()
	at := transcripttest.Now()
	follow := func(id string) *string { return &id }
	entries := []session.Entry{
		{Type: session.TypeMessage, ID: "a", Timestamp: at, Message: &session.MessageEntry{Role: "user", Content: []session.Content{session.Text("run both")}}},
		{Type: session.TypeMessage, ID: "b", ParentID: follow("a"), Timestamp: at, Message: &session.MessageEntry{Role: "assistant", Content: []session.Content{session.ToolUse("1", "x", nil), session.ToolUse("2", "y", nil)}}},
		{Type: session.TypeMessage, ID: "c", ParentID: follow("b"), Timestamp: at, Message: &session.MessageEntry{Role: "tool", Content: []session.Content{session.ToolResult("1", "one", false), session.ToolResult("2", "two", true)}}},
		{Type: session.TypeMessage, ID: "d", ParentID: follow("c"), Timestamp: at, Message: &session.MessageEntry{Role: "assistant", Content: []session.Content{session.Text("done")}}},
		{Type: session.TypeCompaction, ID: "e", ParentID: follow("d"), Timestamp: at, Compaction: &session.CompactionEntry{Summary: "first", FirstKeptEntryID: "d"}},
		{Type: session.TypeCompaction, ID: "f", ParentID: follow("e"), Timestamp: at, Compaction: &session.CompactionEntry{Summary: "both ran"}},
		{Type: session.TypeMessage, ID: "g", ParentID: follow("f"), Timestamp: at, Message: &session.MessageEntry{Role: "user", Content: []session.Content{session.Text("thanks")}}},
	}
	script, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "s1", Version: 1, CreatedAt: at}, entries)
	if err != nil {
		t.Fatal(err)
	}
	out, err := picoclaw.Format().Write(t.Context(), script, env)
	if err != nil {
		t.Fatal(err)
	}
	if out.Files[0].Path != "coppice_s1.jsonl" || strings.Count(string(out.Files[0].Data), "\n") != 6 {
		t.Errorf("%s is\n%s", out.Files[0].Path, out.Files[0].Data)
	}
	meta := values(t, out.Files[1].Data)[0].(map[string]any)
	if meta["skip"] != 5.0 || meta["count"] != 6.0 || meta["summary"] != "both ran" || meta["key"] != "coppice:s1" {
		t.Errorf("the meta file is %v", meta)
	}
	if len(out.Losses) != 1 || out.Losses[0].EntryID != "e" {
		t.Errorf("losses are %v", out.Losses)
	}
	script.Facts = map[string]any{"form": "json"}
	out, err = picoclaw.Format().Write(t.Context(), script, env)
	if err != nil {
		t.Fatal(err)
	}
	doc := values(t, out.Files[0].Data)[0].(map[string]any)
	if messages := doc["messages"].([]any); len(messages) != 1 || doc["summary"] != "both ran" || len(out.Losses) != 2 {
		t.Errorf("the document is %v, its losses %v", doc, out.Losses)
	}
}

// TestPicoClawContentIsAString: the program reads no other, so that pictures stand beside
// it and what nobody understands is left out, and listed.
func TestPicoClawContentIsAString(t *testing.T) {
	t.Parallel()
	at := transcripttest.Now()
	picture := session.Content{Type: session.ContentTypeImage, Image: &session.ImageContent{
		Source: &session.Source{Type: "base64", MediaType: "image/png", Data: "aGk="},
	}}
	unknown := session.Content{Type: "tool_use", Raw: json.RawMessage(`{"type":"tool_use","name":"x"}`)}
	entries := []session.Entry{
		{Type: session.TypeMessage, ID: "a", Timestamp: at, Message: &session.MessageEntry{Role: "user", Content: []session.Content{session.Text("see"), picture, session.Text("this")}}},
		{Type: session.TypeMessage, ID: "b", Timestamp: at, Message: &session.MessageEntry{Role: "assistant", Content: []session.Content{session.Text("well"), unknown}}},
	}
	entries[1].ParentID = &entries[0].ID
	script, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "s1", Version: 1, CreatedAt: at}, entries)
	if err != nil {
		t.Fatal(err)
	}
	x := &transcript.Exporter{Env: env}
	out, err := x.Prepare(t.Context(), picoclaw.Format(), script, nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := values(t, out.Files[0].Data)
	user, assistant := lines[0].(map[string]any), lines[1].(map[string]any)
	if user["content"] != "see\n\nthis" || !cmp.Equal(user["media"], []any{"data:image/png;base64,aGk="}) {
		t.Errorf("a message with a picture is %v", user)
	}
	if assistant["content"] != "well" {
		t.Errorf("a message with an unknown block is %v", assistant)
	}
	if len(out.Losses) != 1 || out.Losses[0].EntryID != "b" {
		t.Errorf("losses are %v", out.Losses)
	}
	dir := t.TempDir()
	for _, f := range out.Files {
		picoclawWrite(t, filepath.Join(dir, f.Path), string(f.Data))
	}
	got := transcripttest.Collect(t, picoclaw.Format(), transcripttest.Open(t, filepath.Join(dir, out.Files[0].Path))).Conversations[0]
	said := got.Records[0].Entry.Message.Content
	if len(said) != 2 || said[1].Image == nil || !cmp.Equal(said[1].Image.Source, picture.Image.Source) {
		t.Errorf("the picture is read back as %+v", said)
	}
}

func TestPicoClawBadFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	picoclawWrite(t, filepath.Join(dir, "x.jsonl"), `{"role":"user","content":"hi"}`)
	if picoclaw.Format().Detect(transcripttest.Open(t, filepath.Join(dir, "x.jsonl"))) {
		t.Error("lines without a meta file are taken for a session")
	}
	picoclawWrite(t, filepath.Join(dir, "x.meta.json"), `{"key":`)
	for _, f := range []*transcript.File{
		transcripttest.Open(t, filepath.Join(dir, "x.jsonl")), transcript.FileOf("y.json", []byte(`{"key":"k","messages":[`)),
	} {
		if _, err := transcript.Collect(t.Context(), picoclaw.Format(), f); !errors.Is(err, session.ErrCorrupt) {
			t.Errorf("%s gives %v, want ErrCorrupt", f.Path, err)
		}
	}
	for name, text := range map[string]string{"a.meta.json": `{"key":"k","messages":[]}`, "b.json": `{"messages":[],"key":"k"}`, "c.json": `{ }`, "d.json": `[]`} {
		if picoclaw.Format().Detect(transcript.FileOf(name, []byte(text))) {
			t.Errorf("%s is taken for a session", name)
		}
	}
	place := picoclaw.Format().Places(env)[0]
	if !place.Match("a.json") || !place.Match("a.jsonl") || place.Match("a.meta.json") || place.Match("d/a.json") {
		t.Error("other files than sessions are looked at")
	}
	odd := transcript.FileOf("k.json", []byte(`{"key":"","messages":[{"role":7,"content":[]},{"role":"assistant","tool_calls":[{"id":"1"}]}],"created":"2026-01-01T00:00:00Z"}`))
	got := transcripttest.Collect(t, picoclaw.Format(), odd).Conversations[0]
	if got.ID != "k" || len(got.Records) != 2 {
		t.Errorf("odd messages become %+v", got)
	}
}

func FuzzPicoClawRead(f *testing.F) { transcripttest.FuzzReader(f, picoclaw.Format(), document) }
