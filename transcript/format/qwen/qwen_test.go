package qwen_test

import (
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/qwen"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const fixtures = "testdata/*.jsonl"

// TestRead reads a chat with all that is recorded, one that was branched off it,
// and that of a subagent.
func TestRead(t *testing.T) { transcripttest.ReadFixtures(t, qwen.Format(), fixtures) }

func FuzzRead(f *testing.F) { transcripttest.FuzzReader(f, qwen.Format(), fixtures) }

func TestReadWithoutID(t *testing.T) {
	line := `{"uuid":"u","type":"user","message":{"role":"user","parts":[{"text":"hi"}]}}`
	c, err := transcript.Collect(t.Context(), qwen.Format(), transcript.FileOf("/x.jsonl", []byte(line)))
	if err != nil || len(c.Conversations) != 1 || c.Conversations[0].ID != transcript.HashID("qwen", "/x.jsonl") {
		t.Errorf("found %+v, %v", c, err)
	}
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]bool{
		`{"uuid":"u","sessionId":"s","type":"user","message":{"role":"user","parts":[]}}`:     true,
		`{"uuid":"u","sessionId":"s","type":"system","systemPayload":{}}`:                     true,
		`{"uuid":"u","sessionId":"s","type":"user","message":{"role":"user","content":"hi"}}`: false,
		`{"sessionId":"s","type":"user","message":{"parts":[]}}`:                              false,
		``: false,
	} {
		if got := qwen.Format().Detect(transcript.FileOf("x", []byte(text))); got != want {
			t.Errorf("%s is detected: %v, want %v", text, got, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	home := t.TempDir()
	place := qwen.Format().Places(transcript.Env{Home: home, Getenv: func(string) string { return "" }})[0]
	if place.Dir != filepath.Join(home, ".qwen", "projects") || !place.Match("-p/chats/x.jsonl") || place.Match("-p/other/x.jsonl") {
		t.Errorf("the place is %+v", place)
	}
}

// TestImport: importing twice is importing once.
func TestImport(t *testing.T) {
	if got := transcripttest.Import(t, qwen.Format(), transcripttest.Fixtures(t, fixtures)...); len(got) != 2 {
		t.Errorf("the fixtures become %d sessions, want 2", len(got))
	}
}
