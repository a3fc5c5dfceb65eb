package format_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/pi"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

func piCollect(t *testing.T, path string) *transcript.Collected {
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

const (
	piFixtures = "testdata/pi/*.jsonl"
	forks      = "testdata/pi/fork/*.jsonl"
)

// TestPiStandard reads every entry type and role, the tree, three versions, titles and
// damage.
func TestPiStandard(t *testing.T) {
	t.Parallel()
	transcripttest.Standard(t, transcripttest.Suite{
		Format: pi.Format(), Fixtures: []string{piFixtures}, Sessions: 4,
		Name: "x.jsonl",
		Detected: map[string]bool{
			`{"type":"session","version":3,"id":"x","cwd":"/p"}`:                                     true,
			`{"type":"session","id":"x","cwd":"/p","provider":"p"}`:                                  true, // version 1
			"{\"type\":\"title\"}\n{\"type\":\"session\",\"version\":3,\"id\":\"x\",\"cwd\":\"/p\"}": true,
			`{"type":"session","id":"x","version":1,"timestamp":"2024-01-01T10:00:00Z","cwd":"/p"}`:  false, // Coppice's own
			`{"type":"message","id":"x"}`:                                                            false,
			``:                                                                                       false,
		},
		Samples: []string{"pi/*/*.jsonl"}, Count: piCount,
	})
}

// TestPiForks: forks that repeat their original become branches of it.
func TestPiForks(t *testing.T) {
	t.Parallel()
	transcripttest.Standard(t, transcripttest.Suite{Format: pi.Format(), Fixtures: []string{forks}, Sessions: 2})
}

// TestPiReadWithoutHeader reads what is left of a file that lost its beginning, and
// names the conversation by its path.
func TestPiReadWithoutHeader(t *testing.T) {
	t.Parallel()
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

func TestPiPlaces(t *testing.T) {
	t.Parallel()
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

func FuzzPiRead(f *testing.F) {
	for _, path := range transcripttest.Fixtures(f, piFixtures, forks) {
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
