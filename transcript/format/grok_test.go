package format_test

import (
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/grok"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const grokFixtures = "testdata/grok/*/*/*.jsonl"

func TestGrokStandard(t *testing.T) {
	transcripttest.Standard(t, transcripttest.Suite{
		Format: grok.Format(), Fixtures: []string{grokFixtures}, Sessions: 1,
		Place: ".grok/sessions", Match: "%2Fp/x/chat_history.jsonl", Pass: "%2Fp/x/updates.jsonl",
	})
}

func FuzzGrokRead(f *testing.F) { transcripttest.FuzzReader(f, grok.Format(), grokFixtures) }

func TestGrokReadWithoutSummary(t *testing.T) {
	line := []byte(`{"type":"user","content":"hi"}`)
	c := transcripttest.Collect(t, grok.Format(), transcript.FileOf("/x/%2Fhome%2Fada/the-id/chat_history.jsonl", line)).Conversations[0]
	if c.ID != "the-id" || c.CWD != "/home/ada" {
		t.Errorf("the path says %+v", c)
	}
	c = transcripttest.Collect(t, grok.Format(), transcript.FileOf("chat_history.jsonl", line)).Conversations[0]
	if c.ID != transcript.HashID("grok", "chat_history.jsonl") {
		t.Errorf("without a path it is %+v", c)
	}
}

func TestGrokDetect(t *testing.T) {
	line := []byte(`{"type":"user","content":"hi"}`)
	if grok.Format().Detect(transcript.FileOf("other.jsonl", line)) || grok.Format().Detect(transcript.FileOf("chat_history.jsonl", nil)) {
		t.Error("another file is detected")
	}
}
