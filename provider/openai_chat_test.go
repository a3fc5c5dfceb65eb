package provider_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wiretest"
	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

// chatBodies are bodies with every quirk of the format. Each must come back with
// equal values.
var chatBodies = map[string]string{
	"request":                `{"model":"gpt-5","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi","name":"bob"}],"temperature":0,"tools":[{"type":"function"}]}`,
	"developer":              `[{"role":"developer","content":"d"}]`,
	"empty list":             `[]`,
	"empty string":           `[{"role":"user","content":""}]`,
	"null content":           `[{"role":"user","content":null},{"role":"assistant","content":null},{"role":"tool","content":null,"tool_call_id":"x"}]`,
	"no content":             `[{"role":"user"},{"role":"assistant"},{"role":"tool","tool_call_id":"x"}]`,
	"content of wrong kind":  `[{"role":"user","content":5},{"role":"assistant","content":{"a":1}}]`,
	"no role":                `[{"content":"x"}]`,
	"unknown role":           `[{"role":"ipython","content":"x"}]`,
	"role of wrong kind":     `[{"role":7,"content":"x"}]`,
	"one part":               `[{"role":"user","content":[{"type":"text","text":"a"}]}]`,
	"no parts":               `[{"role":"user","content":[]},{"role":"assistant","content":[]},{"role":"tool","tool_call_id":"x","content":[]},{"role":"tool","tool_call_id":"x","content":[{"type":"text","text":""}]},{"role":"tool","tool_call_id":"x","content":""}]`,
	"parts":                  `[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"image_url","image_url":{"url":"https://x/y.png","detail":"low"}},{"type":"image_url","image_url":"data:image/png;base64,AAAA"},{"type":"input_audio","input_audio":{"data":"BBBB","format":"wav"}},{"type":"file","file":{"file_id":"f1"}},{"type":"file","file":{"file_data":"data:application/pdf;base64,CCCC","filename":"a.pdf"}},{"type":"video_url","video_url":{"url":"v"}},"bare",{"type":"text"},{"type":"image_url"},{"type":"file","file":{"file_data":"CCCC","filename":""}},{"type":"file","file":{"file_id":"f","filename":""}}]}]`,
	"data url with charset":  `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/svg+xml;charset=utf8;base64,AAAA"}},{"type":"image_url","image_url":{"url":"data:,x"}}]}]`,
	"calls":                  `[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}},{"id":"c2","type":"function","function":{"name":"g","arguments":"{}"},"index":1}]},{"role":"tool","tool_call_id":"c2","content":"two"},{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"one"}],"name":"f"}]`,
	"text and calls":         `[{"role":"assistant","content":"let me see","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}","thought_signature":"s"},"extra_content":{"google":{}}}]}]`,
	"no calls":               `[{"role":"assistant","content":"x","tool_calls":[]},{"role":"assistant","content":"x","tool_calls":null}]`,
	"arguments not JSON":     `[{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\": tru"}},{"id":"c2","type":"function","function":{"name":"f","arguments":""}},{"id":"c3","type":"function","function":{"name":"f","arguments":"[1]"}},{"id":"c4","type":"function","function":{"name":"f","arguments":"{\n \"a\": 12345678901234567890\n}"}}]}]`,
	"calls without ids":      `[{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}},{"id":"","type":"function","function":{"name":"g","arguments":"{}"}},{"id":"z","function":{"name":"g","arguments":"{}"}}]},{"role":"tool","tool_call_id":"","content":"1"},{"role":"tool","content":"2","name":"g"}]`,
	"arguments no text":      `[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":{"a":1}}}]},{"role":"tool","tool_call_id":"c1","content":"r"}]`,
	"malformed calls":        `[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":{"a":1}}},{"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}},{"id":"c3","type":"retrieval"},7]}]`,
	"custom tool":            `[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"custom","custom":{"name":"shell","input":"ls -l\n"}}]},{"role":"tool","tool_call_id":"c1","content":"ok"}]`,
	"old functions":          `[{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"a\":1}"}},{"role":"function","name":"f","content":"r"},{"role":"assistant","content":null,"function_call":null},{"role":"assistant","content":"","function_call":{"name":"f"}},{"role":"assistant","content":null,"function_call":{"name":"f","arguments":{"a": 1}}},{"role":"assistant","content":null,"function_call":{"arguments":7}},{"role":"assistant","content":"x","function_call":{"arguments":"{}"}}]`,
	"refusal":                `[{"role":"assistant","content":null,"refusal":"no"},{"role":"assistant","content":"x","refusal":null},{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]},{"role":"assistant","refusal":""}]`,
	"audio":                  `[{"role":"assistant","content":null,"audio":{"id":"a1"}},{"role":"assistant","content":null,"audio":{"id":"a1","expires_at":5,"data":"AAAA","transcript":"hello"}}]`,
	"annotations":            `[{"role":"assistant","content":"see","annotations":[{"type":"url_citation","url_citation":{"url":"u"}}]}]`,
	"reasoning_content":      `[{"role":"assistant","reasoning_content":"hm","content":"x"},{"role":"assistant","reasoning_content":"","content":"x"},{"role":"assistant","reasoning_content":null,"content":"x"}]`,
	"reasoning":              `[{"role":"assistant","reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","signature":"s"}],"content":"x"},{"role":"assistant","reasoning":"hm","reasoning_content":"hm","content":"x"}]`,
	"details only":           `[{"role":"assistant","reasoning_details":[{"type":"reasoning.summary","summary":"a"},{"type":"reasoning.encrypted","data":"d"}],"content":null},{"role":"assistant","reasoning_details":[],"content":"x"}]`,
	"big numbers":            `[{"role":"user","content":"x","n":12345678901234567890.125}]`,
	"single message":         `{"role":"user","content":"x"}`,
	"unknown part in result": `[{"role":"tool","tool_call_id":"c","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"weird"}]}]`,
	"unsafe names":           `[{"role":"assistant","content":null,"tool_calls":[{"id":"a|b","type":"function","function":{"name":"f.g","arguments":"{}"}},{"id":"c","type":"custom","custom":{"name":"x y","input":"i"}},{"id":"01234567890123456789012345678901234567890","type":"function","function":{"name":"","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a|b","content":"r"},{"role":"assistant","content":null,"function_call":{"name":"f.g","arguments":"{}"}}]`,
	"response":               `{"id":"c1","object":"chat.completion","created":5,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"logprobs":null,"finish_reason":"stop"},{"index":1,"message":{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},"finish_reason":"function_call"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"x":1},"service_tier":"default"}`,
	"odd response":           `{"id":"","model":7,"choices":[{"message":{"role":"user","content":"a"},"finish_reason":""}],"usage":null}`,
	"escaped and unicode":    `[{"role":"user","content":"<b>&\u2028 é 😀 \u0000"}]`,
}

