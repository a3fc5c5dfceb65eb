package provider_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/provider/google"
	"github.com/coppice-dev/coppice/provider/internal/wiretest"
)

var googleCodec = wiretest.Codec{
	Decode: google.Decode, Encode: google.EncodeVerbatim, EncodeResponse: response("google"), List: "contents",
}

// googleBodies have every part and quirk of the format. Each must come back with equal
// values.
var googleBodies = map[string]string{
	"request":             `{"model":"gemini","systemInstruction":{"parts":[{"text":"be brief"}]},"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"temperature":0},"tools":[]}`,
	"snake request":       `{"system_instruction":{"role":"system","parts":[{"text":"be brief"},{"text":"really"}]},"contents":[],"generation_config":{}}`,
	"system string":       `{"systemInstruction":"be brief","contents":[]}`,
	"odd systems":         `{"systemInstruction":{},"system_instruction":7,"contents":[]}`,
	"null system":         `{"systemInstruction":null,"contents":[]}`,
	"odd system part":     `{"systemInstruction":{"parts":[{"odd":1}]},"contents":[]}`,
	"contents":            `[{"role":"user","parts":[{"text":"a"},{"text":"b"}]},{"role":"model","parts":[]},{"parts":[{"text":"no role"}]},{"role":"user"},{"role":"critic","parts":[{"text":"x"}]},{"role":7,"parts":7},{"role":"system","parts":[{"text":"x"}]}]`,
	"thoughts":            `[{"role":"model","parts":[{"text":"hm","thought":true},{"text":"hm","thought":true,"thoughtSignature":"S"},{"text":"said","thoughtSignature":"S"},{"text":"x","thought":false},{"text":"","thought":true,"thought_signature":"s"},{"thoughtSignature":"S","text":""},{"text":"x","thought":true,"thoughtSignature":""}]}]`,
	"media":               `[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"inline_data":{"mime_type":"image/png","data":"AAAA"}},{"inline_data":{"mimeType":"image/png","data":"AAAA"}},{"inlineData":{"mime_type":"audio/wav","data":"AAAA","displayName":"d"}},{"inlineData":{"mimeType":"application/pdf","data":"AAAA"},"videoMetadata":{"fps":1}},{"fileData":{"mimeType":"video/mp4","fileUri":"gs://x"}},{"file_data":{"mime_type":"image/png","file_uri":"u"}},{"file_data":{"mimeType":"image/png","fileUri":"u"}},{"fileData":{"fileUri":"u"}},{"inlineData":{}},{"inlineData":7}]}]`,
	"calls with ids":      `[{"role":"model","parts":[{"functionCall":{"id":"c1","name":"f","args":{"b":1,"a":12345678901234567890}},"thoughtSignature":"S"},{"functionCall":{"id":"c2","name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"c2","name":"f","response":{"output":"two"}}},{"functionResponse":{"id":"c1","name":"f","response":{"output":"one"}}}]}]`,
	"calls without ids":   `[{"role":"model","parts":[{"text":"see"},{"functionCall":{"name":"f","args":{"a":1}}},{"functionCall":{"name":"g"}},{"functionCall":{"name":"f","args":{"a":2}}},{"functionCall":{"id":"","name":"f","args":null}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"result":"1"}}},{"functionResponse":{"name":"g","response":{"error":"bad"}}},{"functionResponse":{"name":"f","response":{"a":1,"b":[2]}}},{"functionResponse":{"id":"","name":"f","response":{}}},{"functionResponse":{"name":"f","response":"text"}},{"functionResponse":{"name":"h"}},{"functionResponse":{"name":"h","response":null,"willContinue":true,"parts":[{"inlineData":{"mimeType":"image/png","data":"AA"}}]}},{"functionResponse":{"name":"h","response":{"output":{"n":1}}}},{"functionResponse":{"response":{}}}]}]`,
	"snake calls":         `[{"role":"model","parts":[{"function_call":{"name":"f","args":{}}}]},{"role":"function","parts":[{"function_response":{"name":"f","response":{"output":"x"}}}]}]`,
	"both spellings":      `[{"role":"model","parts":[{"function_call":{"name":"f"},"functionCall":{"name":"g"}},{"functionCall":{"args":{}}}]}]`,
	"another name":        `[{"role":"model","parts":[{"functionCall":{"id":"c1","name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"g","response":{"output":"x"}}}]}]`,
	"results and words":   `[{"role":"user","parts":[{"text":"before"},{"functionResponse":{"name":"f","response":{"output":"x"}}},{"text":"after"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"x"}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"x"}}}]}]`,
	"a result by a model": `[{"role":"model","parts":[{"functionResponse":{"name":"f","response":{"output":"x"}}},{"text":"x"}]}]`,
	"code":                `[{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1+1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"2"}},"bare",{},{"text":7},{"type":"text","text2":1}]}]`,
	"response":            `{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP","index":0,"safetyRatings":[]}],"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":4,"candidatesTokenCount":3,"thoughtsTokenCount":5,"totalTokenCount":18},"modelVersion":"gemini","responseId":"r1","createTime":"2026-01-02T03:04:05.5Z"}`,
	"several candidates":  `{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"SAFETY"},{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},"finishReason":"MALFORMED_FUNCTION_CALL","index":1},{"finishReason":"RECITATION"},{"content":{"role":"user"}}]}`,
	"one content":         `{"role":"user","parts":[{"text":"x"}]}`,
}

func TestGoogleRoundTrip(t *testing.T) {
	t.Parallel()
	for name, body := range googleBodies {
		t.Run(name, func(t *testing.T) {
			if _, err := googleCodec.RoundTrip([]byte(body)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestGoogleSamples(t *testing.T) {
	t.Parallel()
	for _, file := range wiretest.Samples("gemini-contents/*.*") {
		if strings.HasSuffix(file, "ORIGIN.txt") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(data, []byte("data:")) {
			if data, err = google.Fold(bytes.NewReader(data)); err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
		}
		if _, err = googleCodec.RoundTrip(data); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// FuzzGoogleContents checks that whatever can be decoded comes back.
func FuzzGoogleContents(f *testing.F) {
	for _, body := range googleBodies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := googleCodec.Decode(body); err != nil || wiretest.Ambiguous(body) {
			return
		}
		if _, err := googleCodec.RoundTrip(body); err != nil {
			t.Error(err)
		}
	})
}
