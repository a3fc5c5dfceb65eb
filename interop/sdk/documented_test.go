package sdk_test

import (
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/providertest"
)

// TestDocumented: responses as the providers document them mean the same to both.
func TestDocumented(t *testing.T) {
	each(t, func(t *testing.T, o *official) {
		for name, body := range documented[o.dialect] {
			t.Run(name, func(t *testing.T) {
				theirs, err := o.read([]byte(body))
				if err != nil {
					t.Fatal(err)
				}
				decoded, err := o.decode([]byte(body))
				if err != nil || decoded.Kind != provider.KindResponse {
					t.Fatalf("we read %+v, %v", decoded, err)
				}
				same(t, "the response", theirs, ours(t, decoded.Entries[0].Message))
				if theirs.Stop == "" {
					t.Errorf("the SDK does not say why it stopped: %+v", theirs)
				}
			})
		}
	})
}

var documented = map[string]map[string]string{
	"anthropic": {
		"cut off":       `{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"Once"}],"stop_reason":"max_tokens","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2}}`,
		"refused":       `{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[],"stop_reason":"refusal","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":0}}`,
		"stop sequence": `{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"a"}],"stop_reason":"stop_sequence","stop_sequence":"END","usage":{"input_tokens":1,"output_tokens":2,"output_tokens_details":{"thinking_tokens":1}}}`,
		"hidden":        `{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"redacted_thinking","data":"Emw"},{"type":"thinking","thinking":"","signature":"S"},{"type":"text","text":"a"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2}}`,
		"a search": `{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[
			{"type":"text","text":"I search."},{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}},
			{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://example.com","title":"t","encrypted_content":"E","page_age":"1 day"}]},
			{"type":"text","text":" Found.","citations":[{"type":"web_search_result_location","url":"https://example.com","title":"t","encrypted_index":"I","cited_text":"c"}]}],
			"stop_reason":"pause_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2,"server_tool_use":{"web_search_requests":1}}}`,
	},
	"openai-chat": {
		"cut off":   `{"id":"c","object":"chat.completion","created":1,"model":"gpt","choices":[{"index":0,"message":{"role":"assistant","content":"Once","refusal":null},"finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`,
		"refused":   `{"id":"c","object":"chat.completion","created":1,"model":"gpt","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":"I can't."},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`,
		"filtered":  `{"id":"c","object":"chat.completion","created":1,"model":"gpt","choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"content_filter"}]}`,
		"two":       `{"id":"c","object":"chat.completion","created":1,"model":"gpt","choices":[{"index":0,"message":{"role":"assistant","content":"A"},"finish_reason":"stop"},{"index":1,"message":{"role":"assistant","content":"B"},"finish_reason":"length"}]}`,
		"reasoning": `{"id":"c","object":"chat.completion","created":1,"model":"deepseek","choices":[{"index":0,"message":{"role":"assistant","reasoning_content":"Hm.","content":"A"},"finish_reason":"stop"}]}`,
	},
	"openai": {
		"cut off":  `{"id":"r","object":"response","created_at":1,"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"model":"gpt","output":[{"type":"message","id":"m","status":"incomplete","role":"assistant","content":[{"type":"output_text","text":"Once","annotations":[]}]}],"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}`,
		"filtered": `{"id":"r","object":"response","created_at":1,"status":"incomplete","incomplete_details":{"reason":"content_filter"},"model":"gpt","output":[]}`,
		"summaries": `{"id":"r","object":"response","created_at":1,"status":"completed","model":"gpt","output":[
			{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"**One**"},{"type":"summary_text","text":"**Two**"}],"encrypted_content":"E"},
			{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}},
			{"type":"message","id":"m","status":"completed","role":"assistant","content":[{"type":"output_text","text":"A","annotations":[{"type":"url_citation","start_index":0,"end_index":1,"url":"https://example.com","title":"t"}]},{"type":"output_text","text":"B","annotations":[]}]}]}`,
	},
	"google": {
		"cut off": `{"candidates":[{"content":{"parts":[{"text":"Once"}],"role":"model"},"finishReason":"MAX_TOKENS","index":0}],"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":2,"totalTokenCount":6},"modelVersion":"gemini","responseId":"r"}`,
		"unsafe":  `{"candidates":[{"content":{"parts":[{"text":"O"}],"role":"model"},"finishReason":"SAFETY","index":0,"safetyRatings":[{"category":"HARM_CATEGORY_HARASSMENT","probability":"HIGH","blocked":true}]}],"modelVersion":"gemini","responseId":"r"}`,
		"code": `{"candidates":[{"content":{"parts":[{"text":"I count."},{"executableCode":{"language":"PYTHON","code":"1+1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"2"}},{"text":" Two."}],"role":"model"},"finishReason":"STOP","index":0}],
			"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":2,"toolUsePromptTokenCount":30,"totalTokenCount":36},"modelVersion":"gemini","responseId":"r"}`,
	},
}

