package amp_test

import (
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/amp"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const fixtures = "testdata/*.json"

func TestRead(t *testing.T) { transcripttest.ReadFixtures(t, amp.Format(), fixtures) }

func FuzzRead(f *testing.F) { transcripttest.FuzzReader(f, amp.Format(), fixtures) }

func TestReadLinks(t *testing.T) {
	for text, want := range map[string]string{
		`{"id":"T-1","mainThreadID":"T-0","messages":[]}`:                                              "T-1 subagent T-0",
		`{"id":"T-1","relationships":[{"type":"fork","role":"child","threadID":"T-0"}],"messages":[]}`: "T-1 fork T-0",
		`{"messages":[]}`: transcript.HashID("amp", "/x.json") + "  ",
	} {
		c, err := transcript.Collect(t.Context(), amp.Format(), transcript.FileOf("/x.json", []byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		conv := c.Conversations[0]
		if got := conv.ID + " " + conv.Relation + " " + conv.Parent; got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
	if _, err := transcript.Collect(t.Context(), amp.Format(), transcript.FileOf("/x.json", []byte("{"))); err == nil {
		t.Error("half a document is read")
	}
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]bool{
		`{"v":1,"id": "T-1","messages":[`: true,
		`{"id":"x","messages":[]}`:        false,
		``:                                false,
	} {
		if got := amp.Format().Detect(transcript.FileOf("x", []byte(text))); got != want {
			t.Errorf("%s is detected: %v, want %v", text, got, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	home := t.TempDir()
	place := amp.Format().Places(transcript.Env{Home: home, Getenv: func(string) string { return "" }})[0]
	if place.Dir != filepath.Join(home, ".local", "share", "amp", "threads") || !place.Match("T-1.json") || place.Match("x.json") {
		t.Errorf("the place is %+v", place)
	}
}

// TestImport: importing twice is importing once.
func TestImport(t *testing.T) {
	if got := transcripttest.Import(t, amp.Format(), transcripttest.Fixtures(t, fixtures)...); len(got) != 1 {
		t.Errorf("the fixtures become %d sessions, want 1", len(got))
	}
}
