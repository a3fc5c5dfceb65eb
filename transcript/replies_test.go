package transcript_test

import (
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

func reply(id, response string, u *session.Usage, blocks ...session.Content) session.Entry {
	return session.Entry{Type: session.TypeMessage, ID: id, Message: &session.MessageEntry{
		Role: session.RoleAssistant, ResponseID: response, Usage: u, Content: blocks,
	}}
}

// TestJoinReplies: what a model said before its calls were answered is one message,
// and what it said apart from that is not.
func TestJoinReplies(t *testing.T) {
	t.Parallel()
	result := func(id string) session.Entry {
		return session.Entry{Type: session.TypeMessage, ID: "r" + id, Message: &session.MessageEntry{
			Role: session.RoleTool, Content: []session.Content{session.ToolResult(id, "ok", false)},
		}}
	}
	model := session.Entry{Type: session.TypeModelChange, ID: "m", ModelChange: &session.ModelChangeEntry{ModelID: "x"}}
	entries := []session.Entry{
		reply("a1", "one", nil, session.Text("both")),
		reply("a2", "one", nil, session.ToolUse("c1", "f", nil)),
		model,
		reply("a3", "one", &session.Usage{Input: 3, Output: 4}, session.ToolUse("c2", "f", nil)),
		result("c1"), result("c2"),
		reply("a4", "two", &session.Usage{Input: 5}, session.ToolUse("c3", "f", nil)),
		reply("a5", "three", &session.Usage{Input: 7}, session.Text("on the way")),
		result("c3"),
		reply("a6", "four", nil, session.Text("done")),
		reply("a7", "five", nil, session.Text("another reply")),
	}
	var ids string
	blocks := make(map[string]int)
	usage := make(map[string]int)
	for _, e := range transcript.JoinReplies(entries) {
		ids += e.ID + " "
		if e.Message != nil {
			blocks[e.ID] = len(e.Message.Content)
			if u := e.Message.Usage; u != nil {
				usage[e.ID] = u.Input
			}
		}
	}
	if ids != "a1 m rc1 rc2 a4 rc3 a6 a7 " {
		t.Errorf("messages %s", ids)
	}
	if blocks["a1"] != 3 || blocks["a4"] != 2 || usage["a1"] != 3 || usage["a4"] != 12 {
		t.Errorf("blocks %v, input %v", blocks, usage)
	}
	if len(entries[0].Message.Content) != 1 {
		t.Error("the entries that were given have changed")
	}
}
