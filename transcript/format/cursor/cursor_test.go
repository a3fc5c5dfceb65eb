package cursor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/cursor"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// TestRead reads calls without ids and results that name none, notes in the
// user's name, blocks of other spellings, and a subagent's transcript.
func TestRead(t *testing.T) {
	transcripttest.ReadFixtures(t, cursor.Format(), "testdata/agent-transcripts/*.jsonl", "testdata/agent-transcripts/*/*/*.jsonl")
}

func FuzzRead(f *testing.F) {
	transcripttest.FuzzReader(f, cursor.Format(), "testdata/agent-transcripts/*.jsonl")
}

// TestReadElsewhere: files of one name that are not where Cursor puts them are
// different conversations.
func TestReadElsewhere(t *testing.T) {
	line := []byte(`{"role":"user","message":{"content":[]}}`)
	a := transcripttest.Collect(t, cursor.Format(), transcript.FileOf("/a/x.jsonl", line)).Conversations[0].ID
	b := transcripttest.Collect(t, cursor.Format(), transcript.FileOf("/b/x.jsonl", line)).Conversations[0].ID
	if a == b || a == "x" {
		t.Errorf("they are %q and %q", a, b)
	}
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]bool{
		`{"role":"user","message":{"content":[]}}`:                          true,
		`{"role":"user","content":"x"}`:                                     false,
		`{"type":"user","uuid":"u","role":"user","message":{"content":[]}}`: false,
		``: false,
	} {
		if got := cursor.Format().Detect(transcript.FileOf("x", []byte(text))); got != want {
			t.Errorf("%s is detected: %v, want %v", text, got, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	home := t.TempDir()
	place := cursor.Format().Places(transcript.Env{Home: home})[0]
	if place.Dir != filepath.Join(home, ".cursor", "projects") || !place.Match("p/agent-transcripts/x/x.jsonl") || place.Match("p/other/x.jsonl") {
		t.Errorf("the place is %+v", place)
	}
}

// TestSamples reads real files, where there are any, and counts independently.
func TestSamples(t *testing.T) {
	paths := append(transcripttest.Samples(t, "other-agents/cursor/*.jsonl"), transcripttest.Samples(t, "other-agents/cursor/subagent/*.jsonl")...)
	for _, path := range append(paths, transcripttest.Samples(t, "other-agents/cursor/subagent/subagents/*.jsonl")...) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.ReplaceAll(string(data), "tool-result", "tool_result")
			want := transcripttest.Counts{
				Messages: strings.Count(text, `{"role":`),
				Calls:    strings.Count(text, `"type":"tool_use"`) + strings.Count(text, `"type":"tool_call"`),
				Results:  strings.Count(text, `"type":"tool_result"`),
			}
			c := transcripttest.Collect(t, cursor.Format(), transcripttest.Open(t, path))
			if diff := cmp.Diff(want, transcripttest.Count(c)); diff != "" {
				t.Errorf("counts differ (-file +read):\n%s", diff)
			}
		})
	}
}

// TestImport: importing twice is importing once.
func TestImport(t *testing.T) {
	paths := transcripttest.Fixtures(t, "testdata/agent-transcripts/*.jsonl", "testdata/agent-transcripts/*/*/*.jsonl")
	if got := transcripttest.Import(t, cursor.Format(), paths...); len(got) != 2 {
		t.Errorf("the fixtures become %d sessions, want 2", len(got))
	}
}
