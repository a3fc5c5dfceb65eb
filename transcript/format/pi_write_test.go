package format_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/pi"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

func environment() transcript.Env {
	return transcript.Env{Home: "/home/ada", Getenv: func(string) string { return "" }}
}

func piWrite(t *testing.T, s *transcript.Script) *transcript.Output {
	t.Helper()
	out, err := pi.Format().Write(t.Context(), s, environment())
	if err != nil {
		t.Fatal(err)
	}
	piCheckRules(t, out.Files[0].Data)
	return out
}

// piLines decodes a file, numbers as they are written.
func piLines(t *testing.T, data string) []any {
	t.Helper()
	var list []any
	for line := range strings.Lines(data) {
		dec := json.NewDecoder(strings.NewReader(line))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		list = append(list, v)
	}
	return list
}

// piCheckRules holds a file to what pi insists on when it opens one (its session
// manager, version 1.5): a header first, with id, time and working directory; on
// every entry an id of its own, a parent that is an earlier entry or null, and an
// ISO time; messages with the members that pi reads without looking whether they
// are there; references to entries that exist.
func piCheckRules(t *testing.T, data []byte) {
	t.Helper()
	all := piLines(t, string(data))
	header, _ := all[0].(map[string]any)
	if header["type"] != "session" || header["version"] != json.Number("3") || header["id"] == "" || header["cwd"] == nil {
		t.Errorf("the header is %v", header)
	}
	seen := map[any]bool{}
	for _, line := range all[1:] {
		e, _ := line.(map[string]any)
		if id, ok := e["id"].(string); !ok || id == "" || seen[id] {
			t.Errorf("the id of %v is missing or not its own", e)
		}
		parent, ok := e["parentId"]
		if !ok || parent != nil && !seen[parent] {
			t.Errorf("the parent of %v is no earlier entry", e)
		}
		seen[e["id"]] = true
		if at, _ := e["timestamp"].(string); len(at) < len("2006-01-02T15:04:05Z") || !strings.HasSuffix(at, "Z") {
			t.Errorf("the time of %v is not ISO", e)
		}
		if kept, ok := e["firstKeptEntryId"]; ok && kept != "" && !seen[kept] {
			t.Errorf("%v keeps an entry that is not there", e)
		}
		if m, ok := e["message"].(map[string]any); ok {
			checkMessage(t, m)
		}
	}
}

func checkMessage(t *testing.T, m map[string]any) {
	t.Helper()
	need := map[string][]string{
		"assistant":     {"content", "api", "provider", "model", "usage", "stopReason", "timestamp"},
		"toolResult":    {"toolCallId", "toolName", "content", "isError", "timestamp"},
		"bashExecution": {"command", "output", "cancelled", "truncated"},
		"user":          {"content", "timestamp"},
	}
	for _, name := range need[m["role"].(string)] {
		if _, ok := m[name]; !ok {
			t.Errorf("%v has no %s", m, name)
		}
	}
	if reason, ok := m["stopReason"].(string); ok {
		if !slices.Contains([]string{"pending", "stop", "length", "toolUse", "error", "aborted", "deferred"}, reason) {
			t.Errorf("pi does not know the stop reason %s", reason)
		}
	}
}

// TestPiRoundTrip: what was read is written again with equal JSON values, whatever
// pi defines and whatever it does not.
func TestPiRoundTrip(t *testing.T) {
	t.Parallel()
	c := piCollect(t, "testdata/pi/v3.jsonl")
	s, err := transcripttest.Script(t.Context(), c.Conversations[0])
	if err != nil {
		t.Fatal(err)
	}
	out := piWrite(t, s)
	original, err := os.ReadFile("testdata/pi/v3.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(piLines(t, string(original)), piLines(t, string(out.Files[0].Data))); diff != "" {
		t.Errorf("the file differs (-read +written):\n%s", diff)
	}
	if want := "sessions/--home-ada-garden--/2026-03-01T09-00-00-000Z_0198c0de-0000-7000-8000-000000000001.jsonl"; out.Files[0].Path != want {
		t.Errorf("the path is %s, want %s", out.Files[0].Path, want)
	}
	if out.Base != filepath.Join("/home/ada", ".pi/agent") || out.Resume != "pi --session 0198c0de-0000-7000-8000-000000000001" || len(out.Losses) != 0 {
		t.Errorf("the output is %+v", out)
	}
}

