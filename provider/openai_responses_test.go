package provider_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/coppice-dev/coppice/provider/internal/wiretest"
	"github.com/coppice-dev/coppice/provider/openai"
)

var responses = wiretest.Codec{
	Decode: openai.DecodeResponses, Encode: openai.EncodeResponsesVerbatim, EncodeResponse: response("openai"), List: "input",
}

// responsesBodies are bodies with every kind of item. Each must come back with
// equal values.
var responsesBodies = map[string]string{
	"request":               `{"model":"gpt-5","instructions":"be brief","input":[{"role":"user","content":"hi"}],"store":false,"include":["reasoning.encrypted_content"]}`,
	"input string":          `{"model":"gpt-5","input":"hi"}`,
	"both strings":          `{"model":"gpt-5","instructions":"be brief","input":"hi"}`,
	"null instructions":     `{"instructions":null,"input":[]}`,
	"roles":                 `[{"role":"system","content":"s"},{"role":"developer","content":"d"},{"type":"message","role":"user","content":[{"type":"input_text","text":"u"}]},{"role":"critic","content":"x"},{"type":"message","content":"x"},{"type":"message","role":"user"},{"type":"message","role":"user","content":[]},{"type":"message","role":"user","content":7}]`,
	"parts":                 `[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,AAAA","detail":"low"},{"type":"input_image","image_url":"https://x/y"},{"type":"input_image","file_id":"f1","detail":"auto"},{"type":"input_image","image_url":null},{"type":"input_file","file_id":"f2"},{"type":"input_file","file_url":"https://x/z.pdf"},{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,CCCC"},{"type":"input_file","filename":"","file_data":"data:,CCCC"},{"type":"input_audio","input_audio":{"data":"BB","format":"mp3","x":1}},{"type":"text","text":"t"},{"type":"output_text","text":"o","annotations":[]},{"type":"hologram"},"bare"]}]`,
	"answer":                `[{"type":"reasoning","id":"rs1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"ENC"},{"type":"message","id":"m1","role":"assistant","status":"completed","phase":"final","content":[{"type":"output_text","text":"a","annotations":[{"type":"url_citation"}],"logprobs":[]},{"type":"output_text","text":"b"},{"type":"refusal","refusal":"no"}]},{"role":"assistant","content":"plain"},{"role":"assistant","content":[{"type":"output_text","text":"c"}]},{"type":"message","role":"assistant","content":[]},{"type":"message","role":"assistant","content":[{"type":"smell"}]},{"type":"function_call","id":"fc1","call_id":"c1","name":"f","arguments":"{\"a\": 1}","status":"completed"},{"type":"function_call","call_id":"c2","name":"f","arguments":"{\"a\":"}]`,
	"reasoning":             `[{"type":"reasoning","id":"r","summary":[]},{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":null},{"type":"reasoning","id":"r","summary":[],"content":[{"type":"reasoning_text","text":"t"}],"status":"completed"},{"type":"reasoning"},{"type":"reasoning","summary":[{"type":"summary_text","text":""}],"encrypted_content":""},{"type":"reasoning","summary":"odd"}]`,
	"results":               `[{"type":"function_call_output","call_id":"c1","output":"r"},{"type":"function_call_output","id":"o","call_id":"c1","output":[{"type":"input_text","text":"r"}],"status":"completed"},{"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"r"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]},{"type":"function_call_output","call_id":"c3","output":[]},{"type":"function_call_output","call_id":"c3","output":{"a":1}},{"type":"function_call_output","call_id":"c3"},{"type":"function_call_output","output":"no id"},{"type":"function_call_output","call_id":"c3","output":[{"type":"odd"}]},{"type":"function_call_output","call_id":"c3","output":null}]`,
	"custom tool":           `[{"type":"custom_tool_call","call_id":"c1","name":"sh","input":"ls\n","id":"x"},{"type":"custom_tool_call_output","call_id":"c1","output":"ok"},{"type":"custom_tool_call","call_id":"c1","input":"ls"},{"type":"custom_tool_call","call_id":"c1","name":"sh","input":{"a":1}}]`,
	"computer":              `[{"type":"computer_call","id":"cc","call_id":"c1","action":{"type":"click","x":1,"y":2},"pending_safety_checks":[],"status":"completed"},{"type":"computer_call_output","call_id":"c1","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,AAAA"},"acknowledged_safety_checks":[]}]`,
	"shells":                `[{"type":"local_shell_call","id":"l","call_id":"c1","action":{"type":"exec","command":["ls"]},"status":"completed"},{"type":"local_shell_call_output","id":"l","output":"x"},{"type":"shell_call","call_id":"c2","action":{"commands":["ls"]}},{"type":"shell_call_output","call_id":"c2","output":[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]},{"type":"apply_patch_call","call_id":"c3","operation":{"type":"delete_file","path":"a"},"status":"completed"},{"type":"apply_patch_call_output","call_id":"c3","status":"completed","output":"done"},{"type":"local_shell_call","call_id":"c1","action":null}]`,
	"what OpenAI runs":      `[{"type":"web_search_call","id":"w","status":"completed","action":{"type":"search","query":"q"}},{"type":"file_search_call","id":"f","queries":["a"],"results":null},{"type":"code_interpreter_call","id":"ci","code":"1+1","outputs":[{"type":"logs","logs":"2"}]},{"type":"mcp_call","id":"mc","server_label":"s","name":"n","arguments":"{}","output":"o","error":null},{"type":"mcp_list_tools","server_label":"s","tools":[]},{"type":"mcp_approval_request","id":"ap"},{"type":"mcp_approval_response","approval_request_id":"ap","approve":true},{"type":"item_reference","id":"x"},{"type":"compaction","encrypted_content":"E"},{"type":"from_the_future","text":{"content":"x"}}]`,
	"generated image":       `[{"type":"image_generation_call","id":"ig","status":"completed","result":"AAAA","output_format":"webp"},{"type":"image_generation_call","id":"ig","status":"failed","result":null}]`,
	"not an item":           `["x",7,null,{},{"type":"","role":""}]`,
	"looks like a block":    `[{"type":"text","text":{"content":"x"}},{"type":"wrapped","block":{"type":"text"}}]`,
	"response":              `{"id":"resp_1","object":"response","created_at":1779578341,"status":"completed","model":"gpt-5","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":17},"previous_response_id":null,"tools":[]}`,
	"incomplete":            `{"id":"resp_1","object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[],"usage":null}`,
	"failed":                `{"id":"resp_1","object":"response","status":"failed","error":{"code":"x"},"output":[]}`,
	"response with a call":  `{"id":"resp_1","object":"response","output":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}`,
	"response with results": `{"id":"r","output":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"x"},{"type":"web_search_call"}]}`,
	"unsafe names":          `[{"type":"function_call","call_id":"a|b","name":"f.g","arguments":"{}"},{"type":"custom_tool_call","call_id":"","name":"f.g","input":"x"},{"type":"function_call_output","call_id":"a|b","output":"r"}]`,
	"response of a user":    `{"object":"response","model":"m","output":[{"type":"message","role":"user","content":"x"}]}`,
	"one item":              `{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`,
}

func TestOpenAIResponsesRoundTrip(t *testing.T) {
	t.Parallel()
	for name, body := range responsesBodies {
		t.Run(name, func(t *testing.T) {
			if _, err := responses.RoundTrip([]byte(body)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOpenAIResponsesSamples(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"openai-responses/*.req*.json", "openai-responses/*.sse.txt", "opencode-session-recordings/*openai*", "opencode-session-recordings/*zen*"} {
		for _, file := range wiretest.Samples(pattern) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.HasPrefix(data, []byte("event:")) {
				if data, err = openai.FoldResponses(bytes.NewReader(data)); err != nil {
					t.Errorf("%s: %v", file, err)
					continue
				}
			}
			if _, err := responses.RoundTrip(data); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}
