package format_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/geminicli"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

func geminicliCollect(t *testing.T, path string) *transcript.Collected {
	t.Helper()
	return transcripttest.Collect(t, geminicli.Format(), transcripttest.Open(t, path))
}

func geminicliFixtures(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"testdata/geminicli/*.json*", "testdata/geminicli/*/*.jsonl", "testdata/geminicli/*/*/*.jsonl"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// TestGeminiCLIRead compares what is found in each fixture with the outline beside it: both
// forms, replaced and rewound messages, a compression, a subagent. (The history
// has no id, and is named by its path.)
func TestGeminiCLIRead(t *testing.T) {
	t.Parallel()
	for _, path := range geminicliFixtures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			c := geminicliCollect(t, path)
			if filepath.Base(path) == "history.json" {
				c.Conversations[0].ID = "named by its path"
				for i := range c.Conversations[0].Records {
					if m := c.Conversations[0].Records[i].Entry.Message; m.ResponseID != "" {
						m.ResponseID = "named by its path"
					}
				}
			}
			golden := strings.TrimSuffix(path, filepath.Ext(path)) + ".txt"
			transcripttest.Golden(t, golden, transcripttest.Outline(c))
		})
	}
}

func TestGeminiCLIReadBadDocument(t *testing.T) {
	t.Parallel()
	f := transcript.FileOf("x.json", []byte(`{"sessionId":"x","projectHash":"h","messages":[`))
	if _, err := transcript.Collect(t.Context(), geminicli.Format(), f); err == nil {
		t.Error("half a document is read")
	}
}

func TestGeminiCLIDetect(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, path, text string
		want             bool
	}{
		{"log", "x.jsonl", `{"sessionId":"x","projectHash":"h"}` + "\n", true},
		{"document", "x.json", "{\n\"sessionId\":\"x\",\n\"projectHash\":\"h\",\"messages\":[]}", true},
		{"a document whose end is out of sight", "x.json", "{\n\"sessionId\":\"x\",\n\"projectHash\":\"h\",\n\"messages\":[{", true},
		{"a document by the newer name", "x.jsonl", "{\n\"sessionId\":\"x\",\n\"projectHash\":\"h\",\"messages\":[]}", true},
		{"Claude Code", "x.jsonl", `{"sessionId":"x","uuid":"u","type":"user"}`, false},
		{"prompts only", "logs.json", `[{"sessionId":"x"}]`, false},
		{"nothing", "x.json", ``, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := geminicli.Format().Detect(transcript.FileOf(tt.path, []byte(tt.text))); got != tt.want {
				t.Errorf("it is detected: %v, want %v", got, tt.want)
			}
		})
	}
}

func TestGeminiCLIPlaces(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	place := geminicli.Format().Places(transcript.Env{Home: home, Getenv: func(string) string { return "" }})[0]
	if place.Dir != filepath.Join(home, ".gemini", "tmp") {
		t.Errorf("the place is %s", place.Dir)
	}
	for path, want := range map[string]bool{
		"garden/chats/session-x.jsonl": true, "h/chats/session-x.json": true, "h/chats/parent/child.jsonl": true,
		"h/logs.json": false, "h/checkpoint-x.json": false, "h/chats/note.txt": false,
	} {
		if got := place.Match(path); got != want {
			t.Errorf("%s is taken: %v, want %v", path, got, want)
		}
	}
}

func FuzzGeminiCLIRead(f *testing.F) {
	for _, path := range geminicliFixtures(f) {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, filepath.Ext(path) == ".json")
	}
	f.Fuzz(func(t *testing.T, data []byte, document bool) {
		path := "x.jsonl"
		if document {
			path = "x.json"
		}
		c, err := transcript.Collect(t.Context(), geminicli.Format(), transcript.FileOf(path, data))
		if err != nil {
			return // half a document
		}
		for _, conv := range c.Conversations {
			seen := map[string]bool{transcript.Root: true}
			for i, r := range conv.Records {
				if _, err := r.Entry.MarshalJSON(); err != nil {
					t.Errorf("record %d cannot be kept: %v", i, err)
				}
				if !seen[r.Parent] || seen[r.ID] {
					t.Errorf("record %d (%q) does not follow an earlier one (%q)", i, r.ID, r.Parent)
				}
				seen[r.ID] = true
			}
		}
	})
}

// TestGeminiCLIImport: importing twice is importing once.
func TestGeminiCLIImport(t *testing.T) {
	t.Parallel()
	if got := transcripttest.Import(t, geminicli.Format(), geminicliFixtures(t)...); len(got) != len(geminicliFixtures(t)) {
		t.Errorf("%d files become %d sessions", len(geminicliFixtures(t)), len(got))
	}
}
