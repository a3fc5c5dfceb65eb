package format_test

import (
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/qwen"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const qwenFixtures = "testdata/qwen/*.jsonl"

// TestQwenStandard reads a chat with all that is recorded, one that was branched off it,
// and that of a subagent.
func TestQwenStandard(t *testing.T) {
	transcripttest.Standard(t, transcripttest.Suite{
		Format: qwen.Format(), Fixtures: []string{qwenFixtures}, Sessions: 2,
		Place: ".qwen/projects", Match: "-p/chats/x.jsonl", Pass: "-p/other/x.jsonl",
		Detected: map[string]bool{
			`{"uuid":"u","sessionId":"s","type":"user","message":{"role":"user","parts":[]}}`:     true,
			`{"uuid":"u","sessionId":"s","type":"system","systemPayload":{}}`:                     true,
			`{"uuid":"u","sessionId":"s","type":"user","message":{"role":"user","content":"hi"}}`: false,
			`{"sessionId":"s","type":"user","message":{"parts":[]}}`:                              false,
			``: false,
		},
	})
}

func FuzzQwenRead(f *testing.F) { transcripttest.FuzzReader(f, qwen.Format(), qwenFixtures) }

func TestQwenReadWithoutID(t *testing.T) {
	line := `{"uuid":"u","type":"user","message":{"role":"user","parts":[{"text":"hi"}]}}`
	c, err := transcript.Collect(t.Context(), qwen.Format(), transcript.FileOf("/x.jsonl", []byte(line)))
	if err != nil || len(c.Conversations) != 1 || c.Conversations[0].ID != transcript.HashID("qwen", "/x.jsonl") {
		t.Errorf("found %+v, %v", c, err)
	}
}
