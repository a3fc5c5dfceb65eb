package provider_test

import (
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/provider/internal/wiretest"
	"github.com/coppice-dev/coppice/provider/openai"
)

func TestOpenAIFoldChat(t *testing.T) {
	t.Parallel()
	stream := `: comment

event: chunk
data: {"id":"c1","object":"chat.completion.chunk","model":"m","system_fingerprint":"fp","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x"}

data: {"id":"c1","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":"Hel","reasoning_details":[{"type":"reasoning.text","text":"h","index":0}]},"logprobs":{"content":[{"token":"Hel"}]},"finish_reason":null}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"content":"lo","role":"assistant","reasoning_details":[{"type":"reasoning.text","text":"m","index":0},{"type":"reasoning.encrypted","data":"E"}]},"logprobs":{"content":[{"token":"lo"}]}}]}

data: {"id":"c1","choices":[{"index":1,"delta":{"role":"assistant","tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":""}},{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\""}}]}}]}

data: {"id":"c1","choices":[{"index":1,"delta":{"tool_calls":[{"index":0,"id":"","type":null,"function":{"arguments":":1}"}},{"index":1,"function":{"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}

data: {"ping":true}

data: {"id":"c1",
data: "choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}

data: [DONE]
`
	want := `{"id":"c1","object":"chat.completion","model":"m","system_fingerprint":"fp","usage":{"prompt_tokens":1},"choices":[` +
		`{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Hello","refusal":null,"reasoning_details":[{"type":"reasoning.text","text":"hm","index":0},{"type":"reasoning.encrypted","data":"E"}]},"logprobs":{"content":[{"token":"Hel"},{"token":"lo"}]}},` +
		`{"index":1,"finish_reason":"tool_calls","message":{"role":"assistant","tool_calls":[{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}},{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]}}]}`
	got, err := openai.FoldChat(strings.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	if diff := wiretest.Diff([]byte(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOpenAIFoldResponses(t *testing.T) {
	t.Parallel()
	begin := `event: response.created
data: {"type":"response.created","response":{"id":"r1","object":"response","status":"in_progress","output":[]}}

event: response.output_item.done
data: {"type":"response.output_item.done","item":{"type":"message","role":"assistant","content":[]}}

`
	end := `event: response.completed
data: {"type":"response.completed","response":{"id":"r1","object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}]}}
`
	for _, tt := range []struct{ stream, want string }{
		{begin + end, `{"id":"r1","object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}]}`},
		{begin, `{"id":"r1","object":"response","status":"in_progress","output":[{"type":"message","role":"assistant","content":[]}]}`},
	} {
		got, err := openai.FoldResponses(strings.NewReader(tt.stream))
		if err != nil {
			t.Fatal(err)
		}
		if diff := wiretest.Diff([]byte(tt.want), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestOpenAIFoldRefuses(t *testing.T) {
	t.Parallel()
	for _, stream := range []string{"", "data: {\n\n", "data: 7\n\n", "data: {\"type\":\"error\",\"error\":{\"message\":\"no\"}}\n\n"} {
		if got, err := openai.FoldChat(strings.NewReader(stream)); err == nil {
			t.Errorf("chat: %q became %s", stream, got)
		}
		if got, err := openai.FoldResponses(strings.NewReader(stream)); err == nil {
			t.Errorf("responses: %q became %s", stream, got)
		}
	}
}

func FuzzOpenAIFold(f *testing.F) {
	f.Add("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"y\"}}]}\n\n")
	f.Add("data: {\"type\":\"response.completed\",\"response\":{\"output\":[]}}\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		if folded, err := openai.FoldChat(strings.NewReader(stream)); err == nil {
			if _, err := openai.DecodeChat(folded); err != nil && !strings.Contains(err.Error(), "choice") {
				t.Errorf("%s: %v", folded, err)
			}
		}
		if folded, err := openai.FoldResponses(strings.NewReader(stream)); err == nil {
			if _, err := openai.DecodeResponses(folded); err != nil && !strings.Contains(err.Error(), "neither") {
				t.Errorf("%s: %v", folded, err)
			}
		}
	})
}
