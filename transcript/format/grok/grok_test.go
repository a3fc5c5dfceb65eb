package grok_test

import (
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/grok"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const fixtures = "testdata/*/*/*.jsonl"

func TestRead(t *testing.T) { transcripttest.ReadFixtures(t, grok.Format(), fixtures) }

func FuzzRead(f *testing.F) { transcripttest.FuzzReader(f, grok.Format(), fixtures) }

func TestReadWithoutSummary(t *testing.T) {
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

func TestDetect(t *testing.T) {
	line := []byte(`{"type":"user","content":"hi"}`)
	if grok.Format().Detect(transcript.FileOf("other.jsonl", line)) || grok.Format().Detect(transcript.FileOf("chat_history.jsonl", nil)) {
		t.Error("another file is detected")
	}
}

func TestPlaces(t *testing.T) {
	home := t.TempDir()
	place := grok.Format().Places(transcript.Env{Home: home})[0]
	if place.Dir != filepath.Join(home, ".grok", "sessions") || !place.Match("%2Fp/x/chat_history.jsonl") || place.Match("%2Fp/x/updates.jsonl") {
		t.Errorf("the place is %+v", place)
	}
}

// TestImport: importing twice is importing once.
func TestImport(t *testing.T) {
	if got := transcripttest.Import(t, grok.Format(), transcripttest.Fixtures(t, fixtures)...); len(got) != 1 {
		t.Errorf("the fixtures become %d sessions, want 1", len(got))
	}
}
