package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// schema is docs/session.schema.json with just enough of JSON Schema to check a
// line against it.
type schema struct{ root map[string]any }

func readSchema(t rapid.TB) *schema {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "session.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	root, ok := decodeAny(t, text).(map[string]any)
	if !ok {
		t.Fatal("the schema is not an object")
	}
	return &schema{root}
}

func decodeAny(t rapid.TB, text []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// check returns why a value is not what the schema says, or "".
func (s *schema) check(v any) string { return s.follow(s.root, v, "") }

func (s *schema) follow(rules any, v any, at string) string {
	r, ok := rules.(map[string]any)
	if !ok {
		return fmt.Sprintf("%s: the schema has %v in place of a schema", at, rules)
	}
	for _, keyword := range slices.Sorted(maps.Keys(r)) {
		if why := s.keyword(r, keyword, v, at); why != "" {
			return why
		}
	}
	return ""
}

func (s *schema) keyword(r map[string]any, keyword string, v any, at string) string {
	arg := r[keyword]
	switch keyword {
	case "$schema", "$defs", "title", "description", "then", "else":
	case "$ref":
		name := strings.TrimPrefix(arg.(string), "#/$defs/")
		def, ok := s.root["$defs"].(map[string]any)[name]
		if !ok {
			return fmt.Sprintf("%s: the schema has no %s", at, name)
		}
		return s.follow(def, v, at)
	case "if":
		branch := "then"
		if s.follow(arg, v, at) != "" {
			branch = "else"
		}
		if next, ok := r[branch]; ok {
			return s.follow(next, v, at)
		}
	case "allOf":
		for _, rules := range arg.([]any) {
			if why := s.follow(rules, v, at); why != "" {
				return why
			}
		}
	case "anyOf":
		var why []string
		for _, rules := range arg.([]any) {
			no := s.follow(rules, v, at)
			if no == "" {
				return ""
			}
			why = append(why, no)
		}
		return strings.Join(why, "; ")
	case "not":
		if s.follow(arg, v, at) == "" {
			return fmt.Sprintf("%s: %v is what it must not be", at, v)
		}
	case "properties", "required", "items":
		return s.structure(keyword, arg, v, at)
	default:
		return checkValue(keyword, arg, v, at)
	}
	return ""
}

// structure checks what is inside objects and arrays. Each rule is for one of
// them, and says nothing of other values.
func (s *schema) structure(keyword string, arg, v any, at string) string {
	object, _ := v.(map[string]any)
	list, _ := v.([]any)
	switch {
	case keyword == "items":
		for i, element := range list {
			if why := s.follow(arg, element, fmt.Sprintf("%s[%d]", at, i)); why != "" {
				return why
			}
		}
	case object == nil:
	case keyword == "required":
		for _, name := range arg.([]any) {
			if _, ok := object[name.(string)]; !ok {
				return fmt.Sprintf("%s: %s is missing", at, name)
			}
		}
	default:
		for name, rules := range arg.(map[string]any) {
			if member, ok := object[name]; ok {
				if why := s.follow(rules, member, at+"."+name); why != "" {
					return why
				}
			}
		}
	}
	return ""
}

func checkValue(keyword string, arg, v any, at string) string {
	text, isString := v.(string)
	number, isNumber := v.(json.Number)
	ok := true
	switch keyword {
	case "type":
		ok = isOneOf(arg, v)
	case "const":
		ok = reflect.DeepEqual(arg, v)
	case "minLength":
		least, err := arg.(json.Number).Int64()
		ok = err == nil && (!isString || int64(utf8.RuneCountInString(text)) >= least)
	case "pattern":
		ok = !isString || regexp.MustCompile(arg.(string)).MatchString(text)
	case "minimum":
		if isNumber {
			least, _ := arg.(json.Number).Float64()
			n, err := number.Float64()
			ok = err == nil && n >= least
		}
	default:
		return fmt.Sprintf("%s: this test does not know the keyword %s", at, keyword)
	}
	if !ok {
		return fmt.Sprintf("%s: %s: %v, not %v", at, keyword, arg, v)
	}
	return ""
}

func isOneOf(types, v any) bool {
	if list, ok := types.([]any); ok {
		return slices.ContainsFunc(list, func(one any) bool { return isOneOf(one, v) })
	}
	switch v := v.(type) {
	case nil:
		return types == "null"
	case bool:
		return types == "boolean"
	case string:
		return types == "string"
	case []any:
		return types == "array"
	case map[string]any:
		return types == "object"
	case json.Number:
		_, err := v.Int64()
		return types == "number" || types == "integer" && err == nil
	}
	return false
}

// checkLog holds every line of a log against the schema.
func (s *schema) checkLog(t rapid.TB, log store.Log) {
	t.Helper()
	for line, err := range log.Forward(context.Background(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if why := s.check(decodeAny(t, line.Data)); why != "" {
			t.Errorf("%s\nin %s", why, line.Data)
		}
	}
}

// oddVectors have lines that a reader accepts and a writer must not write.
var oddVectors = []string{
	"content-defaults", "content-parts-string", "content-wrong-kinds", "damage-written-again-no-parent", "edit-missing-replacement", "header-none-nothing", "header-odd-version", "lines-older-forms", "lines-member-twice", "lines-no-id", "lines-wrong-kinds", "merge-odd-ids", "remarks-label-without-target", "state-kept-revert-of-nothing", "tree-empty-parent",
}

// TestSchemaFitsVectors checks the good lines of the vectors, and that the schema
// refuses what only readers accept.
func TestSchemaFitsVectors(t *testing.T) {
	s := readSchema(t)
	for _, name := range vectorNames(t) {
		text, err := os.ReadFile(filepath.Join(vectorDir, name, "session.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		refused := ""
		for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))) {
			if !json.Valid(line) || !bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) {
				continue // damage
			}
			if why := s.check(decodeAny(t, line)); why != "" {
				refused = fmt.Sprintf("%s\nin %s", why, line)
			}
		}
		odd := slices.Contains(oddVectors, name)
		switch {
		case refused != "" && !odd:
			t.Errorf("%s: %s", name, refused)
		case refused == "" && odd:
			t.Errorf("%s: the schema accepts all of it", name)
		}
	}
}

