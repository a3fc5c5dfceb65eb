package all_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	_ "github.com/coppice-dev/coppice/transcript/all"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// TestLocalFiles: no program is told where a file of another one lies, and what is left
// out is announced.
func TestLocalFiles(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 6, 1, 10, 0, 0, 0, time.UTC)
	source := &session.Source{Type: "url", MediaType: "text/plain", Data: "file:///home/ann/notes.txt"}
	first := "u1"
	entries := []session.Entry{
		{Type: "message", ID: first, Timestamp: at, Message: &session.MessageEntry{Role: "user", Content: []session.Content{
			session.Text("look"),
			{Type: session.ContentTypeFile, File: &session.FileContent{Name: "notes.txt", Source: source}},
			{Type: session.ContentTypeImage, Image: &session.ImageContent{Source: source}},
		}}},
		{Type: "message", ID: "a1", ParentID: &first, Timestamp: at, Message: &session.MessageEntry{Role: "assistant", Content: []session.Content{session.Text("seen")}}},
	}
	for _, format := range transcript.Formats() {
		if format.Write == nil {
			continue
		}
		h := session.Header{Type: session.TypeSession, ID: "0b9d1a54-5b51-4f3b-9b7e-0d8a3c2f1e00", Version: 1, CWD: "/w"}
		s, err := transcripttest.ScriptOf(t.Context(), h, entries)
		if err != nil {
			t.Fatal(err)
		}
		env := transcript.Env{Home: t.TempDir(), Getenv: func(string) string { return "" }}
		out, err := (&transcript.Exporter{Env: env}).Prepare(t.Context(), format, s, nil)
		if err != nil {
			t.Fatalf("%s: %v", format.Name, err)
		}
		for _, f := range out.Files {
			if bytes.Contains(f.Data, []byte("/home/ann")) {
				t.Errorf("%s has the path: %s", format.Name, f.Data)
			}
		}
		if !slices.ContainsFunc(out.Losses, func(l transcript.Loss) bool { return l.EntryID == "u1" && l.What == "attached file" }) {
			t.Errorf("%s does not announce it: %v", format.Name, out.Losses)
		}
	}
}
