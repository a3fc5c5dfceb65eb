package kimi_test

import (
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/kimi"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const fixtures = "testdata/*/*/*/*.jsonl"

// TestRead reads a log with all that is done to a context: messages, the steps of
// the model's loop, an undone turn, compactions, a new beginning.
func TestRead(t *testing.T) { transcripttest.ReadFixtures(t, kimi.Format(), fixtures) }

func FuzzRead(f *testing.F) { transcripttest.FuzzReader(f, kimi.Format(), fixtures) }

func TestReadAgents(t *testing.T) {
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

func TestDetect(t *testing.T) {
	for text, want := range map[string]bool{
		`{"type":"metadata","protocol_version":"1.4"}`: true,
		`{"type":"metadata"}`:                          false,
		``:                                             false,
	} {
		if got := kimi.Format().Detect(transcript.FileOf("x", []byte(text))); got != want {
			t.Errorf("%s is detected: %v, want %v", text, got, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	home := t.TempDir()
	place := kimi.Format().Places(transcript.Env{Home: home, Getenv: func(string) string { return "" }})[0]
	if place.Dir != filepath.Join(home, ".kimi-code", "sessions") || !place.Match("wd/session_x/agents/main/wire.jsonl") || place.Match("wd/session_x/state.json") {
		t.Errorf("the place is %+v", place)
	}
}

// TestImport: importing twice is importing once.
func TestImport(t *testing.T) {
	if got := transcripttest.Import(t, kimi.Format(), transcripttest.Fixtures(t, fixtures)...); len(got) != 1 {
		t.Errorf("the fixtures become %d sessions, want 1", len(got))
	}
}