// TestSchemaFitsWriter writes every type of entry and of content.
func TestSchemaFitsWriter(t *testing.T) {
	st := memory.New(nil)
	s, err := session.Create(t.Context(), st, session.Header{
		ParentSession: "other", Relation: session.RelationContinuation, Continuation: 2, CWD: "/home", Key: "telegram:1",
	}, &session.Options{BlobThreshold: 64})
	mustVector(t, err)
	defer s.Close()
	long := strings.Repeat("QUJD", 100)
	source := &session.Source{Type: "base64", MediaType: "image/png", Data: long}
	tokens := 7
	id := func(id string, err error) string {
		t.Helper()
		mustVector(t, err)
		return id
	}
	id(s.AppendModelChange("acme", "large-1"))
	id(s.AppendThinkingLevelChange("high"))
	system := id(s.AppendMessage(session.RoleSystem, []session.Content{session.Text("Be brief.")}))
	asked := id(s.AppendMessage(session.RoleUser, []session.Content{
		session.Text("Look."),
		{Type: session.ContentTypeImage, Image: &session.ImageContent{Source: source}},
		{Type: session.ContentTypeAudio, Audio: &session.AudioContent{Source: source}},
		{Type: session.ContentTypeFile, File: &session.FileContent{Name: "a.pdf", Source: source}},
	}))
	_, err = s.AppendAll(
		session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
			Role: session.RoleAssistant, Model: "large-1", Provider: "acme", Category: "DIALOG", Tokens: &tokens,
			Usage:      &session.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 1, CostMicroUSD: 5},
			StopReason: "tool_use", ResponseID: "r1", Metadata: map[string]any{"a": 1},
			Content: []session.Content{
				{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "hm", Signature: "s", Redacted: "r"}},
				session.ToolUse("call-1", "read", map[string]any{"path": "a"}), session.ToolUse("call-2", "list", nil),
			},
		}},
		session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{Role: session.RoleTool, Content: []session.Content{
			session.ToolResult("call-1", long, false),
			{Type: session.ContentTypeToolResult, ToolResult: &session.ToolResultContent{
				ToolUseID: "call-2", Content: "ab", IsError: true, Parts: []session.Content{session.Text("ab"), session.Image("image/png", long)},
			}},
		}}},
	)
	mustVector(t, err)
	id(s.SetLabel(asked, "question"))
	id(s.SetLabel(asked, ""))
	id(s.AppendSessionInfo("A name"))
	id(s.AppendCustomEntry("example", nil))
	id(s.AppendEntry(session.Tags("a", "b")))
	id(s.AppendEntry(session.ContextEdit(system)))
	id(s.AppendEntry(session.ContextEdit(asked, session.Text(long))))
	left := s.LeafID()
	again := id(s.AppendMessage(session.RoleUser, []session.Content{session.Text("Go on.")}))
	id(s.AppendCompaction("What was said.", again, 100))
	id(s.Undo())
	id(s.BranchWithSummary(left, "It went nowhere."))
	id(s.AppendEntry(session.Merge(again, "What came of it.", again)))
	mustVector(t, s.Branch(again))
	mustVector(t, s.ResetLeaf())
	log, err := st.Open(t.Context(), s.ID())
	mustVector(t, err)
	defer log.Close()
	readSchema(t).checkLog(t, log)
	missing := typesIn(t, log)
	if len(missing) > 0 {
		t.Errorf("no entry of the types %v was written", missing)
	}
}

