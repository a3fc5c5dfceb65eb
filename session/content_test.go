package session_test

import (
	"encoding/json"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

func TestToolUseJSON(t *testing.T) {
	tests := []struct{ name, input, want string }{
		{"order and digits are kept", `{"b":1,"a":12345678901234567890}`, `{"b":1,"a":12345678901234567890}`},
		{"a number that Go cannot hold", `{"n":1e400}`, `{"n":1e400}`},
		{"no object", `[1]`, `null`},
		{"no JSON", `{"a":`, `null`},
		{"nothing", ``, `null`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := session.ToolUseJSON("c1", "f", json.RawMessage(tt.input))
			line, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			var back session.Content
			if err := json.Unmarshal(line, &back); err != nil {
				t.Fatal(err)
			}
			for _, c := range []session.Content{c, back} {
				if got, err := c.ToolUse.InputJSON(); err != nil || string(got) != tt.want {
					t.Errorf("the input is %s, %v, want %s", got, err, tt.want)
				}
			}
		})
	}
}

func TestInputJSONAfterChange(t *testing.T) {
	c := session.ToolUseJSON("c1", "f", json.RawMessage(`{"b":1,"a":2}`))
	c.ToolUse.Input["b"] = "new"
	if got, err := c.ToolUse.InputJSON(); err != nil || string(got) != `{"a":2,"b":"new"}` {
		t.Errorf("a changed input is %s, %v", got, err)
	}
	c.ToolUse.Input["b"] = func() {}
	if _, err := c.ToolUse.InputJSON(); err == nil {
		t.Error("a function was encoded")
	}
}

func TestEntrySummary(t *testing.T) {
	tests := []struct {
		name  string
		entry session.Entry
		want  string
	}{
		{"compaction", session.Entry{Compaction: &session.CompactionEntry{Summary: "before"}}, "before"},
		{"branch", session.Entry{BranchSummary: &session.BranchSummaryEntry{Summary: "aside"}}, "aside"},
		{"merge", session.Entry{Merge: &session.MergeEntry{Summary: "joined"}}, "joined"},
		{"message", session.Entry{Message: &session.MessageEntry{Content: []session.Content{session.Text("said")}}}, ""},
		{"nothing", session.Entry{}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.entry.Summary(); got != tt.want {
				t.Errorf("summary %q, want %q", got, tt.want)
			}
		})
	}
}
