package provider_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/provider/internal/wiretest"
)

var anthropicCodec = wiretest.Codec{
	Decode: anthropic.Decode, Encode: anthropic.EncodeVerbatim, EncodeResponse: response("anthropic"), List: "messages",
}

// anthropicBodies have every block and quirk of the format. Each must come back with
// equal values.
var anthropicBodies = map[string]string{
	"request":               `{"model":"claude","max_tokens":10,"system":"be brief","messages":[{"role":"user","content":"hi"}],"tools":[]}`,
	"system blocks":         `{"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b"}],"messages":[]}`,
	"one system block":      `{"system":[{"type":"text","text":"a"}],"messages":[]}`,
	"odd systems":           `{"system":[{"type":"odd"}],"messages":[{"role":"user","content":"x"}]}`,
	"no system blocks":      `{"system":[],"messages":[]}`,
	"null system":           `{"system":null,"messages":[]}`,
	"contents":              `[{"role":"user","content":"s"},{"role":"user","content":[{"type":"text","text":"l"}]},{"role":"assistant","content":"s"},{"role":"assistant","content":[{"type":"text","text":"l"}]},{"role":"user","content":[]},{"role":"assistant","content":[]},{"role":"user","content":""},{"role":"user"},{"role":"assistant","content":null},{"role":"user","content":7},{"content":"x"}]`,
	"roles":                 `[{"role":"system","content":"x"},{"role":"user","content":"x"},{"role":"system","content":[{"type":"text","text":"y"}]},{"role":7,"content":"x"},{"role":"tool","content":"x"}]`,
	"members of a message":  `[{"role":"user","content":"x","id":"m1","n":12345678901234567890}]`,
	"text":                  `[{"role":"assistant","content":[{"type":"text","text":"a","citations":[{"type":"page"}]},{"type":"text","text":"","cache_control":null},{"type":"text","text":""},{"type":"text"},{"type":"text","text":{"content":"looks like ours"}},"bare"]}]`,
	"thinking":              `[{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"S"},{"type":"thinking","thinking":"","signature":"S"},{"type":"thinking","thinking":"hm","signature":""},{"type":"thinking","thinking":"hm"},{"type":"redacted_thinking","data":"D"},{"type":"redacted_thinking","data":""},{"type":"redacted_thinking"},{"type":"thinking","thinking":"hm","signature":null}]}]`,
	"calls":                 `[{"role":"assistant","content":[{"type":"text","text":"see"},{"type":"tool_use","id":"t1","name":"f","input":{"b":1,"a":12345678901234567890},"caller":{"type":"direct"}},{"type":"text","text":"and"},{"type":"tool_use","id":"t2","name":"f","input":{}},{"type":"tool_use","id":"t3","name":"f","input":"str"},{"type":"tool_use","id":"t4","name":"f"},{"type":"tool_use","id":"t5","name":"f","input":null}]}]`,
	"results":               `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"r"},{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"r"}],"is_error":true},{"type":"tool_result","tool_use_id":"t3","is_error":false},{"type":"tool_result","tool_use_id":"t4","content":[{"type":"text","text":"r"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"tool_reference","tool_name":"x"}],"cache_control":{"type":"ephemeral"}},{"type":"tool_result","tool_use_id":"t5","content":[]},{"type":"tool_result","tool_use_id":"t6","content":""},{"type":"tool_result","tool_use_id":"t6","content":[{"type":"text","text":""}]},{"type":"tool_result","tool_use_id":"t7","content":null},{"type":"tool_result","content":"no id"},{"type":"tool_result","tool_use_id":"t7","content":[{"type":"text","text":"r","x":1}]}]}]`,
	"a result as an object": `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":{"a":[1],"b":"x"}}]}]`,
	"results and words":     `[{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]},{"role":"user","content":[{"type":"text","text":"before"},{"type":"tool_result","tool_use_id":"t1","content":"r"},{"type":"text","text":"after"}],"x":1}]`,
	"results in two":        `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"r"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"r"}]},{"role":"user","content":[{"type":"text","text":"words"}]},{"role":"user","content":"more"}]`,
	"results, words, again": `[{"role":"user","content":[{"type":"text","text":"w"},{"type":"tool_result","tool_use_id":"t1","content":"r"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"r"},{"type":"text","text":"w"}]}]`,
	"a result by the model": `[{"role":"assistant","content":[{"type":"tool_result","tool_use_id":"t","content":"r"},{"type":"text","text":"x"}]}]`,
	"images":                `[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"image","source":{"type":"url","url":"https://x/y"}},{"type":"image","source":{"type":"file","file_id":"f"}},{"type":"image","source":{"type":"odd"}},{"type":"image"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA","x":1},"cache_control":{"type":"ephemeral"}},{"type":"image","source":"s"}]}]`,
	"documents":             `[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"},"title":"T","context":"c","citations":{"enabled":true}},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"words"},"title":""},{"type":"document","source":{"type":"content","content":"c"}},{"type":"document","source":{"type":"url","url":"u"},"title":null}]}]`,
	"provider's tools":      `[{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","url":"u"}]},{"type":"mcp_tool_use","id":"m","name":"n","server_name":"s","input":{}},{"type":"mcp_tool_result","tool_use_id":"m","is_error":false,"content":[]},{"type":"code_execution_tool_result","tool_use_id":"s1","content":{}},{"type":"container_upload","file_id":"f"}]},{"role":"user","content":[{"type":"search_result","source":"u","title":"t","content":[]},{"type":"text","text":"x"}]}]`,
	"response":              `{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":5,"cache_read_input_tokens":7,"output_tokens":11,"service_tier":"standard"},"container":null}`,
	"bare response":         `{"type":"message","role":"assistant","content":[],"stop_reason":null}`,
	"odd response":          `{"type":"message","role":"user","content":"x","usage":null,"id":7}`,
	"response of thinking":  `{"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"a"}]}`,
	"unsafe names":          `[{"role":"assistant","content":[{"type":"tool_use","id":"a|b","name":"f.g","input":{}},{"type":"tool_use","id":"","name":"","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a|b","content":"r"}]}]`,
	"one message":           `{"role":"user","content":"x"}`,
}

func TestAnthropicRoundTrip(t *testing.T) {
	t.Parallel()
	for name, body := range anthropicBodies {
		t.Run(name, func(t *testing.T) {
			if _, err := anthropicCodec.RoundTrip([]byte(body)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnthropicSamples(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"anthropic-messages/*.json", "anthropic-messages/*.sse.txt", "opencode-session-recordings/*anthropic*"} {
		for _, file := range wiretest.Samples(pattern) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.HasPrefix(data, []byte("event:")) {
				if data, err = anthropic.Fold(bytes.NewReader(data)); err != nil {
					t.Errorf("%s: %v", file, err)
					continue
				}
			}
			_, err = anthropicCodec.RoundTrip(data)
			if isError := strings.Contains(file, "__rejects-"); isError != (err != nil) {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// Fuzz checks that whatever can be decoded comes back.
func FuzzAnthropicMessages(f *testing.F) {
	for _, body := range anthropicBodies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := anthropicCodec.Decode(body); err != nil || wiretest.Ambiguous(body) {
			return
		}
		if _, err := anthropicCodec.RoundTrip(body); err != nil {
			t.Error(err)
		}
	})
}