// TestPiRoundTripOld: old versions are written as version 3, as pi itself would on
// opening them, and read back the same.
func TestPiRoundTripOld(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"v1", "v2"} {
		t.Run(name, func(t *testing.T) {
			c := piCollect(t, "testdata/pi/"+name+".jsonl")
			s, err := transcripttest.Script(t.Context(), c.Conversations[0])
			if err != nil {
				t.Fatal(err)
			}
			out := piWrite(t, s)
			if strings.Contains(string(out.Files[0].Data), "firstKeptEntryIndex") || strings.Contains(string(out.Files[0].Data), "hookMessage") {
				t.Errorf("what only old versions have is written:\n%s", out.Files[0].Data)
			}
			again, err := transcript.Collect(t.Context(), pi.Format(), transcript.FileOf("x", out.Files[0].Data))
			if err != nil {
				t.Fatal(err)
			}
			compareEntries(t, s, again)
		})
	}
}

// compareEntries compares what was to be written with what is read back, apart
// from residues.
func compareEntries(t *testing.T, s *transcript.Script, again *transcript.Collected) {
	t.Helper()
	plain := func(entries []session.Entry) (list []string) {
		for _, e := range entries {
			e.Extra = nil
			text, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, string(text))
		}
		return list
	}
	if diff := cmp.Diff(plain(s.All), plain(transcripttest.Entries(again.Conversations[0]))); diff != "" {
		t.Errorf("what is read back differs (-written +read):\n%s", diff)
	}
}

// entry returns an entry that follows another one.
func entry(id, parent string, e session.Entry) session.Entry {
	e.ID, e.Timestamp = id, time.Date(2026, 6, 1, 10, 0, len(id), 0, time.UTC)
	if parent != "" {
		e.ParentID = &parent
	}
	return e
}

func message(role session.MessageRole, blocks ...session.Content) session.Entry {
	return session.Message(role, blocks...)
}

