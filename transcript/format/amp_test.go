package format_test

import (
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/amp"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const ampFixtures = "testdata/amp/*.json"

func TestAmpStandard(t *testing.T) {
	transcripttest.Standard(t, transcripttest.Suite{
		Format: amp.Format(), Fixtures: []string{ampFixtures}, Sessions: 1,
		Place: ".local/share/amp/threads", Match: "T-1.json", Pass: "x.json",
		Detected: map[string]bool{
			`{"v":1,"id": "T-1","messages":[`: true,
			`{"id":"x","messages":[]}`:        false,
			``:                                false,
		},
	})
}

func FuzzAmpRead(f *testing.F) { transcripttest.FuzzReader(f, amp.Format(), ampFixtures) }

func TestAmpReadLinks(t *testing.T) {
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
