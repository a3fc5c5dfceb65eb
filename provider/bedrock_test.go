package provider_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider/bedrock"
	"github.com/coppice-dev/coppice/provider/internal/wiretest"
)

// bedrockBodies have every block and quirk of the format, and the messages that are read
// from each.
var bedrockBodies = map[string]struct {
	body string
	want []string
}{
	"request": {
		`{"modelId":"m","system":[{"text":"be brief"},{"cachePoint":{"type":"default"}}],"messages":[{"role":"user","content":[{"text":"hi"}]}],"inferenceConfig":{"maxTokens":5}}`,
		[]string{
			`{"role":"system","content":[{"type":"text","text":{"content":"be brief"}},{"cachePoint":{"type":"default"}}]}`,
			`{"role":"user","content":[{"type":"text","text":{"content":"hi"}}]}`,
		},
	},
	"empty systems": {`{"system":[],"messages":[]}`, []string{`{"role":"system","content":[]}`}},
	"odd system":    {`{"system":"s","messages":[]}`, nil},
	"messages": {
		`[{"role":"user","content":[{"text":"a"},{"text":""}]},{"role":"assistant","content":[]},{"content":[{"text":"x"}]},{"role":"critic","content":[{"text":"x"}],"n":1},{"role":"user"},{"role":7,"content":7}]`,
		[]string{
			`{"role":"user","content":[{"type":"text","text":{"content":"a"}},{"type":"text","text":{"content":""}}]}`,
			`{"role":"assistant","content":[]}`,
			`{"role":"user","content":[{"type":"text","text":{"content":"x"}}]}`,
			`{"role":"user","content":[{"type":"text","text":{"content":"x"}}],"bedrock":{"set":{"role":"critic","n":1}}}`,
			`{"role":"user","content":[]}`,
			`{"role":"user","content":[],"bedrock":{"set":{"role":7,"content":7}}}`,
		},
	},
	"media": {
		`[{"role":"user","content":[{"image":{"format":"png","source":{"bytes":"AAAA"}}},{"image":{"format":"png","source":{"s3Location":{"uri":"s3://x"}}}},{"audio":{"format":"mp3","source":{"bytes":"AAAA"}}},{"document":{"format":"pdf","name":"d","source":{"bytes":"AAAA"},"context":"c"}},{"document":{"format":"odd","name":"d","source":{"bytes":"AAAA"}}},{"document":{"format":"txt","name":"","source":{"text":"t"}}},{"video":{"format":"mp4","source":{"bytes":"AAAA"}}},{"guardContent":{"text":{"text":"g"}}},{"text":"a","x":1},{},"bare",{"image":7}]}]`,
		[]string{
			`{"role":"user","content":[{"type":"image","image":{"source":{"type":"base64","media_type":"image/png","data":"AAAA"}}},{"image":{"format":"png","source":{"s3Location":{"uri":"s3://x"}}}},{"type":"audio","audio":{"source":{"type":"base64","media_type":"audio/mp3","data":"AAAA"}}},{"type":"file","file":{"name":"d","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}},"bedrock":{"set":{"context":"c"}}},{"document":{"format":"odd","name":"d","source":{"bytes":"AAAA"}}},{"document":{"format":"txt","name":"","source":{"text":"t"}}},{"video":{"format":"mp4","source":{"bytes":"AAAA"}}},{"guardContent":{"text":{"text":"g"}}},{"text":"a","x":1},{},{"type":"wrapped","block":"bare"},{"image":7}]}`,
		},
	},
	"calls": {
		`[{"role":"assistant","content":[{"text":"see"},{"toolUse":{"toolUseId":"t1","name":"f","input":{"b":1,"a":12345678901234567890},"type":"x"}},{"toolUse":{"toolUseId":"a|b","name":"f.g","input":"s"}},{"toolUse":{"toolUseId":"t3","name":"f"}}]}]`,
		[]string{
			`{"role":"assistant","content":[{"type":"text","text":{"content":"see"}},{"type":"tool_use","tool_use":{"id":"t1","name":"f","input":{"b":1,"a":12345678901234567890}},"bedrock":{"set":{"type":"x"}}},{"type":"tool_use","tool_use":{"id":"a|b","name":"f.g","input":null},"bedrock":{"set":{"input":"s"}}},{"toolUse":{"toolUseId":"t3","name":"f"}}]}`,
		},
	},
	"results": {
		`[{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"json":{"a":1.0}}],"status":"success"}},{"toolResult":{"toolUseId":"t2","content":[{"text":"x"}],"status":"error"}},{"toolResult":{"toolUseId":"t3","content":[]}},{"toolResult":{"toolUseId":"t4","content":[{"text":"x"},{"json":[1]},{"image":{"format":"png","source":{"bytes":"AAAA"}}},{"odd":1}]}},{"toolResult":{"toolUseId":"t5","content":[{"text":""}]}},{"toolResult":{"toolUseId":"t5","content":[{"text":""},{"text":"x"}]}},{"toolResult":{"content":[]}},{"text":"words"}]},{"role":"user","content":[{"toolResult":{"toolUseId":"t6","content":[{"json":"s"}]}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"t6","content":[{"text":"r"}]}}]}]`,
		[]string{
			`{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"t1","is_error":false,"content":"{\"a\":1.0}"},"bedrock":{"set":{"status":"success"}}},{"type":"tool_result","tool_result":{"tool_use_id":"t2","is_error":true,"content":"x"}},{"type":"tool_result","tool_result":{"tool_use_id":"t3","is_error":false,"content":""}},{"type":"tool_result","tool_result":{"tool_use_id":"t4","is_error":false,"content":"x\n[1]","parts":[{"type":"text","text":{"content":"x"}},{"type":"text","text":{"content":"[1]"}},{"type":"image","image":{"source":{"type":"base64","media_type":"image/png","data":"AAAA"}}},{"odd":1}]}},{"type":"tool_result","tool_result":{"tool_use_id":"t5","is_error":false,"content":"","parts":[{"type":"text","text":{"content":""}}]}},{"type":"tool_result","tool_result":{"tool_use_id":"t5","is_error":false,"content":"\nx","parts":[{"type":"text","text":{"content":""}},{"type":"text","text":{"content":"x"}}]}}]}`,
			`{"role":"user","content":[{"toolResult":{"content":[]}},{"type":"text","text":{"content":"words"}}],"bedrock":{"join":true}}`,
			`{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"t6","is_error":false,"content":"\"s\""}}]}`,
			`{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"t6","is_error":false,"content":"r"}}],"bedrock":{"join":false}}`,
		},
	},
	"a model's": {
		`[{"role":"assistant","content":[{"toolResult":{"toolUseId":"t1","content":[]}},{"text":"x"}]}]`,
		[]string{`{"role":"assistant","content":[{"toolResult":{"toolUseId":"t1","content":[]}},{"type":"text","text":{"content":"x"}}]}`},
	},
	"reasoning": {
		`[{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"S"}}},{"reasoningContent":{"reasoningText":{"text":"hm"}}},{"reasoningContent":{"reasoningText":{"text":"","signature":"","x":1},"y":2}},{"reasoningContent":{"redactedContent":"R"}},{"reasoningContent":{"redactedContent":""}},{"reasoningContent":{}}]}]`,
		[]string{
			`{"role":"assistant","content":[{"type":"thinking","thinking":{"content":"hm","signature":"S"},"bedrock":{}},{"type":"thinking","thinking":{"content":"hm"},"bedrock":{}},{"type":"thinking","thinking":{"content":""},"bedrock":{"set":{"y":2,"reasoningText":{"signature":"","x":1}}}},{"type":"thinking","thinking":{"content":"","redacted":"R"},"bedrock":{}},{"reasoningContent":{"redactedContent":""}},{"reasoningContent":{}}]}`,
		},
	},
	"response": {
		`{"output":{"message":{"role":"assistant","content":[{"text":"hi"}]}},"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":4,"totalTokens":7},"metrics":{"latencyMs":5}}`,
		[]string{
			`{"role":"assistant","content":[{"type":"text","text":{"content":"hi"}}],"usage":{"input":3,"output":4,"bedrock":{"inputTokens":3,"outputTokens":4,"totalTokens":7}},"stop_reason":"end_turn","bedrock":{"envelope":{"response":{"metrics":{"latencyMs":5}},"output":{}}}}`,
		},
	},
	"odd response": {
		`{"output":{"message":{"role":"user"},"x":1},"stopReason":"guardrail_intervened","usage":null}`,
		[]string{
			`{"role":"assistant","content":[],"stop_reason":"refusal","bedrock":{"set":{"role":"user"},"envelope":{"response":{"usage":null,"stopReason":"guardrail_intervened"},"output":{"x":1}}}}`,
		},
	},
	"one message": {
		`{"role":"user","content":[{"text":"x"}]}`,
		[]string{`{"role":"user","content":[{"type":"text","text":{"content":"x"}}]}`},
	},
}

