package all_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	_ "github.com/coppice-dev/coppice/transcript/all"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// TestNotices: what hooks of Claude Code told the model is written, or its loss is
// announced, once.
func TestNotices(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 6, 1, 10, 0, 0, 0, time.UTC)
	first, second := "u1", "n1"
	entries := []session.Entry{
		{Type: "message", ID: first, Timestamp: at, Message: &session.MessageEntry{Role: "user", Content: []session.Content{session.Text("look")}}},
		{Type: "custom", ID: second, ParentID: &first, Timestamp: at, Custom: &session.CustomEntry{
			CustomType: "claude-code.attachment", Data: map[string]any{"type": "hook_additional_context", "content": []any{"HOOKED"}},
		}},
		{Type: "message", ID: "a1", ParentID: &second, Timestamp: at, Message: &session.MessageEntry{Role: "assistant", Content: []session.Content{session.Text("seen")}}},
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
		written := slices.ContainsFunc(out.Files, func(f transcript.OutputFile) bool { return strings.Contains(string(f.Data), "HOOKED") })
		lost := 0
		for _, l := range out.Losses {
			if l.EntryID == second {
				lost++
			}
		}
		if want := map[bool]int{false: 1, true: 0}[written]; lost != want {
			t.Errorf("%s: written %t, announced %d times: %v", format.Name, written, lost, out.Losses)
		}
	}
}
