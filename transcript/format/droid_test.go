package format_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/droid"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const droidFixtures = "testdata/droid/*.jsonl"

// TestDroidStandard reads a session file (reminders in the user's name, results beside
// words, lines that are no messages, a compaction) and a stream.
func TestDroidStandard(t *testing.T) {
	transcripttest.Standard(t, transcripttest.Suite{
		Format: droid.Format(), Fixtures: []string{droidFixtures}, Sessions: 2,
		Place: ".factory/sessions", Match: "-p/x.jsonl", Pass: "-p/x.settings.json",
		Detected: map[string]bool{
			`{"type":"session_start","id":"x"}`:                                           true,
			`{"type":"message","session_id":"s","timestamp":1,"role":"user","text":"hi"}`: true,
			`{"type":"system","sessionId":"s","timestamp":1,"cwd":"/p"}`:                  true,
			`{"type":"system","sessionId":"s","timestamp":1,"cwd":"/p","uuid":"u"}`:       false,
			`{"type":"message","id":"x","timestamp":"t","message":{"role":"user"}}`:       false,
			`{"type":"user","sessionId":"s","timestamp":1,"cwd":"/p"}`:                    false,
			``: false,
		},
		Samples: []string{"other-agents/droid/*.jsonl"}, Count: droidCount,
	})
}

// droidCount counts what is in a file by looking at the JSON alone.
func droidCount(_ *testing.T, _ string, data []byte) transcripttest.Counts {
	var want transcripttest.Counts
	for line := range strings.Lines(string(data)) {
		var v struct {
			Type    string
			Message struct{ Content json.RawMessage }
		}
		_ = json.Unmarshal([]byte(line), &v)
		switch v.Type {
		case "message", "completion":
			want.Messages++
		case "tool_call":
			want.Messages++
			want.Calls++
		case "tool_result":
			want.Messages++
			want.Results++
		}
		want.Calls += strings.Count(string(v.Message.Content), `"type":"tool_use"`)
		want.Results += strings.Count(string(v.Message.Content), `"type":"tool_result"`)
	}
	return want
}

func FuzzDroidRead(f *testing.F) { transcripttest.FuzzReader(f, droid.Format(), droidFixtures) }

func TestDroidReadWithoutStart(t *testing.T) {
	line := `{"type":"message","id":"m1","message":{"role":"user","content":"hi"}}`
	c, err := transcript.Collect(t.Context(), droid.Format(), transcript.FileOf("/x.jsonl", []byte(line)))
	if err != nil || len(c.Conversations) != 1 || c.Conversations[0].ID != transcript.HashID("droid", "/x.jsonl") {
		t.Errorf("found %+v, %v", c, err)
	}
}
