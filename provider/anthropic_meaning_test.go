package provider_test

import (
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/provider/internal/wiretest"
	"github.com/coppice-dev/coppice/session"
)

func TestAnthropicSplit(t *testing.T) {
	t.Parallel()
	b, err := anthropic.Decode([]byte(`{"system":"s","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"2"}],"is_error":true},{"type":"text","text":"and now?"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	roles := ""
	for _, e := range b.Entries {
		roles += e.Message.Role + " "
	}
	if roles != "system tool user " {
		t.Errorf("the roles are %s", roles)
	}
	results := b.Entries[1].Message.Content
	if len(results) != 2 || !results[1].ToolResult.IsError || results[1].ToolResult.Content != "2" || results[1].ToolResult.Parts != nil {
		t.Errorf("the results are %+v", results)
	}
}

func TestAnthropicDecodeMessage(t *testing.T) {
	t.Parallel()
	entries, err := anthropic.DecodeMessage([]byte(`{"id":"m1","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	m := entries[0].Message
	if m.ResponseID != "m1" || m.Model != "claude" || m.Provider != "anthropic" || m.StopReason != provider.StopEndTurn || m.Usage.Output != 2 {
		t.Errorf("%+v", m)
	}
	for _, bad := range []string{`[]`, `{`, `{"messages":[]}`} {
		if _, err := anthropic.DecodeMessage([]byte(bad)); err == nil {
			t.Errorf("%s is a message", bad)
		}
	}
}

func TestAnthropicDecodeContent(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`"hi"`, `[{"type":"text","text":"hi"}]`} {
		blocks, err := anthropic.DecodeContent([]byte(text))
		if err != nil || len(blocks) != 1 || blocks[0].Text.Content != "hi" {
			t.Errorf("%s: %+v, %v", text, blocks, err)
		}
	}
	for _, bad := range []string{`{`, `7`} {
		if _, err := anthropic.DecodeContent([]byte(bad)); err == nil {
			t.Errorf("%s is content", bad)
		}
	}
}

// TestAnthropicThinking: thinking goes back to its own provider only, and only if it is
// signed.
func TestAnthropicThinking(t *testing.T) {
	t.Parallel()
	block := func(signature, redacted string) session.Content {
		return session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "hm", Signature: signature, Redacted: redacted}}
	}
	foreign := block("S", "")
	foreign.Extra = session.Fields{{Name: "openai_responses", Value: []byte(`{}`)}}
	tests := []struct {
		name  string
		maker string
		block session.Content
		sent  bool
	}{
		{"signed by nobody in particular", "", block("S", ""), true},
		{"signed", "anthropic", block("S", ""), true},
		{"redacted", "anthropic", block("", "R"), true},
		{"unsigned", "anthropic", block("", ""), false},
		{"of another maker", "openai", block("S", ""), false},
		{"of another format", "", foreign, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := anthropic.Encode([]session.Entry{{Message: &session.MessageEntry{
				Role: "assistant", Provider: tt.maker, Content: []session.Content{tt.block, session.Text("x")},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			if sent := strings.Contains(string(m.Request(nil)), "thinking"); sent != tt.sent || sent == (len(m.Notes) == 1) {
				t.Errorf("%s, notes %v", m.Request(nil), m.Notes)
			}
		})
	}
}

// TestAnthropicProviderBlocks: blocks of the provider's own tools are sent back even if
// nothing says that they are from here.
func TestAnthropicProviderBlocks(t *testing.T) {
	t.Parallel()
	raw := `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`
	m, err := anthropic.Encode([]session.Entry{{Message: &session.MessageEntry{
		Role: "assistant", Content: []session.Content{{Type: "server_tool_use", Raw: []byte(raw)}},
	}}})
	if err != nil || len(m.Notes) > 0 || !strings.Contains(string(m.Request(nil)), raw) {
		t.Errorf("%s, %v, notes %v", m.Request(nil), err, m.Notes)
	}
}

// TestAnthropicSourceElsewhere: the media type goes along with bytes only. With a URL the
// provider refuses it.
func TestAnthropicSourceElsewhere(t *testing.T) {
	t.Parallel()
	image := func(kind, data string) session.Content {
		return session.Content{Type: session.ContentTypeImage, Image: &session.ImageContent{
			Source: &session.Source{Type: kind, MediaType: "image/png", Data: data},
		}}
	}
	data := map[string]string{provider.SourceBase64: pixel, provider.SourceURL: "https://example.com/a.png", provider.SourceFile: "file_1"}
	for kind, sent := range map[string]bool{provider.SourceBase64: true, provider.SourceURL: false, provider.SourceFile: false} {
		entries := []session.Entry{{Message: &session.MessageEntry{Role: "user", Content: []session.Content{image(kind, data[kind])}}}}
		m, err := anthropic.Encode(entries)
		if err != nil {
			t.Fatal(err)
		}
		request := m.Request(nil)
		if strings.Contains(string(request), "media_type") != sent || len(anthropic.Check(request)) > 0 {
			t.Errorf("%s: %s, faults %v", kind, request, anthropic.Check(request))
		}
	}
}

// TestAnthropicEmptyResult: a tool that says nothing has a result without content.
func TestAnthropicEmptyResult(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", " \n"} {
		m, err := anthropic.Encode([]session.Entry{
			{Message: &session.MessageEntry{Role: "assistant", Content: []session.Content{session.ToolUseJSON("c", "f", []byte(`{}`))}}},
			{Message: &session.MessageEntry{Role: "tool", Content: []session.Content{session.ToolResult("c", text, true)}}},
		})
		if err != nil || !strings.Contains(string(m.Request(nil)), `{"type":"tool_result","tool_use_id":"c","is_error":true}`) {
			t.Errorf("%s, %v", m.Request(nil), err)
		}
	}
}

func TestAnthropicFold(t *testing.T) {
	t.Parallel()
	stream := `event: message_start
data: {"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":3,"output_tokens":1}}}

event: ping
data: {"type":"ping"}

data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"S"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hel"}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"lo"}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"type":"page"}}}

data: {"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"of no block"}}

data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}

data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t2","name":"f","input":{}}}

data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9}}

data: {"type":"message_stop"}
`
	want := `{"id":"m1","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"S"},{"type":"text","text":"Hello","citations":[{"type":"page"}]},{"type":"tool_use","id":"t1","name":"f","input":{}},{"type":"tool_use","id":"t2","name":"f","input":"{\"a\":"}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":9}}`
	got, err := anthropic.Fold(strings.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	if diff := wiretest.Diff([]byte(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := anthropicCodec.RoundTrip(got); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "data: {\n\n", "data: {\"type\":\"error\",\"error\":{}}\n\n", "data: {\"type\":\"ping\"}\n\n"} {
		if got, err := anthropic.Fold(strings.NewReader(bad)); err == nil {
			t.Errorf("%q became %s", bad, got)
		}
	}
}

func FuzzAnthropicFold(f *testing.F) {
	f.Add("data: {\"type\":\"message_start\",\"message\":{\"type\":\"message\",\"role\":\"assistant\"}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		if folded, err := anthropic.Fold(strings.NewReader(stream)); err == nil {
			if _, err := anthropic.Decode(folded); err != nil && !strings.Contains(err.Error(), "anthropic:") {
				t.Errorf("%s: %v", folded, err)
			}
		}
	})
}
