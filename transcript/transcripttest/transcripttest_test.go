package transcripttest_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

func found() *transcript.Collected {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	source := &session.Source{Type: "base64", MediaType: "image/png", Data: "AAAA"}
	message := func(m session.MessageEntry) session.Entry {
		return session.Entry{Type: session.TypeMessage, Timestamp: at, Message: &m}
	}
	return &transcript.Collected{
		Conversations: []*transcript.CollectedConversation{{
			Conversation: transcript.Conversation{ID: "c", Title: "T", CWD: "/p", Tags: []string{"a", "b"}, Extra: map[string]any{"x": 1}},
			Records: []transcript.Record{
				{ID: "u", Parent: transcript.Root, Aliases: []string{"alias"}, Entry: message(session.MessageEntry{
					Role: "user", Metadata: map[string]any{"k": "v"},
					Content: []session.Content{
						session.Text("hi"),
						{Type: "image", Image: &session.ImageContent{Source: source}},
						{Type: "audio", Audio: &session.AudioContent{}},
						{Type: "file", File: &session.FileContent{Name: "f", Source: source}},
						{Type: "odd", Raw: json.RawMessage(`{"type":"odd"}`)},
					},
				})},
				{ID: "a", Parent: "alias", Entry: message(session.MessageEntry{
					Role: "assistant", Model: "m", StopReason: "end_turn", ResponseID: "r",
					Usage: &session.Usage{Input: 1, Output: 2},
					Content: []session.Content{
						{Type: "thinking", Thinking: &session.ThinkingContent{Content: "hm", Signature: "s"}},
						session.ToolUse("t", "ls", nil),
					},
				})},
				{Entry: message(session.MessageEntry{Role: "tool", Content: []session.Content{
					{Type: "tool_result", ToolResult: &session.ToolResultContent{ToolUseID: "t", IsError: true, Parts: []session.Content{session.Text("no")}}},
				}})},
				{ID: "m", Entry: session.Entry{Type: session.TypeModelChange, ModelChange: &session.ModelChangeEntry{ModelID: "x"}}},
			},
		}},
		Counts:   map[transcript.Became]int{{What: "line", Became: "message"}: 3, {What: "a", Became: transcript.OnlyKept}: 1},
		Problems: []transcript.Problem{{Line: 7, Reason: "bad"}},
	}
}

func TestOutline(t *testing.T) {
	want := `conversation c
 title: T
 cwd: /p
 tags: a b
 extra: {"x":1}
  u <- root (alias) 2026-01-02T03:04:05Z user: "hi" [image base64 image/png AAAA] [audio] [file f base64 image/png AAAA] [raw {"type":"odd"}] metadata={"k":"v"}
  a <- alias 2026-01-02T03:04:05Z assistant: (m) [thinking "hm" signature=s] [call t ls null] stop=end_turn response=r usage=1+0r+0w>2(0)$0
   2026-01-02T03:04:05Z tool: [error t "" "no"]
  m model_change {"provider":"","model_id":"x"}
count: 1 a -> kept as bytes
count: 3 line -> message
problem: line 7: bad
`
	if diff := cmp.Diff(want, transcripttest.Outline(found())); diff != "" {
		t.Errorf("the outline differs (-want +got):\n%s", diff)
	}
}

func TestOutlineOfWhatCannotBeWritten(t *testing.T) {
	c := found()
	c.Conversations[0].Extra["bad"] = math.Inf(1)
	c.Conversations[0].Records[3].Entry = session.Entry{Type: "odd", Extra: session.Fields{{Name: "x", Value: json.RawMessage("{")}}}
	if got := transcripttest.Outline(c); strings.Count(got, "unsupported value") != 1 || !strings.Contains(got, "is not JSON") {
		t.Errorf("the outline does not say what is wrong:\n%s", got)
	}
}

func TestScript(t *testing.T) {
	s, err := transcripttest.Script(t.Context(), found().Conversations[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(s.All) != 4 || len(s.Path) != 4 || s.Leaf != "m" || s.NativeID != "c" || s.Name != "T" || s.Context.Model != "x" {
		t.Errorf("the script is %+v", s)
	}
	if !s.Header.CreatedAt.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) || !s.Now.Equal(transcripttest.Now()) {
		t.Errorf("the times are %v and %v", s.Header.CreatedAt, s.Now)
	}
	bad := []session.Entry{{Type: "odd", ID: "x", Extra: session.Fields{{Name: "x", Value: json.RawMessage("{")}}}}
	if _, err := transcripttest.ScriptOf(t.Context(), s.Header, bad); err == nil {
		t.Error("an entry that cannot be written is written")
	}
	if _, err := transcripttest.Script(t.Context(), &transcript.CollectedConversation{Records: []transcript.Record{{Entry: bad[0]}}}); err == nil {
		t.Error("a record that cannot be written is written")
	}
}

func TestFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jsonl")
	t.Setenv("COPPICE_UPDATE", "1")
	transcripttest.Golden(t, path, "one\n")
	t.Setenv("COPPICE_UPDATE", "")
	transcripttest.Golden(t, path, "one\n")
	format := &transcript.Format{
		Detect: func(f *transcript.File) bool { return string(f.Head()) == "one\n" },
		Read:   func(context.Context, *transcript.File, transcript.Sink) error { return nil },
	}
	if c := transcripttest.Collect(t, format, transcripttest.Open(t, path)); len(c.Conversations) != 0 {
		t.Errorf("nothing was read, and %v found", c)
	}
	t.Setenv("COPPICE_SAMPLES", "")
	if paths := transcripttest.Samples(t, "*"); paths != nil {
		t.Errorf("without samples there are %q", paths)
	}
	t.Setenv("COPPICE_SAMPLES", filepath.Dir(path))
	if paths := transcripttest.Samples(t, "*.jsonl"); len(paths) != 1 {
		t.Errorf("the samples are %q", paths)
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.jsonl")
	for name, text := range map[string]string{path: "one", filepath.Join(dir, "x.txt"): transcripttest.Outline(found())} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("COPPICE_UPDATE", "")
	format := &transcript.Format{
		Detect: func(*transcript.File) bool { return true },
		Read: func(_ context.Context, _ *transcript.File, to transcript.Sink) error {
			c := found()
			for _, conv := range c.Conversations {
				if err := to.Begin(conv.Conversation); err != nil {
					return err
				}
				for _, r := range conv.Records {
					if err := to.Add(r); err != nil {
						return err
					}
				}
			}
			for k, n := range c.Counts {
				to.Count(k.What, k.Became, n)
			}
			to.Problem(c.Problems[0])
			return nil
		},
	}
	transcripttest.ReadFixtures(t, format, filepath.Join(dir, "*"))
	c := transcripttest.Collect(t, format, transcripttest.Open(t, path))
	if got := transcripttest.Count(c); got != (transcripttest.Counts{Messages: 3, Calls: 1, Results: 1}) {
		t.Errorf("the counts are %+v", got)
	}
}

func FuzzNothing(f *testing.F) {
	path := filepath.Join(f.TempDir(), "x.jsonl")
	if err := os.WriteFile(path, []byte("one"), 0o600); err != nil {
		f.Fatal(err)
	}
	format := &transcript.Format{Read: func(_ context.Context, _ *transcript.File, to transcript.Sink) error {
		if err := to.Begin(found().Conversations[0].Conversation); err != nil {
			return err
		}
		return to.Add(found().Conversations[0].Records[0])
	}}
	transcripttest.FuzzReader(f, format, path)
}