func TestBedrockDecode(t *testing.T) {
	t.Parallel()
	for name, tt := range bedrockBodies {
		t.Run(name, func(t *testing.T) {
			got := readBedrock(t, []byte(tt.body))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	b, err := bedrock.Decode([]byte(bedrockBodies["request"].body))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(rawjson.Members(b.Fields).JSON()); b.Model != "m" || got != `{"modelId":"m","inferenceConfig":{"maxTokens":5}}` {
		t.Errorf("the model is %q, and the request has %s", b.Model, got)
	}
	for _, text := range []string{``, `{`, `7`, `"x"`, `{}`, `{"a":1}`, `[7]`, `{"output":{}}`, `{"messages":[7]}`} {
		if _, err := bedrock.Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), "bedrock:") {
			t.Errorf("%q: the error is %v", text, err)
		}
	}
}

// saidOtherwise are a role, a status and formats of documents.
var saidOtherwise = []string{"user", "error", "txt", "md", "doc", "docx", "xls", "xlsx"}

// readBedrock returns the messages of a body as a log gives them back. Every text of the
// body must be in them.
func readBedrock(t *testing.T, body []byte) (messages []string) {
	t.Helper()
	b, err := bedrock.Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := wiretest.ThroughLog(b.Entries)
	if err != nil {
		t.Fatal(err)
	}
	have := texts(nil, rawjson.Members(b.Fields).JSON())
	for i := range entries {
		line, err := entries[i].MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		message := rawjson.MembersOf(line).Get("message")
		messages, have = append(messages, string(message)), texts(have, message)
	}
	for _, text := range texts(nil, body) {
		holds := func(s string) bool { return strings.Contains(s, text) }
		if !slices.ContainsFunc(have, holds) && !slices.Contains(saidOtherwise, text) {
			t.Errorf("%q is in %s, but not in what was read: %s", text, body, messages)
		}
	}
	return messages
}

// texts appends the texts and numbers of a JSON value.
func texts(list []string, raw json.RawMessage) []string {
	each := func(value []byte) error {
		list = texts(list, value)
		return nil
	}
	switch rawjson.Kind(raw) {
	case 'o':
		_ = rawjson.Object(raw, func(_, value []byte) error { return each(value) })
	case 'a':
		_ = rawjson.Array(raw, each)
	case 's':
		text, _ := rawjson.String(raw)
		if list = append(list, text); rawjson.Valid([]byte(text)) && rawjson.Kind([]byte(text)) != 's' {
			list = texts(list, json.RawMessage(text))
		}
	default:
		list = append(list, string(raw))
	}
	return list
}

func TestBedrockSamples(t *testing.T) {
	t.Parallel()
	for _, file := range wiretest.Samples("bedrock-converse/*.json") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(readBedrock(t, data)) == 0 {
			t.Errorf("%s has no messages", file)
		}
	}
}

// FuzzBedrockConverse checks that nothing is lost of whatever can be decoded.
func FuzzBedrockConverse(f *testing.F) {
	for _, tt := range bedrockBodies {
		f.Add([]byte(tt.body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := bedrock.Decode(body); err == nil && !wiretest.Ambiguous(body) {
			readBedrock(t, body)
		}
	})
}
