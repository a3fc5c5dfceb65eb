package copilot_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/copilot"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const fixtures = "testdata/*/*.jsonl"

// TestRead reads a session with everything that Copilot logs: a call that starts
// another agent, whose events stand between the session's; models, a compaction,
// a resumption, an id that is there twice, a parent that is not.
func TestRead(t *testing.T) { transcripttest.ReadFixtures(t, copilot.Format(), fixtures) }

func FuzzRead(f *testing.F) { transcripttest.FuzzReader(f, copilot.Format(), fixtures) }

func TestReadWithoutStart(t *testing.T) {
	line := `{"type":"user.message","data":{"content":"hi"},"id":"e1","timestamp":"2026-03-26T18:00:03.000Z"}`
	for path, want := range map[string]string{"/x/the-id/events.jsonl": "the-id", "/x/y.jsonl": transcript.HashID("copilot-cli", "/x/y.jsonl")} {
		c := transcripttest.Collect(t, copilot.Format(), transcript.FileOf(path, []byte(line)))
		if got := c.Conversations[0].ID; got != want {
			t.Errorf("the session in %s is %q, want %q", path, got, want)
		}
	}
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]bool{
		`{"type":"session.start","data":{},"id":"e","timestamp":"t"}`: true,
		`{"type":"thread.started","thread_id":"x"}`:                   false,
		`{"type":"message","data":{},"id":"e","timestamp":"t"}`:       false,
		``: false,
	} {
		if got := copilot.Format().Detect(transcript.FileOf("x", []byte(text))); got != want {
			t.Errorf("%s is detected: %v, want %v", text, got, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	home := t.TempDir()
	place := copilot.Format().Places(transcript.Env{Home: home, Getenv: func(string) string { return "" }})[0]
	if place.Dir != filepath.Join(home, ".copilot", "session-state") || !place.Match("id/events.jsonl") || !place.Match("id.jsonl") || place.Match("id/other.jsonl") {
		t.Errorf("the place is %+v", place)
	}
}

// TestSamples reads real logs, where there are any, and counts independently.
func TestSamples(t *testing.T) {
	paths := append(transcripttest.Samples(t, "other-agents/copilot/*.jsonl"), transcripttest.Samples(t, "other-agents/copilot/*/*/*.jsonl")...)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var want transcripttest.Counts
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
					want.Results++
					want.Messages++
				case "user.message", "assistant.message", "assistant.reasoning", "system.message", "system.notification":
					want.Messages++
				}
				want.Calls += len(v.Data.ToolRequests)
			}
			c := transcripttest.Collect(t, copilot.Format(), transcripttest.Open(t, path))
			if diff := cmp.Diff(want, transcripttest.Count(c)); diff != "" {
				t.Errorf("counts differ (-file +read):\n%s", diff)
			}
		})
	}
}

// TestImport: importing twice is importing once.
func TestImport(t *testing.T) {
	if got := transcripttest.Import(t, copilot.Format(), transcripttest.Fixtures(t, fixtures)...); len(got) != 3 {
		t.Errorf("the fixtures become %d sessions, want 3", len(got))
	}
}
