package format_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/cline"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const (
	clineFixtures = "testdata/cline/*/api_conversation_history.json"
	sessions      = "testdata/cline/sessions/*/*.messages.json"
)

func TestClineStandard(t *testing.T) {
	t.Parallel()
	transcripttest.Standard(t, transcripttest.Suite{
		Format: cline.Format(), Fixtures: []string{clineFixtures, sessions}, Sessions: 2,
		Name: "x.json", Detected: map[string]bool{`{"model":"m","messages":[{"role":"user","content":"hi"}]}`: false},
	})
}

func FuzzClineRead(f *testing.F) {
	transcripttest.FuzzReader(f, cline.Format(), clineFixtures, sessions)
}

func TestClineReadAlone(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 100)
	text := []byte(`[{"role":"user","content":"<user_message>` + long + `</user_message>"},{"role":"assistant","content":"hi"}]`)
	c := transcripttest.Collect(t, cline.Format(), transcript.FileOf("api_conversation_history.json", text)).Conversations[0]
	if c.Title != strings.Repeat("ä", 80)+"…" || len(c.Records) != 2 || c.ID != transcript.HashID("cline", "api_conversation_history.json") {
		t.Errorf("found %+v", c)
	}
	for _, bad := range []string{"[", "{}"} {
		if _, err := transcript.Collect(t.Context(), cline.Format(), transcript.FileOf("x", []byte(bad))); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

func TestClineReadBadBeside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"api_conversation_history.json": `[{"role":"assistant","content":"hi"}]`, "ui_messages.json": "["} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := transcripttest.Collect(t, cline.Format(), transcripttest.Open(t, filepath.Join(dir, "api_conversation_history.json")))
	if len(c.Problems) != 1 || len(c.Conversations[0].Records) != 1 {
		t.Errorf("found %+v", c)
	}
}

func TestClinePlaces(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for goos, want := range map[string]string{"linux": ".config", "darwin": "Library/Application Support", "windows": "AppData/Roaming"} {
		places := cline.Format().Places(transcript.Env{Home: home, GOOS: goos, Getenv: func(string) string { return "" }})
		dir := filepath.Join(home, want, "Code", "User", "globalStorage", "saoudrizwan.claude-dev", "tasks")
		if places[2].Dir != dir || !places[2].Match("17/api_conversation_history.json") || places[2].Match("17/ui_messages.json") {
			t.Errorf("on %s the place is %s, want %s", goos, places[2].Dir, dir)
		}
	}
}

// TestClineSessions: the sessions of Cline 3 are found, where the environment says that they
// are, and are Cline's under any name.
func TestClineSessions(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for variable, want := range map[string]string{
		"":                       filepath.Join(home, ".cline", "data", "sessions"),
		"CLINE_DIR":              filepath.Join("/elsewhere", "data", "sessions"),
		"CLINE_DATA_DIR":         filepath.Join("/elsewhere", "sessions"),
		"CLINE_SESSION_DATA_DIR": "/elsewhere",
	} {
		getenv := func(name string) string {
			if name == variable {
				return "/elsewhere"
			}
			return ""
		}
		place := cline.Format().Places(transcript.Env{Home: home, Getenv: getenv})[1]
		if place.Dir != want || !place.Match("17_a/17_a.messages.json") || place.Match("17_a/17_a.json") {
			t.Errorf("with %q the place is %s, want %s", variable, place.Dir, want)
		}
	}
	for _, path := range transcripttest.Fixtures(t, sessions) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !cline.Format().Detect(transcript.FileOf("copy.json", data)) {
			t.Errorf("%s is not detected under another name", path)
		}
	}
}