// TestPiWriteCoppice writes what pi has no place for, and checks that it is said.
func TestPiWriteCoppice(t *testing.T) {
	t.Parallel()
	audio := session.Content{Type: session.ContentTypeAudio, Audio: &session.AudioContent{Source: &session.Source{Type: "base64", MediaType: "audio/wav", Data: "AAAA"}}}
	link := session.Content{Type: session.ContentTypeImage, Image: &session.ImageContent{Source: &session.Source{Type: "url", Data: "https://example.org/x.png"}}}
	redacted := session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Redacted: "opaque"}}
	file := session.Content{Type: session.ContentTypeFile, File: &session.FileContent{Name: "a.pdf"}}
	entries := []session.Entry{
		entry("s", "", message(session.RoleSystem, session.Text("be"), session.Text("brief"))),
		entry("u1", "s", message(session.RoleUser, session.Text("hi"), audio, link, file)),
		entry("a1", "u1", session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
			Role: "assistant", Model: "gpt-5", Provider: "openai", Content: []session.Content{session.ToolUse("c1", "ls", nil), session.ToolUse("c2", "cat", map[string]any{"f": "x"})},
			Usage: &session.Usage{Input: 1, Output: 2, Reasoning: 1, CostMicroUSD: 1_250_000},
		}}),
		entry("t1", "a1", message(session.RoleTool, session.ToolResult("c1", "x", false), session.ToolResult("c2", "", true), session.Text("and thanks"))),
		entry("a2", "t1", session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{Role: "assistant", Content: []session.Content{redacted, session.Text("done")}, StopReason: "odd"}}),
		entry("k1", "a2", session.Entry{Type: session.TypeCompaction, Compaction: &session.CompactionEntry{Summary: "S", FirstKeptEntryID: "a2"}}),
		entry("r1", "k1", session.Entry{Type: session.TypeRevert, Revert: &session.RevertEntry{TargetID: "k1"}}),
		entry("b1", "r1", message(session.RoleBashExecution, session.Text("$ ls"), link, session.Text("x\n"))),
		entry("l1", "u1", session.Entry{Type: session.TypeLeaf, Leaf: &session.LeafEntry{FromID: "b1"}}),
		entry("a3", "l1", message(session.RoleAssistant, session.Text("another answer"))),
		entry("m1", "a3", session.Entry{Type: session.TypeMerge, Merge: &session.MergeEntry{FromID: "a2", Summary: "what the other did"}}),
		entry("m2", "m1", session.Entry{Type: session.TypeMerge, Merge: &session.MergeEntry{FromID: "a2", EntryIDs: []string{"a2"}}}),
		entry("x1", "m2", session.Entry{Type: "hologram", Extra: session.Fields{{Name: "beams", Value: json.RawMessage("3")}}}),
		entry("l2", "b1", session.Entry{Type: session.TypeLeaf, Leaf: &session.LeafEntry{FromID: "x1"}}),
	}
	s, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "not a pi id", Version: 1}, entries)
	if err != nil {
		t.Fatal(err)
	}
	out := piWrite(t, s)
	again, err := transcript.Collect(t.Context(), pi.Format(), transcript.FileOf("x", out.Files[0].Data))
	if err != nil {
		t.Fatal(err)
	}
	var found, losses []string
	for i := range again.Conversations[0].Records {
		found = append(found, transcripttest.Line(&again.Conversations[0].Records[i]))
	}
	for _, l := range out.Losses {
		losses = append(losses, l.EntryID+" "+l.What)
	}
	leaf := again.Conversations[0].Records[len(found)-1].ID
	want := []string{
		`s <- root 2026-06-01T10:00:01Z system: "be\nbrief"`,
		`u1 <- s 2026-06-01T10:00:02Z user: "hi" "[audio audio/wav]" "[image https://example.org/x.png]" "[file]"`,
		`a1 <- u1 2026-06-01T10:00:02Z assistant: (openai/gpt-5) [call c1 ls {}] [call c2 cat {"f":"x"}] stop=tool_use usage=1+0r+0w>2(1)$1250000`,
		`t1 <- a1 2026-06-01T10:00:02Z tool: [result c1 "x"]`,
		`t1-2 <- t1 2026-06-01T10:00:02Z tool: [error c2 ""]`,
		`t1-3 <- t1-2 2026-06-01T10:00:02Z user: "and thanks"`,
		`a2 <- t1-3 2026-06-01T10:00:02Z assistant: [thinking "" redacted=opaque] "done" stop=end_turn usage=0+0r+0w>0(0)$0`,
		`k1 <- a2 2026-06-01T10:00:02Z custom {"custom_type":"pi.custom.coppice.compaction","data":{"compaction":{"first_kept_entry_id":"a2","summary":"S","tokens_before":0}}}`,
		`r1 <- k1 2026-06-01T10:00:02Z custom {"custom_type":"pi.custom.coppice.revert","data":{"revert":{"target_id":"k1"}}}`,
		`b1 <- r1 2026-06-01T10:00:02Z bashExecution: "$ ls" "x\n"`,
		`a3 <- u1 2026-06-01T10:00:02Z assistant: "another answer" stop=end_turn usage=0+0r+0w>0(0)$0`,
		`m1 <- a3 2026-06-01T10:00:02Z custom: "what the other did"`,
		`m2 <- m1 2026-06-01T10:00:02Z custom {"custom_type":"pi.custom.coppice.merge","data":{"merge":{"entry_ids":["a2"],"from_id":"a2"}}}`,
		`x1 <- m2 2026-06-01T10:00:02Z custom {"custom_type":"pi.custom.coppice.hologram","data":{"beams":3}}`,
		leaf + ` <- b1 2026-06-01T10:00:02Z custom {"custom_type":"pi.custom.coppice.leaf","data":null}`,
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("what is written differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"u1 audio", "u1 image", "u1 file", "k1 compaction", "r1 revert", "b1 image", "m1 merge", "m2 merge"}, losses); diff != "" {
		t.Errorf("losses differ (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(out.Files[0].Path, "sessions/--home-ada--/2026-11-15T12-00-00-000Z_") || strings.Contains(out.Resume, "not a pi id") {
		t.Errorf("the output is %s, %s", out.Files[0].Path, out.Resume)
	}
}

// TestPiWriteForeignBlocks: pi fails on blocks that it does not know, and on results of
// calls that are not there. They are left out of other programs' sessions, and announced.
func TestPiWriteForeignBlocks(t *testing.T) {
	t.Parallel()
	raw := func(kind string) session.Content {
		return session.Content{Type: session.ContentType(kind), Raw: json.RawMessage(`{"type":"` + kind + `"}`)}
	}
	found := session.ToolResult("c1", "found", false)
	found.ToolResult.Parts = []session.Content{session.Text("found"), raw("tool_reference")}
	entries := []session.Entry{
		entry("t0", "", message(session.RoleTool, session.ToolResult("gone", "alone", false))),
		entry("u1", "t0", message(session.RoleUser, session.Text("hi"))),
		entry("w1", "u1", message(session.RoleAssistant, raw("web_search_call"))),
		entry("a1", "w1", message(session.RoleAssistant, session.Text("so"), raw("grounding"), session.ToolUse("c1", "ls", map[string]any{"x": "y"}))),
		entry("t1", "a1", message(session.RoleTool, found, session.ToolResult("gone", "alone", false))),
		entry("a2", "t1", message(session.RoleAssistant, session.Text("done"))),
	}
	s, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "x", Version: 1}, entries)
	if err != nil {
		t.Fatal(err)
	}
	out, err := (&transcript.Exporter{}).Prepare(t.Context(), pi.Format(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, not := range []string{"web_search_call", "grounding", "tool_reference", "alone"} {
		if strings.Contains(string(out.Files[0].Data), not) {
			t.Errorf("%s is in\n%s", not, out.Files[0].Data)
		}
		if not != "alone" && !slices.ContainsFunc(out.Losses, func(l transcript.Loss) bool { return l.What == not }) {
			t.Errorf("%s is not announced: %v", not, out.Losses)
		}
	}
	if n := len(slices.DeleteFunc(out.Losses, func(l transcript.Loss) bool { return l.What != "tool result" })); n != 2 {
		t.Errorf("%d results are announced", n)
	}
}

// TestPiWritePathWithoutLines: if pi can have nothing of the path, it goes on from the
// beginning, and not from another branch.
func TestPiWritePathWithoutLines(t *testing.T) {
	t.Parallel()
	odd := session.Content{Type: "canvas", Raw: json.RawMessage(`{"type":"canvas"}`)}
	entries := []session.Entry{
		entry("u1", "", message(session.RoleUser, odd)),
		entry("a1", "u1", message(session.RoleAssistant, session.ToolUse("c1", "ls", nil))),
		entry("u2", "u1", message(session.RoleUser, odd)),
	}
	s, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "x", Version: 1}, entries)
	if err != nil {
		t.Fatal(err)
	}
	out, err := (&transcript.Exporter{}).Prepare(t.Context(), pi.Format(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := transcripttest.Collect(t, pi.Format(), transcript.FileOf("x.jsonl", out.Files[0].Data)).Conversations[0]
	if last := c.Records[len(c.Records)-1]; len(c.Records) != 2 || last.Parent != transcript.Root {
		t.Errorf("it ends with %s after %q in\n%s", last.ID, last.Parent, out.Files[0].Data)
	}
}

func TestPiWriteProviders(t *testing.T) {
	t.Parallel()
	for provider, api := range map[string]string{
		"anthropic": "anthropic-messages", "google-vertex": "google-generative-ai", "openai": "openai-responses", "groq": "openai-completions",
	} {
		e := entry("a", "", message(session.RoleAssistant, session.Text("x")))
		e.Message.Provider, e.Message.StopReason = provider, "error"
		s, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "x", Version: 1}, []session.Entry{e})
		if err != nil {
			t.Fatal(err)
		}
		if data := string(piWrite(t, s).Files[0].Data); !strings.Contains(data, `"api":"`+api+`"`) || !strings.Contains(data, `"stopReason":"error"`) {
			t.Errorf("with %s is written %s", provider, data)
		}
	}
}
