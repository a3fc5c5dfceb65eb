package format_test

import (
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/kimi"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const kimiFixtures = "testdata/kimi/*/*/*/*.jsonl"

// TestKimiStandard reads a log with all that is done to a context: messages, the steps
// of the model's loop, an undone turn, compactions, a new beginning.
func TestKimiStandard(t *testing.T) {
	transcripttest.Standard(t, transcripttest.Suite{
		Format: kimi.Format(), Fixtures: []string{kimiFixtures}, Sessions: 1,
		Place: ".kimi-code/sessions", Match: "wd/session_x/agents/main/wire.jsonl", Pass: "wd/session_x/state.json",
		Detected: map[string]bool{
			`{"type":"metadata","protocol_version":"1.4"}`: true,
			`{"type":"metadata"}`:                          false,
			``:                                             false,
		},
	})
}

func FuzzKimiRead(f *testing.F) { transcripttest.FuzzReader(f, kimi.Format(), kimiFixtures) }

func TestKimiReadAgents(t *testing.T) {
	header := []byte(`{"type":"metadata","protocol_version":"1.4"}`)
	sub := transcripttest.Collect(t, kimi.Format(), transcript.FileOf("/w/session_8f00/agents/agent-1/wire.jsonl", header)).Conversations[0]
	if sub.ID != "8f00:agent-1" || sub.Parent != "8f00" || sub.Relation != "subagent" {
		t.Errorf("a subagent is %+v", sub)
	}
	other := transcripttest.Collect(t, kimi.Format(), transcript.FileOf("/x.jsonl", header)).Conversations[0]
	if other.ID != transcript.HashID("kimi", "/x.jsonl") {
		t.Errorf("a file elsewhere is %+v", other)
	}
}
