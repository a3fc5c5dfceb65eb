package pi_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/pi"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

func collect(t *testing.T, path string) *transcript.Collected {
	t.Helper()
	f, err := transcript.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := transcript.Collect(t.Context(), pi.Format(), f)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func fixtures(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"testdata/*.jsonl", "testdata/*/*.jsonl"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// TestRead compares what is found in each fixture with the outline beside it:
// every entry type and role, the tree, three versions, titles, damage, forks.
func TestRead(t *testing.T) {
	for _, path := range fixtures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			got := transcripttest.Outline(collect(t, path))
			transcripttest.Golden(t, strings.TrimSuffix(path, ".jsonl")+".txt", got)
		})
	}
}

// TestReadWithoutHeader reads what is left of a file that lost its beginning, and
// names the conversation by its path.
func TestReadWithoutHeader(t *testing.T) {
	read := func(path, text string) *transcript.CollectedConversation {
		c, err := transcript.Collect(t.Context(), pi.Format(), transcript.FileOf(path, []byte(text)))
		if err != nil || len(c.Conversations) != 1 {
			t.Fatalf("found %v, %v", c, err)
		}
		return c.Conversations[0]
	}
	message := `{"type":"message","id":"d1","parentId":"lost","message":{"role":"user","content":"hi"}}`
	a, again, b := read("/a.jsonl", message), read("/a.jsonl", message), read("/b.jsonl", `{"type":"session","cwd":"/p"}`)
	if len(a.Records) != 1 || a.ID == "" || a.ID != again.ID || a.ID == b.ID {
		t.Errorf("conversations are %q, %q and %q", a.ID, again.ID, b.ID)
	}
}

func TestDetect(t *testing.T) {
	tests := []struct {
		name, text string
		want       bool
	}{
		{"version 3", `{"type":"session","version":3,"id":"x","cwd":"/p"}`, true},
		{"version 1", `{"type":"session","id":"x","cwd":"/p","provider":"p"}`, true},
		{"a title first", "{\"type\":\"title\"}\n{\"type\":\"session\",\"version\":3,\"id\":\"x\",\"cwd\":\"/p\"}", true},
		{"Coppice's own", `{"type":"session","id":"x","version":1,"timestamp":"2024-01-01T10:00:00Z","cwd":"/p"}`, false},
		{"something else", `{"type":"message","id":"x"}`, false},
		{"nothing", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := pi.Format().Detect(transcript.FileOf("x.jsonl", []byte(tt.text))); got != tt.want {
				t.Errorf("it is detected: %v, want %v", got, tt.want)
			}
		})
	}
}

func TestPlaces(t *testing.T) {
	home, own := t.TempDir(), t.TempDir()
	env := transcript.Env{Home: home, Getenv: func(name string) string {
		if name == "PI_CODING_AGENT_SESSION_DIR" {
			return own
		}
		return ""
	}}
	var dirs []string
	for _, p := range pi.Format().Places(env) {
		if !p.Match("--p--/x.jsonl") || p.Match("agent/sessions/sessions.json") {
			t.Errorf("%s takes the wrong files", p.Dir)
		}
		dirs = append(dirs, p.Dir)
	}
	want := []string{
		filepath.Join(home, ".pi/agent/sessions"), filepath.Join(home, ".omp/agent/sessions"),
		filepath.Join(home, ".openclaw/agents"), filepath.Join(home, ".clawdbot/agents"), own,
	}
	if diff := cmp.Diff(want, dirs); diff != "" {
		t.Errorf("places differ (-want +got):\n%s", diff)
	}
}

func FuzzRead(f *testing.F) {
	for _, path := range fixtures(f) {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := transcript.Collect(t.Context(), pi.Format(), transcript.FileOf("x.jsonl", data))
		if err != nil {
			t.Fatal(err)
		}
		for _, conv := range c.Conversations {
			for i := range conv.Records {
				if _, err := conv.Records[i].Entry.MarshalJSON(); err != nil {
					t.Errorf("record %d cannot be kept: %v", i, err)
				}
			}
		}
	})
}

// TestImport: importing twice is importing once, and forks that repeat their
// original become branches of it.
func TestImport(t *testing.T) {
	for pattern, want := range map[string]int{"testdata/fork/*.jsonl": 2, "testdata/*.jsonl": 4} {
		if got := transcripttest.Import(t, pi.Format(), transcripttest.Fixtures(t, pattern)...); len(got) != want {
			t.Errorf("%s becomes %d sessions, want %d", pattern, len(got), want)
		}
	}
}