var chat = wiretest.Codec{
	Decode: openai.DecodeChat, EncodeResponse: response("openai-chat"), List: "messages",
	Encode: func(entries []session.Entry) (*provider.Messages, error) {
		return openai.EncodeChatVerbatim(entries, nil)
	},
}

func TestOpenAIChatRoundTrip(t *testing.T) {
	t.Parallel()
	for name, body := range chatBodies {
		t.Run(name, func(t *testing.T) {
			if _, err := chat.RoundTrip([]byte(body)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOpenAIChatSamples(t *testing.T) {
	t.Parallel()
	for _, file := range wiretest.Samples("openai-chat/*.req*.json") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := chat.RoundTrip(data); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, file := range wiretest.Samples("openai-chat/*.sse.txt") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		folded, err := openai.FoldChat(bytes.NewReader(data))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		b, err := chat.RoundTrip(folded)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		n := wiretest.Count(b.Entries)
		if want := bytes.Count(data, []byte(`"type":"function"`)); n.Messages != 1 || n.Calls > want || (n.Calls > 0) != (want > 0) {
			t.Errorf("%s: %+v, want %d calls", file, n, want)
		}
		if b.Entries[0].Message.Usage == nil && strings.Contains(string(data), `"usage":{`) {
			t.Errorf("%s: no usage", file)
		}
	}
}

// TestOpenAIAnnotations: what an answer cites stays in the log. Requests have no such
// member, and strict servers refuse it.
func TestOpenAIAnnotations(t *testing.T) {
	t.Parallel()
	b, err := openai.DecodeChat([]byte(chatBodies["annotations"]))
	if err != nil {
		t.Fatal(err)
	}
	m, err := openai.EncodeChat(b.Entries, nil)
	if err != nil || strings.Contains(string(m.Request(nil)), "annotations") {
		t.Errorf("%s, %v", m.Request(nil), err)
	}
}

// TestOpenAIChatResponseOfTexts: an answer that another provider gave in two texts is one
// text here, and its time is not one long before there were computers.
func TestOpenAIChatResponseOfTexts(t *testing.T) {
	t.Parallel()
	answer := session.Entry{Message: &session.MessageEntry{Role: "assistant", Content: []session.Content{session.Text("One. "), session.Text("Two.")}}}
	body, notes, err := providertest.Response("openai-chat", answer)
	if err != nil || len(notes) > 0 || !strings.Contains(string(body), `"content":"One. Two."`) || !strings.Contains(string(body), `"created":0`) {
		t.Errorf("%s, %v, %v", body, notes, err)
	}
	body, _, err = providertest.Response("openai", answer)
	if err != nil || !strings.Contains(string(body), `"created_at":0`) {
		t.Errorf("%s, %v", body, err)
	}
}
