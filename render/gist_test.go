package render_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

func TestGistOfACallIsWhatAPersonWouldSay(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, input, want string }{
		{"Bash", `{"command":"go test ./...","timeout":120}`, "Bash go test ./... timeout=120"},
		{"shell", `{"command":["bash","-lc","ls -l"],"workdir":"/x"}`, "shell ls -l workdir=/x"},
		{"shell", `{"command":["git","status"]}`, "shell git status"},
		{"TodoWrite", `{"todos":[{"content":"a","status":"done"},{"content":"b"},{"content":"c"}]}`, "TodoWrite 3 todos"},
		{"TodoWrite", `{"todos":[{"content":"a"}]}`, "TodoWrite 1 todo"},
		{"TodoWrite", `{"todos":[]}`, "TodoWrite todos=[]"},
		{"edit_all", `{"entries":[{"a":1}]}`, "edit_all 1 entry"},
		{"update_plan", `{"plan":[{"step":"a"},{"step":"b"}]}`, "update_plan plan=2 items"},
		{"Grep", `{"pattern":"x","globs":["*.go","*.md"]}`, "Grep x globs=*.go, *.md"},
		{"Task", `{"description":"look around","prompt":"find\nit"}`, "Task look around prompt=find it"},
		{"mcp", `{"filter":{"b":[1,2],"a":"<x>"},"on":true,"none":null}`, `mcp filter={"a":"<x>","b":[1,2]} on=true`},
		{"Glob", `{"path":"~/.config","pattern":"**/*.md"}`, "Glob **/*.md in ~/.config"},
		{"Grep", `{"path":"/p","pattern":"def f","output_mode":"content"}`, "Grep def f output_mode=content in /p"},
		{"Read", `{"path":"a.go","offset":3}`, "Read a.go offset=3"},
		{"Bash", `{"command":"ls","description":"List files"}`, "Bash ls # List files"},
		{"exec", `{"input":"await run()"}`, "exec await run()"},
		{
			"Task", `{"description":"look","prompt":"find what is written in all of these files","subagent_type":"explore"}`,
			"Task look subagent_type=explore prompt=find what is written in all of these files",
		},
	} {
		var input map[string]any
		if err := json.Unmarshal([]byte(test.input), &input); err != nil {
			t.Fatal(err)
		}
		if got := render.CallGist(&session.ToolUseContent{Name: test.name, Input: input}); got != test.want {
			t.Errorf("%s\n got %s\nwant %s", test.input, got, test.want)
		}
	}
}

func TestGistSaysWhyATurnEndedEarly(t *testing.T) {
	t.Parallel()
	object := map[string]any{"name": "APIError", "data": map[string]any{"message": "over\nloaded"}}
	for _, test := range []struct {
		stop  string
		error any
		text  string
		want  string
	}{
		{"end_turn", nil, "done", "done"},
		{"tool_use", nil, "", ""},
		{"", nil, "done", "done"},
		{"unknown", nil, "done", "done"},
		{"aborted", nil, "", "[aborted]"},
		{"aborted", "Request was aborted", "half", "half [aborted: Request was aborted]"},
		{"error", object, "", "[failed: over loaded]"},
		{"", "429", "", "[failed: 429]"},
		{"max_tokens", nil, "half", "half [cut off at the token limit]"},
		{"refusal", nil, "", "[refused]"},
		{"model_context_window_exceeded", nil, "", "[stopped: model_context_window_exceeded]"},
		{"error", map[string]any{"name": "Timeout"}, "", "[failed: Timeout]"},
	} {
		e := session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{Role: "assistant", StopReason: test.stop}}
		if test.text != "" {
			e.Message.Content = []session.Content{session.Text(test.text)}
		}
		if test.error != nil {
			e.Message.Metadata = map[string]any{"error": test.error}
		}
		if got := render.Gist(&e, 0); got != test.want {
			t.Errorf("%s, %v: %q, want %q", test.stop, test.error, got, test.want)
		}
	}
}

func TestGistOfOtherEntries(t *testing.T) {
	t.Parallel()
	parent := "p1"
	for want, e := range map[string]session.Entry{
		"model: openai/gpt":              {Type: session.TypeModelChange, ModelChange: &session.ModelChangeEntry{Provider: "openai", ModelID: "gpt"}},
		"leaf: to p1":                    {Type: session.TypeLeaf, ParentID: &parent, Leaf: &session.LeafEntry{}},
		"leaf: to the beginning":         {Type: session.TypeLeaf, Leaf: &session.LeafEntry{}},
		"label: x for p1":                {Type: session.TypeLabel, Label: &session.LabelEntry{TargetID: parent, Label: "x"}},
		"merge: from p1, 2 entries: why": {Type: session.TypeMerge, Merge: &session.MergeEntry{FromID: parent, Summary: "why", EntryIDs: []string{"a", "b"}}},
		"gap: (missing or damaged)":      {Type: session.TypeGap},
		`custom: ext a={"b":[1]}`:        {Type: session.TypeCustom, Custom: &session.CustomEntry{CustomType: "ext", Data: map[string]any{"a": map[string]any{"b": []any{1}}}}},
		"custom: x content=Overloaded at=1": {Type: session.TypeCustom, Custom: &session.CustomEntry{CustomType: "x", Data: map[string]any{
			"at": 1, "content": []any{map[string]any{"type": "text", "text": "Overloaded"}},
		}}},
		"custom: x reason=why at=1": {Type: session.TypeCustom, Custom: &session.CustomEntry{CustomType: "x", Data: map[string]any{"at": 1, "reason": "why"}}},

		"continues: session s1 (12 messages before)": {Type: session.TypeContinues, Continues: &session.ContinuesEntry{Session: "s1", Messages: 12}},
	} {
		if got := render.Kind(&e) + ": " + render.Gist(&e, 0); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestGistOfABlockOfAnUnknownType(t *testing.T) {
	t.Parallel()
	var c session.Content
	if err := json.Unmarshal([]byte(`{"type":"hologram","name":"Task","input":{"a":"<b>"}}`), &c); err != nil {
		t.Fatal(err)
	}
	if got, want := render.MediaGist(&c), `[hologram input={"a":"<b>"} name=Task]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestOutcomeOfACall(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2000)
	for want, r := range map[string]session.ToolResultContent{
		"":                      {},
		"done":                  {Content: " done\n"},
		"3 lines":               {Content: "a\nb\nc"},
		"2.0 kB":                {Content: long},
		"5.0 MB":                {Content: "a\nb", Size: 5e6},
		"exit 1 · FAIL x …":     {Content: "Exit code 1\nFAIL x\nwhy", IsError: true},
		"exit 2":                {Content: "[exit code 2]"},
		"exit 127":              {Content: "Command exited with code 127", IsError: true},
		"exit 3 · 1 " + "of …":  {Content: "1 of\n" + long + "\nexit code: 3", IsError: true},
		"2 lines":               {Content: "exit code 0\nfine"},
		"see exit code 1 there": {Content: "see exit code 1 there"},
		"a · [image/png 3 B]":   {Content: "a", Parts: []session.Content{session.Text("a"), session.Image("image/png", "AAAA")}},
	} {
		if got := render.OutcomeGist(&r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
