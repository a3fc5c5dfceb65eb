package format_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/copilot"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const copilotFixtures = "testdata/copilot/*/*.jsonl"

// TestCopilotStandard reads a session with everything that Copilot logs: a call that starts
// another agent, whose events stand between the session's; models, a compaction,
// a resumption, an id that is there twice, a parent that is not.
func TestCopilotStandard(t *testing.T) {
	transcripttest.Standard(t, transcripttest.Suite{
		Format: copilot.Format(), Fixtures: []string{copilotFixtures}, Sessions: 3,
		Place: ".copilot/session-state", Match: "id/events.jsonl", Pass: "id/other.jsonl",
		Detected: map[string]bool{
			`{"type":"session.start","data":{},"id":"e","timestamp":"t"}`: true,
			`{"type":"thread.started","thread_id":"x"}`:                   false,
			`{"type":"message","data":{},"id":"e","timestamp":"t"}`:       false,
			``: false,
		},
		Samples: []string{"other-agents/copilot/*.jsonl", "other-agents/copilot/*/*/*.jsonl"}, Count: copilotCount,
	})
}

// copilotCount counts what is in a file by looking at the JSON alone.
func copilotCount(t *testing.T, _ string, data []byte) (n transcripttest.Counts) {
	for line := range strings.Lines(string(data)) {
		var v struct {
			Type string
			Data struct{ ToolRequests []any }
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		switch v.Type {
		case "tool.execution_complete":
			n.Results++
			n.Messages++
		case "user.message", "assistant.message", "assistant.reasoning", "system.message", "system.notification":
			n.Messages++
		}
		n.Calls += len(v.Data.ToolRequests)
	}
	return n
}

func FuzzCopilotRead(f *testing.F) { transcripttest.FuzzReader(f, copilot.Format(), copilotFixtures) }

func TestCopilotReadWithoutStart(t *testing.T) {
	line := `{"type":"user.message","data":{"content":"hi"},"id":"e1","timestamp":"2026-03-26T18:00:03.000Z"}`
	for path, want := range map[string]string{"/x/the-id/events.jsonl": "the-id", "/x/y.jsonl": transcript.HashID("copilot-cli", "/x/y.jsonl")} {
		c := transcripttest.Collect(t, copilot.Format(), transcript.FileOf(path, []byte(line)))
		if got := c.Conversations[0].ID; got != want {
			t.Errorf("the session in %s is %q, want %q", path, got, want)
		}
	}
}

// TestCopilotPlaceOfOldSessions: old versions put a session into one file.
func TestCopilotPlaceOfOldSessions(t *testing.T) {
	place := copilot.Format().Places(transcript.Env{Home: t.TempDir(), Getenv: func(string) string { return "" }})[0]
	if !place.Match("id.jsonl") {
		t.Error("a session in one file is not found")
	}
}