// typesIn returns the types of which a log has no entry.
func typesIn(t *testing.T, log store.Log) []string {
	t.Helper()
	types := []string{
		"session", "message", "model_change", "thinking_level", "label", "session_info", "compaction", "branch_summary",
		"custom", "leaf", "context_edit", "revert", "merge",
	}
	for line, err := range log.Forward(context.Background(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		of := decodeAny(t, line.Data).(map[string]any)["type"]
		types = slices.DeleteFunc(types, func(one string) bool { return one == of })
	}
	return types
}

// TestSchemaRefuses makes sure that the schema, and the test's reading of it, say
// something at all.
func TestSchemaRefuses(t *testing.T) {
	s := readSchema(t)
	const head = `"id":"a","parent_id":null,"timestamp":"2026-01-05T09:00:02.000Z"`
	for _, line := range []string{
		`{}`, `[]`, `{"type":"session"}`,
		`{"type":"session","id":"s","version":"1","timestamp":"2026-01-05T09:00:02.000Z"}`,
		`{"type":"message",` + head + `}`,
		`{"type":"message",` + head + `,"message":{"role":"user"}}`,
		`{"type":"message",` + head + `,"message":{"role":"user","content":"text"}}`,
		`{"type":"message",` + head + `,"message":{"role":"user","content":[{"type":"text","text":{}}]}}`,
		`{"type":"message",` + head + `,"message":{"role":"user","content":[],"tokens":-1}}`,
		`{"type":"message",` + head + `,"message":{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"x","is_error":false}}]}}`,
		`{"type":"message",` + head + `,"message":{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"x","is_error":false,"blob":"md5:1","size":1}}]}}`,
		`{"type":"leaf",` + strings.Replace(head, "02.000Z", "02Z", 1) + `,"leaf":{}}`,
		`{"type":"leaf",` + strings.Replace(head, "null", `""`, 1) + `,"leaf":{}}`,
		`{"type":"context_edit",` + head + `,"context_edit":{"target_id":"b"}}`,
		`{"type":"merge",` + head + `,"merge":{"from_id":"b","entry_ids":[""]}}`,
	} {
		if s.check(decodeAny(t, []byte(line))) == "" {
			t.Errorf("accepted: %s", line)
		}
	}
	for _, line := range []string{
		`{"type":"hologram",` + head + `,"x":1}`,
		`{"type":"message",` + head + `,"message":{"role":"user","content":[{"type":"hologram"},{"type":"text"},7],"x":1},"y":2}`,
	} {
		if why := s.check(decodeAny(t, []byte(line))); why != "" {
			t.Errorf("%s\nin %s", why, line)
		}
	}
}
