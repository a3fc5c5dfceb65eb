package files_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/files"
)

func TestFilesThatTheToolsOfEveryAgentTouch(t *testing.T) {
	type list = []string
	a := list{"a.go"}
	for _, test := range []struct {
		agent, tool, input string
		read, changed      list
	}{
		{"Claude Code", "Read", `{"file_path":"a.go","limit":5}`, a, nil},
		{"Claude Code", "Edit", `{"file_path":"a.go","old_string":"x","new_string":"y"}`, nil, a},
		{"Claude Code", "MultiEdit", `{"edits":[{"file_path":"a.go","old_string":"x","new_string":"y"},{"file_path":"b.go","old_string":"x","new_string":"y"}]}`, nil, list{"a.go", "b.go"}},
		{"Claude Code", "Write", `{"file_path":"a.go","content":""}`, nil, a},
		{"Claude Code", "NotebookRead", `{"notebook_path":"a.go"}`, a, nil},
		{"Claude Code", "NotebookEdit", `{"notebook_path":"a.go","edit_mode":"delete"}`, nil, a},
		{"Claude Code", "mcp__filesystem__readTextFile", `{"path":"a.go"}`, a, nil},
		{"Claude Code", "mcp__reader__search", `{"path":"a.go"}`, nil, nil},
		{"Codex", "apply_patch", `{"input":"*** Begin Patch\n*** Update File: a.go\n*** Move to: b.go\n-x\n*** Delete File: c.go\n*** End Patch"}`, nil, list{"a.go", "b.go", "c.go"}},
		{"Codex", "view_image", `{"path":"a.go"}`, a, nil},
		{"Gemini CLI", "read_many_files", `{"paths":["a.go","b.go",3]}`, list{"a.go", "b.go"}, nil},
		{"Gemini CLI", "read_file", `{"absolute_path":"a.go"}`, a, nil},
		{"Cursor", "edit_file", `{"target_file":"a.go","code_edit":"x"}`, nil, a},
		{"Cursor", "delete_file", `{"target_file":"a.go"}`, nil, a},
		{"Copilot", "insert_edit_into_file", `{"filePath":"a.go","code":"x"}`, nil, a},
		{"Roo", "read_file", `{"files":[{"path":"a.go"},{"path":""}]}`, a, nil},
		{"Goose", "text_editor", `{"command":"view","path":"a.go"}`, a, nil},
		{"Goose", "text_editor", `{"command":"insert","path":"a.go","insert_line":3,"new_str":"x"}`, nil, a},
		{"MCP", "move_file", `{"source":"a.go","destination":"b.go"}`, nil, list{"a.go", "b.go"}},
		{"MCP", "get_file_contents", `{"path":"a.go"}`, a, nil},
		{"ours", "read", `{"path":"a.go"}`, a, nil},
		{"ours", "write", `{"path":"a.go","content":"x"}`, nil, a},

		{"a shell", "bash", `{"command":"cat a.go"}`, nil, nil},
		{"a search", "grep", `{"pattern":"x","path":"a.go"}`, nil, nil},
		{"a list", "list_directory", `{"path":"src"}`, nil, nil},
		{"a directory", "create_directory", `{"path":"src"}`, nil, nil},
		{"no path", "TodoWrite", `{"todos":[]}`, nil, nil},
		{"no path", "read", `{"path":7}`, nil, nil},
		{"no input", "write", `null`, nil, nil},
	} {
		call := &session.ToolUseContent{Name: test.tool}
		if err := json.Unmarshal([]byte(test.input), &call.Input); err != nil {
			t.Fatal(err)
		}
		read, changed := files.Touched(call)
		if diff := cmp.Diff([]list{test.read, test.changed}, []list{read, changed}); diff != "" {
			t.Errorf("%s: %s %s (-want +got):\n%s", test.agent, test.tool, test.input, diff)
		}
	}
}
