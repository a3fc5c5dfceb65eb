package window_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// corpus returns the conversations of the public collections in the directory
// that COPPICE_CORPUS names, by collection; nothing if it is not set.
func corpus(t testing.TB) map[string][][]session.Entry {
	t.Helper()
	dir := os.Getenv("COPPICE_CORPUS")
	if dir == "" {
		return nil
	}
	all := make(map[string][][]session.Entry)
	for _, pattern := range []string{"tau-bench/*.json*", "sgd-dialogues/*.jsonl", "llama-factory/*toolcall*.json", "llama-factory/*.jsonl", "llama-factory/alpaca*.json"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name := filepath.Base(filepath.Dir(file))
			for _, record := range records(t, file) {
				if entries := conversation(record); len(entries) > 0 {
					all[name] = append(all[name], entries)
				}
			}
		}
	}
	return all
}

// records reads a file that is an array or has a value a line.
func records(t testing.TB, file string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]any
	if json.Unmarshal(data, &list) == nil {
		return list
	}
	lines := bufio.NewScanner(strings.NewReader(string(data)))
	lines.Buffer(nil, len(data)+1)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var record map[string]any
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		list = append(list, record)
	}
	return list
}

// conversation makes entries of a record in any of the collections' forms.
func conversation(record map[string]any) []session.Entry {
	b := &builder{}
	for _, key := range []string{"messages", "traj", "conversations"} {
		if list, ok := record[key].([]any); ok {
			for _, m := range list {
				b.foreign(m.(map[string]any))
			}
		}
	}
	if text, ok := record["messages_display"].(string); ok {
		for line := range strings.SplitSeq(text, "\n") {
			if role, said, ok := strings.Cut(line, ": "); ok && (role == "user" || role == "assistant") {
				b.message(role, session.Text(said))
			}
		}
	}
	if question, ok := record["instruction"].(string); ok {
		b.message(session.RoleUser, session.Text(question))
		b.message(session.RoleAssistant, session.Text(fmt.Sprint(record["output"])))
	}
	return b.entries
}

var foreignRoles = map[string]session.MessageRole{
	"human": session.RoleUser, "gpt": session.RoleAssistant, "function_call": session.RoleAssistant, "observation": session.RoleUser,
	"user": session.RoleUser, "assistant": session.RoleAssistant, "system": session.RoleSystem, "tool": session.RoleTool,
}

// foreign adds a message in another's form.
func (b *builder) foreign(m map[string]any) {
	role, _ := m["role"].(string)
	if role == "" {
		role, _ = m["from"].(string)
	}
	var content []session.Content
	switch said := m["content"].(type) {
	case string:
		content = append(content, session.Text(said))
	case []any:
		for _, part := range said {
			if text, ok := part.(map[string]any)["value"].(string); ok {
				content = append(content, session.Text(text))
			}
		}
	default:
		if text, ok := m["value"].(string); ok {
			content = append(content, session.Text(text))
		}
	}
	calls, _ := m["tool_calls"].([]any)
	for _, call := range calls {
		function, _ := call.(map[string]any)["function"].(map[string]any)
		var input map[string]any
		_ = json.Unmarshal([]byte(fmt.Sprint(function["arguments"])), &input)
		content = append(content, session.ToolUse(fmt.Sprint(call.(map[string]any)["id"]), fmt.Sprint(function["name"]), input))
	}
	if id, ok := m["tool_call_id"].(string); ok && len(content) > 0 {
		content = []session.Content{session.ToolResult(id, content[0].Text.Content, false)}
	}
	if len(content) > 0 {
		b.message(foreignRoles[role], content...)
	}
}

// joined makes long conversations of short ones, one after the other.
func joined(conversations [][]session.Entry, messages int) [][]session.Entry {
	var long [][]session.Entry
	b := &builder{}
	for _, entries := range conversations {
		for _, e := range entries {
			if e.Message.Role == session.RoleSystem && len(b.entries) > 0 {
				continue // the prompt is there once
			}
			b.message(e.Message.Role, e.Message.Content...)
		}
		if len(b.entries) >= messages {
			long = append(long, b.entries)
			b = &builder{}
		}
	}
	return long
}
