package format_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/pi"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// TestWriteWhatPiSends: pi answers a call by itself if its result does not come next.
// So a reply is one message, a call that was interrupted has a result, and no call has
// two. Another branch that has the result keeps it.
func TestWriteWhatPiSends(t *testing.T) {
	t.Parallel()
	var entries []session.Entry
	say := func(id, parent string, role session.MessageRole, blocks ...session.Content) {
		e := session.Entry{Type: session.TypeMessage, ID: id, Message: &session.MessageEntry{Role: role, Content: blocks}}
		if parent != "" {
			e.ParentID = &parent
		}
		entries = append(entries, e)
	}
	say("u", "", "user", session.Text("both"))
	say("a1", "u", "assistant", session.ToolUse("c1", "run", nil))
	say("a2", "a1", "assistant", session.ToolUse("c2", "run", nil))
	say("t1", "a2", "tool", session.ToolResult("c1", "A", false))
	say("t2", "t1", "tool", session.ToolResult("c2", "B", false))
	say("t3", "t2", "tool", session.ToolResult("c2", "B", false))
	say("a3", "t3", "assistant", session.ToolUse("c3", "run", nil))
	say("u2", "a3", "user", session.Text("stop"))
	say("a4", "u2", "assistant", session.ToolUse("c4", "run", nil))
	s, err := transcripttest.ScriptOf(t.Context(), session.Header{Type: session.TypeSession, ID: "x", Version: 1, CWD: "/p"}, entries)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pi.Format().Write(t.Context(), s, transcript.Env{Home: t.TempDir(), Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	c := transcripttest.Collect(t, pi.Format(), transcript.FileOf("x.jsonl", out.Files[0].Data))
	var got []string
	before := ""
	for _, r := range c.Conversations[0].Records {
		if before != "" && r.Parent != before {
			t.Errorf("%s follows %s, want %s", r.ID, r.Parent, before)
		}
		before = r.ID
		line := string(r.Entry.Message.Role)
		for _, b := range r.Entry.Message.Content {
			switch {
			case b.ToolUse != nil:
				line += " " + b.ToolUse.ID
			case b.ToolResult != nil:
				line += " " + b.ToolResult.ToolUseID + "=" + strings.TrimSpace(b.ToolResult.Content)
			}
		}
		got = append(got, line)
	}
	want := []string{
		"user", "assistant c1 c2", "tool c1=A", "tool c2=B", "assistant c3", "tool c3=" + session.InterruptedText,
		"user", "assistant c4", "tool c4=" + session.InterruptedText,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the messages differ (-want +got):\n%s", diff)
	}
}