// TestDocumentedStreams: so do streams.
func TestDocumentedStreams(t *testing.T) {
	each(t, func(t *testing.T, o *official) {
		for name, stream := range streams[o.dialect] {
			t.Run(name, func(t *testing.T) {
				s := providertest.New(t, func(*providertest.Request) providertest.Answer {
					return providertest.Answer{Events: func([]string) []string { return strings.SplitAfter(stream, "\n\n") }}
				})
				response, err := provider.Respond(t.Context(), connect(t, s, o.dialect), ask(user("go")), nil)
				if err != nil {
					t.Fatal(err)
				}
				theirs, err := o.start(s, "go")
				if err != nil {
					t.Fatal(err)
				}
				a, err := theirs.ask()
				if err != nil {
					t.Fatal(err)
				}
				same(t, "the answer", a, ours(t, response.Message))
				if a.Text == "" || a.Stop == "" || a.Usage.Output == 0 {
					t.Errorf("it does not say enough: %+v", a)
				}
			})
		}
	})
}

var streams = map[string]map[string]string{
	"anthropic": {
		"thoughts and a call": `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":3,"cache_read_input_tokens":7,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":" see."}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCgIY"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Okay 🌱"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"location\": \"San"}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":" Francisco\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_2","name":"now","input":{}}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":89}}

event: message_stop
data: {"type":"message_stop"}

`,
	},
	"openai-chat": {
		"calls at the same time": `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt","service_tier":"default","choices":[{"index":0,"delta":{"role":"assistant","content":null,"refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"ab"}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[{"index":0,"delta":{"content":"I "},"finish_reason":null}],"usage":null}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[{"index":0,"delta":{"content":"look."},"finish_reason":null}],"usage":null}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"read","arguments":""}}]},"finish_reason":null}],"usage":null}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]},"finish_reason":null}],"usage":null}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"now","arguments":"{}"}}]},"finish_reason":null}],"usage":null}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"ö\"}"}}]},"finish_reason":null}],"usage":null}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":9,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":12},"completion_tokens_details":{"reasoning_tokens":4}}}

data: [DONE]

`,
		"a refusal": `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[{"index":0,"delta":{"refusal":"I'm sorry"},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[{"index":0,"delta":{"refusal":", no."},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt","choices":[],"usage":{"prompt_tokens":2,"completion_tokens":9,"total_tokens":11}}

data: [DONE]

`,
	},
	"openai": {
		"everything": `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","error":null,"incomplete_details":null,"model":"gpt","output":[],"usage":null}}

event: response.in_progress
data: {"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","model":"gpt","output":[],"usage":null}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"rs_1","type":"reasoning","encrypted_content":"part","summary":[]}}

event: response.reasoning_summary_part.added
data: {"type":"response.reasoning_summary_part.added","sequence_number":3,"item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","sequence_number":4,"item_id":"rs_1","output_index":0,"summary_index":0,"delta":"**Look","obfuscation":"x"}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","sequence_number":5,"item_id":"rs_1","output_index":0,"summary_index":0,"delta":"ing**"}

event: response.reasoning_summary_text.done
data: {"type":"response.reasoning_summary_text.done","sequence_number":6,"item_id":"rs_1","output_index":0,"summary_index":0,"text":"**Looking**"}

event: response.reasoning_summary_part.done
data: {"type":"response.reasoning_summary_part.done","sequence_number":7,"item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":"**Looking**"}}

event: response.output_item.done
data: {"type":"response.output_item.done","sequence_number":8,"output_index":0,"item":{"id":"rs_1","type":"reasoning","encrypted_content":"gAAAAABo","summary":[{"type":"summary_text","text":"**Looking**"}]}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":9,"output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}

event: response.content_part.added
data: {"type":"response.content_part.added","sequence_number":10,"item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":11,"item_id":"msg_1","output_index":1,"content_index":0,"delta":"I ","logprobs":[]}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":12,"item_id":"msg_1","output_index":1,"content_index":0,"delta":"look 🌱.","logprobs":[]}

event: response.output_text.done
data: {"type":"response.output_text.done","sequence_number":13,"item_id":"msg_1","output_index":1,"content_index":0,"text":"I look 🌱.","logprobs":[]}

event: response.content_part.done
data: {"type":"response.content_part.done","sequence_number":14,"item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"I look 🌱.","annotations":[],"logprobs":[]}}

event: response.output_item.done
data: {"type":"response.output_item.done","sequence_number":15,"output_index":1,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"I look 🌱.","annotations":[],"logprobs":[]}]}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":16,"output_index":2,"item":{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","call_id":"call_1","name":"read"}}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","sequence_number":17,"item_id":"fc_1","output_index":2,"delta":"{\"path\":"}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","sequence_number":18,"item_id":"fc_1","output_index":2,"delta":"\"a\"}"}

event: response.function_call_arguments.done
data: {"type":"response.function_call_arguments.done","sequence_number":19,"item_id":"fc_1","output_index":2,"arguments":"{\"path\":\"a\"}"}

event: response.output_item.done
data: {"type":"response.output_item.done","sequence_number":20,"output_index":2,"item":{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"path\":\"a\"}","call_id":"call_1","name":"read"}}

event: response.completed
data: {"type":"response.completed","sequence_number":21,"response":{"id":"resp_1","object":"response","created_at":1,"status":"completed","error":null,"incomplete_details":null,"model":"gpt","instructions":"Be brief.","output":[{"id":"rs_1","type":"reasoning","encrypted_content":"gAAAAABo","summary":[{"type":"summary_text","text":"**Looking**"}]},{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"I look 🌱.","annotations":[],"logprobs":[]}]},{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"path\":\"a\"}","call_id":"call_1","name":"read"}],"usage":{"input_tokens":37,"input_tokens_details":{"cached_tokens":5},"output_tokens":11,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":48}}}

`,
	},
	"google": {
		"thoughts and calls": `data: {"candidates": [{"content": {"parts": [{"text": "**Looking**\n\n","thought": true}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 11,"totalTokenCount": 30,"thoughtsTokenCount": 19},"modelVersion": "gemini","responseId": "r1"}

data: {"candidates": [{"content": {"parts": [{"text": "Then more.","thought": true}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 11,"totalTokenCount": 35,"thoughtsTokenCount": 24},"modelVersion": "gemini","responseId": "r1"}

data: {"candidates": [{"content": {"parts": [{"text": "I "}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 11,"candidatesTokenCount": 1,"totalTokenCount": 36,"thoughtsTokenCount": 24},"modelVersion": "gemini","responseId": "r1"}

data: {"candidates": [{"content": {"parts": [{"text": "look 🌱."},{"functionCall": {"id": "fc1","name": "read","args": {"path": "a","n": [1, null]}},"thoughtSignature": "CiQB0e2Kb3cQ"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 11,"candidatesTokenCount": 9,"totalTokenCount": 44,"thoughtsTokenCount": 24},"modelVersion": "gemini","responseId": "r1"}

data: {"candidates": [{"content": {"parts": [{"functionCall": {"id": "fc2","name": "now","args": {}}}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 11,"candidatesTokenCount": 12,"totalTokenCount": 47,"thoughtsTokenCount": 24},"modelVersion": "gemini","responseId": "r1"}

data: {"candidates": [{"content": {"parts": [{"text": ""}],"role": "model"},"finishReason": "STOP","index": 0}],"usageMetadata": {"promptTokenCount": 11,"candidatesTokenCount": 12,"totalTokenCount": 47,"thoughtsTokenCount": 24,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 11}]},"modelVersion": "gemini","responseId": "r1"}

`,
	},
}
