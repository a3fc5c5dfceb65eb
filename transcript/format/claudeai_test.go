package format_test

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/claudeai"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const claudeaiFixtures = "testdata/claudeai/*.json"

// TestClaudeAIStandard reads all kinds of blocks, and conversations with and without parents:
// in old exports, another message of the same sender is a second try.
func TestClaudeAIStandard(t *testing.T) {
	transcripttest.Standard(t, transcripttest.Suite{
		Format: claudeai.Format(), Fixtures: []string{claudeaiFixtures}, Sessions: 3,
		Name: "other.json", Detected: map[string]bool{`{"mapping":{}}`: false},
	})
}

func TestClaudeAIArchive(t *testing.T) {
	data, err := os.ReadFile("testdata/claudeai/conversations.json")
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for name, content := range map[string][]byte{"users.json": []byte("[]"), "conversations.json": data} {
		member, err := w.Create(name)
		if err == nil {
			_, err = member.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "data.zip")
	if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*transcript.File{transcripttest.Open(t, path), transcript.FileOf("data.zip", buf.Bytes())} {
		got := transcripttest.Collect(t, claudeai.Format(), f)
		if len(got.Conversations) != 3 || got.Counts[transcript.Became{What: "file users.json", Became: "left out"}] != 1 {
			t.Errorf("%d conversations, counts %v", len(got.Conversations), got.Counts)
		}
	}
	if claudeai.Format().Detect(transcript.FileOf("broken.zip", []byte("PK\x03\x04rest"))) {
		t.Error("a broken archive is taken for an export")
	}
}

// TestClaudeAISamples counts in its own way: every message with content is there.
func TestClaudeAISamples(t *testing.T) {
	for _, path := range transcripttest.Samples(t, "claude-ai-export/*.json") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f := transcripttest.Open(t, path)
			have := map[string]bool{}
			for _, c := range transcripttest.Collect(t, claudeai.Format(), f).Conversations {
				for _, r := range c.Records {
					have[r.ID] = true
				}
			}
			for doc, err := range f.Documents(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				for m := range loose.Value(doc.Data).Get("chat_messages").Items() {
					if id := m.Get("uuid").Text(); m.Get("text").Text() != "" && !have[id] {
						t.Errorf("message %s is missing", id)
					}
				}
			}
		})
	}
}

func FuzzClaudeAIRead(f *testing.F) {
	transcripttest.FuzzReader(f, claudeai.Format(), claudeaiFixtures)
}
