package all_test

import (
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/claudecode"
	"github.com/coppice-dev/coppice/transcript/format/codex"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// TestUsageWithoutMessage: what a response cost that no message came of is written, or
// its loss is announced.
func TestUsageWithoutMessage(t *testing.T) {
	t.Parallel()
	first, second := "a1", "a2"
	now := transcripttest.Now()
	s, err := transcripttest.ScriptOf(t.Context(), session.Header{ID: "s", CWD: "/w", CreatedAt: now}, []session.Entry{
		{Type: session.TypeMessage, ID: first, Timestamp: now, Message: &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("Hi")}}},
		{Type: session.TypeCustom, ID: second, ParentID: &first, Timestamp: now, Custom: session.NewUsage("openai", "gpt-5", "", session.Usage{Input: 120, Output: 40})},
		{Type: session.TypeMessage, ID: "a3", ParentID: &second, Timestamp: now, Message: &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("More")}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	x := &transcript.Exporter{Env: transcript.Env{Home: "/home/ada", Getenv: func(string) string { return "" }}}
	for _, test := range []struct {
		format *transcript.Format
		lost   bool
	}{{codex.Format(), false}, {claudecode.Format(), true}} {
		out, err := x.Prepare(t.Context(), test.format, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		lost := slices.ContainsFunc(out.Losses, func(l transcript.Loss) bool { return l.EntryID == second && l.What == "usage" })
		if lost != test.lost {
			t.Errorf("%s: the usage is announced as lost: %v, want %v (%+v)", test.format.Name, lost, test.lost, out.Losses)
		}
	}
}
