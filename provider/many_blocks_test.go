package provider_test

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/anthropic"
	"github.com/coppice-dev/coppice/provider/bedrock"
	"github.com/coppice-dev/coppice/provider/google"
	"github.com/coppice-dev/coppice/provider/openai"
	"github.com/coppice-dev/coppice/session"
)

// TestABodyDoesNotDecideHowMuchMemoryItTakes: a message of more blocks than a session
// takes costs a few times its size, and its content comes back as it was.
func TestABodyDoesNotDecideHowMuchMemoryItTakes(t *testing.T) {
	many := []byte("[" + strings.Repeat("{},", 4*session.MaxBlocks) + "{}]")
	chat := func(entries []session.Entry) (*provider.Messages, error) {
		return openai.EncodeChatVerbatim(entries, nil)
	}
	kept := func(entries []session.Entry) (*provider.Messages, error) {
		line, err := entries[0].MarshalJSON()
		return &provider.Messages{Fields: session.Fields{{Name: "entry", Value: line}}}, err
	}
	for name, c := range map[string]struct {
		before, after string
		decode        func([]byte) (*provider.Body, error)
		encode        func([]session.Entry) (*provider.Messages, error)
	}{
		"chat":              {`{"messages":[{"role":"user","content":`, `}]}`, openai.DecodeChat, chat},
		"chat, calls":       {`{"messages":[{"role":"assistant","content":"x","tool_calls":`, `}]}`, openai.DecodeChat, chat},
		"responses":         {`{"input":[{"role":"user","content":`, `}]}`, openai.DecodeResponses, openai.EncodeResponses},
		"responses, answer": {`{"input":[{"role":"assistant","content":`, `}]}`, openai.DecodeResponses, openai.EncodeResponses},
		"responses, output": {`{"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":`, `}]}`, openai.DecodeResponses, openai.EncodeResponses},
		"anthropic":         {`{"messages":[{"role":"user","content":`, `}]}`, anthropic.Decode, anthropic.EncodeVerbatim},
		"anthropic, result": {`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":`, `}]}]}`, anthropic.Decode, anthropic.EncodeVerbatim},
		"google":            {`{"contents":[{"role":"user","parts":`, `}]}`, google.Decode, google.EncodeVerbatim},
		"bedrock":           {`{"messages":[{"role":"user","content":`, `}]}`, bedrock.Decode, kept},
	} {
		t.Run(name, func(t *testing.T) {
			text := append(append([]byte(c.before), many...), c.after...)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			body, err := c.decode(text)
			if err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 8*uint64(len(text)) {
				t.Errorf("%d bytes, %.1f times the size of the body", used, float64(used)/float64(len(text)))
			}
			again, err := c.encode(body.Entries)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(again.Request(nil), many) {
				t.Errorf("it came back as %.300s", again.Request(nil))
			}
		})
	}
}
