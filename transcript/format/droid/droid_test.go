package droid_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/droid"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const fixtures = "testdata/*.jsonl"

// TestRead reads a session file (reminders in the user's name, results beside
// words, lines that are no messages, a compaction) and a stream.
func TestRead(t *testing.T) { transcripttest.ReadFixtures(t, droid.Format(), fixtures) }

func FuzzRead(f *testing.F) { transcripttest.FuzzReader(f, droid.Format(), fixtures) }

func TestReadWithoutStart(t *testing.T) {
	line := `{"type":"message","id":"m1","message":{"role":"user","content":"hi"}}`
	c, err := transcript.Collect(t.Context(), droid.Format(), transcript.FileOf("/x.jsonl", []byte(line)))
	if err != nil || len(c.Conversations) != 1 || c.Conversations[0].ID != transcript.HashID("droid", "/x.jsonl") {
		t.Errorf("found %+v, %v", c, err)
	}
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]bool{
		`{"type":"session_start","id":"x"}`:                                           true,
		`{"type":"message","session_id":"s","timestamp":1,"role":"user","text":"hi"}`: true,
		`{"type":"system","sessionId":"s","timestamp":1,"cwd":"/p"}`:                  true,
		`{"type":"system","sessionId":"s","timestamp":1,"cwd":"/p","uuid":"u"}`:       false,
		`{"type":"message","id":"x","timestamp":"t","message":{"role":"user"}}`:       false,
		`{"type":"user","sessionId":"s","timestamp":1,"cwd":"/p"}`:                    false,
		``: false,
	} {
		if got := droid.Format().Detect(transcript.FileOf("x", []byte(text))); got != want {
			t.Errorf("%s is detected: %v, want %v", text, got, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	home := t.TempDir()
	place := droid.Format().Places(transcript.Env{Home: home})[0]
	if place.Dir != filepath.Join(home, ".factory", "sessions") || !place.Match("-p/x.jsonl") || place.Match("-p/x.settings.json") {
		t.Errorf("the place is %+v", place)
	}
}

// TestSamples reads real files, where there are any, and counts independently.
func TestSamples(t *testing.T) {
	for _, path := range transcripttest.Samples(t, "other-agents/droid/*.jsonl") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
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
			c := transcripttest.Collect(t, droid.Format(), transcripttest.Open(t, path))
			if diff := cmp.Diff(want, transcripttest.Count(c)); diff != "" {
				t.Errorf("counts differ (-file +read):\n%s", diff)
			}
		})
	}
}

// TestImport: importing twice is importing once.
func TestImport(t *testing.T) {
	if got := transcripttest.Import(t, droid.Format(), transcripttest.Fixtures(t, fixtures)...); len(got) != 2 {
		t.Errorf("the fixtures become %d sessions, want 2", len(got))
	}
}
