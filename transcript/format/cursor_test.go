package format_test

import (
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/cursor"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// TestCursorStandard reads calls without ids and results that name none, notes in the
// user's name, blocks of other spellings, and a subagent's transcript.
func TestCursorStandard(t *testing.T) {
	transcripttest.Standard(t, transcripttest.Suite{
		Format: cursor.Format(), Fixtures: []string{"testdata/cursor/agent-transcripts/*.jsonl", "testdata/cursor/agent-transcripts/*/*/*.jsonl"}, Sessions: 2,
		Place: ".cursor/projects", Match: "p/agent-transcripts/x/x.jsonl", Pass: "p/other/x.jsonl",
		Detected: map[string]bool{
			`{"role":"user","message":{"content":[]}}`:                          true,
			`{"role":"user","content":"x"}`:                                     false,
			`{"type":"user","uuid":"u","role":"user","message":{"content":[]}}`: false,
			``: false,
		},
		Samples: []string{"other-agents/cursor/*.jsonl", "other-agents/cursor/subagent/*.jsonl", "other-agents/cursor/subagent/subagents/*.jsonl"}, Count: cursorCount,
	})
}

// cursorCount counts what is in a file by looking at the JSON alone.
func cursorCount(_ *testing.T, _ string, data []byte) transcripttest.Counts {
	text := strings.ReplaceAll(string(data), "tool-result", "tool_result")
	return transcripttest.Counts{
		Messages: strings.Count(text, `{"role":`),
		Calls:    strings.Count(text, `"type":"tool_use"`) + strings.Count(text, `"type":"tool_call"`),
		Results:  strings.Count(text, `"type":"tool_result"`),
	}
}

func FuzzCursorRead(f *testing.F) {
	transcripttest.FuzzReader(f, cursor.Format(), "testdata/cursor/agent-transcripts/*.jsonl")
}

// TestCursorReadElsewhere: files of one name that are not where Cursor puts them are
// different conversations.
func TestCursorReadElsewhere(t *testing.T) {
	line := []byte(`{"role":"user","message":{"content":[]}}`)
	a := transcripttest.Collect(t, cursor.Format(), transcript.FileOf("/a/x.jsonl", line)).Conversations[0].ID
	b := transcripttest.Collect(t, cursor.Format(), transcript.FileOf("/b/x.jsonl", line)).Conversations[0].ID
	if a == b || a == "x" {
		t.Errorf("they are %q and %q", a, b)
	}
}
