package provider_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
)

// shapes returns a conversation in few words, one message each.
func shapes(entries []session.Entry) []string {
	var list []string
	for _, e := range entries {
		line := e.Message.Role + ":"
		for _, c := range e.Message.Content {
			switch {
			case c.Text != nil:
				line += " " + c.Text.Content
			case c.Thinking != nil:
				line += " (" + c.Thinking.Content + "/" + c.Thinking.Signature + ")"
			case c.ToolUse != nil:
				line += " " + c.ToolUse.ID + "=" + c.ToolUse.Name
			case c.ToolResult != nil:
				line += " " + c.ToolResult.ToolUseID + ">" + c.ToolResult.Content
			default:
				line += " [" + string(c.Type) + "]"
			}
		}
		list = append(list, line)
	}
	return list
}

func TestOpenAIChatMeaning(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body string
		want       []string
	}{
		{"OpenAI string (R165)", `[{"role":"user","content":"hi"}]`, []string{"user: hi"}},
		{"OpenAI parts (R165)", `[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"u"}}]}]`, []string{"user: hi [image]"}},
		{"developer is a system", `[{"role":"developer","content":"d"}]`, []string{"system: d"}},
		{"results in any order", `[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]},{"role":"tool","tool_call_id":"b","content":"2"},{"role":"tool","tool_call_id":"a","content":"1"}]`, []string{"assistant: a=f b=g", "tool: b>2", "tool: a>1"}},
		{"ids that are empty", `[{"role":"assistant","tool_calls":[{"id":"","function":{"name":"f","arguments":"{}"}},{"id":"","function":{"name":"g","arguments":"{}"}}]},{"role":"tool","tool_call_id":"","content":"1"},{"role":"tool","tool_call_id":"","content":"2"}]`, []string{"assistant: call_auto_1=f call_auto_2=g", "tool: call_auto_1>1", "tool: call_auto_2>2"}},
		{"a call that was never answered", `[{"role":"assistant","function_call":{"name":"f","arguments":"{}"}},{"role":"user","content":"x"},{"role":"assistant","function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"2"}]`, []string{"assistant: call_auto_1=f", "user: x", "assistant: call_auto_2=f", "tool: call_auto_2>2"}},
		{"an answer to nothing", `[{"role":"function","name":"f","content":"2"}]`, []string{"tool: call_auto_1>2"}},
		{"thinking", `[{"role":"assistant","reasoning_content":"hm","content":"x"}]`, []string{"assistant: (hm/) x"}},
		{"details", `[{"role":"assistant","reasoning_details":[{"type":"reasoning.text","text":"a"},{"type":"reasoning.summary","summary":"b"}]}]`, []string{"assistant: (ab/)"}},
		{"refusal", `[{"role":"assistant","content":null,"refusal":"no"}]`, []string{"assistant: no"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := openai.DecodeChat([]byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, shapes(b.Entries)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOpenAIResponsesMeaning(t *testing.T) {
	t.Parallel()
	b, err := openai.DecodeResponses([]byte(`{"instructions":"s","input":[{"role":"user","content":"q"},` +
		`{"type":"reasoning","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"E"},` +
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look"}]},` +
		`{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},{"type":"custom_tool_call","call_id":"c2","name":"sh","input":"ls"},` +
		`{"type":"function_call_output","call_id":"c1","output":"1"},{"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"2"}]},` +
		`{"type":"web_search_call"},{"role":"assistant","content":"done"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"system: s", "user: q", "assistant: (a\n\nb/E) I look c1=f c2=sh", "tool: c1>1", "tool: c2>2", "assistant: [web_search_call] done",
	}
	if diff := cmp.Diff(want, shapes(b.Entries)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOpenAIChatResponse(t *testing.T) {
	t.Parallel()
	b, err := openai.DecodeChat([]byte(`{"id":"c1","object":"chat.completion","created":1767323045,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"},{"index":1,"message":{"role":"assistant","content":"b"},"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	e := b.Entries[0]
	if b.Kind != provider.KindResponse || e.Timestamp.Unix() != 1767323045 || e.Message.ResponseID != "c1" || e.Message.Model != "m" ||
		e.Message.StopReason != provider.StopEndTurn || e.Message.Usage.Input != 5 {
		t.Errorf("the answer is %+v", e.Message)
	}
	if len(b.Alternatives) != 1 || b.Alternatives[0][0].Message.Usage != nil || b.Alternatives[0][0].Message.StopReason != provider.StopMaxTokens {
		t.Errorf("the alternatives are %+v", b.Alternatives)
	}
}

func TestOpenAIDecoders(t *testing.T) {
	t.Parallel()
	var d openai.ChatDecoder
	if e, err := d.Message([]byte(`{"role":"user","content":"x"}`)); err != nil || shapes([]session.Entry{e})[0] != "user: x" {
		t.Errorf("%+v, %v", e, err)
	}
	for _, bad := range []string{`{`, `7`} {
		if _, err := d.Message([]byte(bad)); err == nil {
			t.Errorf("%s is a message", bad)
		}
	}
	entries, err := openai.DecodeItem([]byte(`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`))
	if err != nil || len(entries) != 1 || shapes(entries)[0] != "assistant: c=f" {
		t.Errorf("%v, %v", entries, err)
	}
	if _, err := openai.DecodeItem([]byte(`{`)); err == nil {
		t.Error("half an item was read")
	}
}

// TestOpenAIReasoningOption: thinking of another provider is left out unless there is
// a member for it.
func TestOpenAIReasoningOption(t *testing.T) {
	t.Parallel()
	entries := []session.Entry{{Type: session.TypeMessage, ID: "a", Message: &session.MessageEntry{Role: "assistant", Content: []session.Content{
		{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "hm", Signature: "S"}}, session.Text("x"),
	}}}}
	for option, want := range map[string]string{
		"": `[{"role":"assistant","content":"x"}]`, "reasoning": `[{"role":"assistant","content":"x","reasoning":"hm"}]`,
	} {
		m, err := openai.EncodeChat(entries, &openai.ChatOptions{Reasoning: option})
		if err != nil || string(m.Fields[0].Value) != want || len(m.Notes) != 1 || !strings.Contains(m.Notes[0].What, "thinking") {
			t.Errorf("%q: %s, %v, notes %v", option, m.Fields[0].Value, err, m.Notes)
		}
	}
}

// TestOpenAIEdited: what was changed after it was read is written as it is now, not as
// it was.
func TestOpenAIEdited(t *testing.T) {
	t.Parallel()
	b, err := openai.DecodeChat([]byte(`[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}]},{"role":"tool","tool_call_id":"c","content":"r"}]`))
	if err != nil {
		t.Fatal(err)
	}
	b.Entries[0].Message.Content[0].ToolUse.Input["a"] = "new"
	b.Entries[1].Message.Content[0].ToolResult.Content = "cleared"
	m, err := openai.EncodeChat(b.Entries, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(m.Fields[0].Value); !strings.Contains(got, `{\"a\":\"new\"}`) || !strings.Contains(got, "cleared") {
		t.Error(got)
	}
}
