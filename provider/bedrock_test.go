package provider_test

import (
	"os"
	"testing"

	"github.com/coppice-dev/coppice/provider/bedrock"
	"github.com/coppice-dev/coppice/provider/internal/wiretest"
)

var bedrockCodec = wiretest.Codec{
	Decode: bedrock.Decode, Encode: bedrock.EncodeVerbatim, EncodeResponse: bedrock.EncodeResponse, List: "messages",
}

// bedrockBodies have every block and quirk of the format. Each must come back with
// equal values.
var bedrockBodies = map[string]string{
	"request":       `{"modelId":"m","system":[{"text":"be brief"},{"cachePoint":{"type":"default"}}],"messages":[{"role":"user","content":[{"text":"hi"}]}],"inferenceConfig":{"maxTokens":5}}`,
	"empty systems": `{"system":[],"messages":[]}`,
	"odd system":    `{"system":"s","messages":[]}`,
	"messages":      `[{"role":"user","content":[{"text":"a"},{"text":""}]},{"role":"assistant","content":[]},{"content":[{"text":"x"}]},{"role":"critic","content":[{"text":"x"}],"n":1},{"role":"user"},{"role":7,"content":7}]`,
	"media":         `[{"role":"user","content":[{"image":{"format":"png","source":{"bytes":"AAAA"}}},{"image":{"format":"png","source":{"s3Location":{"uri":"s3://x"}}}},{"audio":{"format":"mp3","source":{"bytes":"AAAA"}}},{"document":{"format":"pdf","name":"d","source":{"bytes":"AAAA"},"context":"c"}},{"document":{"format":"odd","name":"d","source":{"bytes":"AAAA"}}},{"document":{"format":"txt","name":"","source":{"text":"t"}}},{"video":{"format":"mp4","source":{"bytes":"AAAA"}}},{"guardContent":{"text":{"text":"g"}}},{"text":"a","x":1},{},"bare",{"image":7}]}]`,
	"tools":         `[{"role":"assistant","content":[{"text":"see"},{"toolUse":{"toolUseId":"t1","name":"f","input":{"b":1,"a":12345678901234567890},"type":"x"}},{"toolUse":{"toolUseId":"t2","name":"f","input":"s"}},{"toolUse":{"toolUseId":"t3","name":"f"}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"json":{"a":1.0}}],"status":"success"}},{"toolResult":{"toolUseId":"t2","content":[{"text":"x"}],"status":"error"}},{"toolResult":{"toolUseId":"t3","content":[]}},{"toolResult":{"toolUseId":"t4","content":[{"text":"x"},{"json":[1]},{"image":{"format":"png","source":{"bytes":"AAAA"}}},{"odd":1}]}},{"toolResult":{"toolUseId":"t5","content":[{"text":""}]}},{"toolResult":{"toolUseId":"t5","content":[{"text":""},{"text":"x"}]}},{"toolResult":{"content":[]}},{"text":"words"}]},{"role":"user","content":[{"toolResult":{"toolUseId":"t6","content":[{"json":"s"}]}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"t6","content":[{"text":"r"}]}}]}]`,
	"a model's":     `[{"role":"assistant","content":[{"toolResult":{"toolUseId":"t1","content":[]}},{"text":"x"}]}]`,
	"reasoning":     `[{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"S"}}},{"reasoningContent":{"reasoningText":{"text":"hm"}}},{"reasoningContent":{"reasoningText":{"text":"","signature":"","x":1},"y":2}},{"reasoningContent":{"redactedContent":"R"}},{"reasoningContent":{"redactedContent":""}},{"reasoningContent":{}}]}]`,
	"response":      `{"output":{"message":{"role":"assistant","content":[{"text":"hi"}]}},"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":4,"totalTokens":7},"metrics":{"latencyMs":5}}`,
	"odd response":  `{"output":{"message":{"role":"user"},"x":1},"stopReason":"guardrail_intervened","usage":null}`,
	"unsafe names":  `[{"role":"assistant","content":[{"toolUse":{"toolUseId":"a|b","name":"f.g","input":{}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"a|b","content":[{"text":"r"}]}}]}]`,
	"one message":   `{"role":"user","content":[{"text":"x"}]}`,
}

func TestBedrockRoundTrip(t *testing.T) {
	for name, body := range bedrockBodies {
		t.Run(name, func(t *testing.T) {
			if _, err := bedrockCodec.RoundTrip([]byte(body)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBedrockSamples(t *testing.T) {
	for _, file := range wiretest.Samples("bedrock-converse/*.json") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = bedrockCodec.RoundTrip(data); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// FuzzBedrockConverse checks that whatever can be decoded comes back.
func FuzzBedrockConverse(f *testing.F) {
	for _, body := range bedrockBodies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := bedrockCodec.Decode(body); err != nil || wiretest.Ambiguous(body) {
			return
		}
		if _, err := bedrockCodec.RoundTrip(body); err != nil {
			t.Error(err)
		}
	})
}
