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

// No other program has notes. An export leaves them out and lists them among the losses: there they
// would be the user's words.
func TestNotesAreNotExported(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 6, 1, 10, 0, 0, 0, time.UTC)
	ids := []string{"u1", "n1", "a1", "n2"}
	said := func(role session.MessageRole, text string) session.Entry {
		return session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{Role: role, Content: []session.Content{session.Text(text)}}}
	}
	entries := []session.Entry{said("user", "look at the herons"), session.NewNote("reviewer", "count the otters"), said("assistant", "seen"), session.NewNote("", "and the otters again")}
	for i := range entries {
		entries[i].ID, entries[i].Timestamp = ids[i], at
		if i > 0 {
			entries[i].ParentID = &ids[i-1]
		}
	}
	h := session.Header{Type: session.TypeSession, ID: "0b9d1a54-5b51-4f3b-9b7e-0d8a3c2f1e00", Version: 1, CWD: "/w"}
	for _, format := range transcript.Formats() {
		if format.Write == nil {
			continue
		}
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
			if bytes.Contains(f.Data, []byte("otters")) || !bytes.Contains(f.Data, []byte("herons")) && bytes.Contains(f.Data, []byte("seen")) {
				t.Errorf("%s has a note, or lacks what was said: %s", format.Name, f.Data)
			}
		}
		for _, id := range []string{"n1", "n2"} {
			if !slices.ContainsFunc(out.Losses, func(l transcript.Loss) bool { return l.EntryID == id && l.What == "note" }) {
				t.Errorf("%s does not announce that it leaves %s out: %v", format.Name, id, out.Losses)
			}
		}
	}
}
