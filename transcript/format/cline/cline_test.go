package cline_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/cline"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const fixtures = "testdata/*/api_conversation_history.json"

func TestRead(t *testing.T) { transcripttest.ReadFixtures(t, cline.Format(), fixtures) }

func FuzzRead(f *testing.F) { transcripttest.FuzzReader(f, cline.Format(), fixtures) }

func TestReadAlone(t *testing.T) {
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

func TestReadBadBeside(t *testing.T) {
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

func TestPlaces(t *testing.T) {
	home := t.TempDir()
	for goos, want := range map[string]string{"linux": ".config", "darwin": "Library/Application Support", "windows": "AppData/Roaming"} {
		places := cline.Format().Places(transcript.Env{Home: home, GOOS: goos, Getenv: func(string) string { return "" }})
		dir := filepath.Join(home, want, "Code", "User", "globalStorage", "saoudrizwan.claude-dev", "tasks")
		if places[1].Dir != dir || !places[1].Match("17/api_conversation_history.json") || places[1].Match("17/ui_messages.json") {
			t.Errorf("on %s the place is %s, want %s", goos, places[1].Dir, dir)
		}
	}
}

// TestImport: importing twice is importing once.
func TestImport(t *testing.T) {
	if got := transcripttest.Import(t, cline.Format(), transcripttest.Fixtures(t, fixtures)...); len(got) != 1 {
		t.Errorf("the fixtures become %d sessions, want 1", len(got))
	}
}
