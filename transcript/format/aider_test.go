package format_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/aider"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const aiderFixture = "testdata/aider/history.md"

// aiderOpen opens a file under its name alone, because ids are made of the path.
func aiderOpen(t testing.TB, path string) *transcript.File {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return transcript.FileOf(filepath.Base(path), data)
}

func TestAiderStandard(t *testing.T) {
	t.Parallel()
	transcripttest.Standard(t, transcripttest.Suite{Format: aider.Format(), Fixtures: []string{aiderFixture}, Open: aiderOpen, Sessions: 3})
}

// TestAiderRunsOfOneSecond: two runs with equal headers are two conversations, and
// stay the same ones when the file is read again.
func TestAiderRunsOfOneSecond(t *testing.T) {
	t.Parallel()
	first := transcripttest.Collect(t, aider.Format(), aiderOpen(t, aiderFixture)).Conversations
	second := transcripttest.Collect(t, aider.Format(), aiderOpen(t, aiderFixture)).Conversations
	if len(first) != 3 || first[0].ID == first[1].ID {
		t.Fatalf("%d conversations, the first two %s and %s", len(first), first[0].ID, first[1].ID)
	}
	for i := range first {
		if first[i].ID != second[i].ID {
			t.Errorf("run %d has another id when it is read again", i)
		}
	}
}

func TestAiderDetect(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{".aider.chat.history.md": true, "notes.md": false} {
		if got := aider.Format().Detect(transcript.FileOf("/p/"+name, []byte("# Notes\n"))); got != want {
			t.Errorf("%s: detected is %t", name, got)
		}
	}
}

func TestAiderBeforeTheFirstHeader(t *testing.T) {
	t.Parallel()
	f := transcript.FileOf("/p/.aider.chat.history.md", []byte("#### hello\nhi\n>\n####\n"))
	got := transcripttest.Collect(t, aider.Format(), f)
	if len(got.Conversations) != 1 || len(got.Conversations[0].Records) != 2 || got.Conversations[0].CWD != filepath.FromSlash("/p") {
		t.Errorf("got\n%s", transcripttest.Outline(got))
	}
}

// TestAiderSamples counts in its own way: every line of the user is in a message.
func TestAiderSamples(t *testing.T) {
	t.Parallel()
	for _, path := range transcripttest.Samples(t, "aider/*/*.md") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var have strings.Builder
			for _, c := range transcripttest.Collect(t, aider.Format(), transcript.FileOf(".aider.chat.history.md", data)).Conversations {
				for _, r := range c.Records {
					if r.Entry.Message.Role == "user" {
						have.WriteString(r.Entry.Message.Content[0].Text.Content + "\n")
					}
				}
			}
			for line := range strings.Lines(string(data)) {
				if text, ok := strings.CutPrefix(line, "#### "); ok && !strings.Contains(have.String(), strings.TrimSpace(text)) {
					t.Errorf("the user's line %q is missing", text)
				}
			}
		})
	}
}

func FuzzAiderRead(f *testing.F) {
	data, err := os.ReadFile(aiderFixture)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := transcript.Collect(t.Context(), aider.Format(), transcript.FileOf("history.md", data)); err != nil {
			t.Error(err)
		}
	})
}
