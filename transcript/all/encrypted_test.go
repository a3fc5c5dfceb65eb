package all_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	_ "github.com/coppice-dev/coppice/transcript/all"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// TestEncryptedSummary: a summary that only its provider can read is written as it was,
// or announced as lost. Then everything before it is out of the model's sight.
func TestEncryptedSummary(t *testing.T) {
	t.Parallel()
	const summary = `{"type":"compaction","encrypted_content":"gAAAsecret"}`
	at := time.Date(2026, 6, 1, 10, 0, 0, 0, time.UTC)
	id := func(s string) *string { return &s }
	entries := []session.Entry{
		{Type: "message", ID: "u1", Timestamp: at, Message: &session.MessageEntry{Role: "user", Content: []session.Content{session.Text("old")}}},
		{Type: "compaction", ID: "k", ParentID: id("u1"), Timestamp: at, Compaction: &session.CompactionEntry{}},
		{Type: "message", ID: "a1", ParentID: id("k"), Timestamp: at, Message: &session.MessageEntry{Role: "assistant", Content: []session.Content{
			{Type: "compaction", Raw: []byte(summary)},
		}, Extra: session.Fields{{Name: "openai_responses", Value: []byte(`{}`)}}}},
		{Type: "message", ID: "u2", ParentID: id("a1"), Timestamp: at, Message: &session.MessageEntry{Role: "user", Content: []session.Content{session.Text("go on")}}},
	}
	for _, format := range transcript.Formats() {
		if format.Write == nil {
			continue
		}
		t.Run(format.Name, func(t *testing.T) {
			h := session.Header{Type: session.TypeSession, ID: "0b9d1a54-5b51-4f3b-9b7e-0d8a3c2f1e00", Version: 1, CWD: "/w"}
			s, err := transcripttest.ScriptOf(t.Context(), h, entries)
			if err != nil {
				t.Fatal(err)
			}
			env := transcript.Env{Home: t.TempDir(), Getenv: func(string) string { return "" }}
			out, err := (&transcript.Exporter{Env: env}).Prepare(t.Context(), format, s, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range out.Files {
				if bytes.Contains(f.Data, []byte("gAAAsecret")) {
					return
				}
			}
			for _, l := range out.Losses {
				if l.EntryID == "a1" {
					return
				}
			}
			t.Errorf("it is neither written nor announced: %v", out.Losses)
		})
	}
}
