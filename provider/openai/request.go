package openai

import (
	"encoding/json"
	"strconv"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

// RequestOptions say how to write a request. The zero value is what OpenAI
// accepts.
type RequestOptions struct {
	Chat ChatOptions
	// Other says that the server is not OpenAI's. Most other servers call the limit of an
	// answer max_tokens, and may refuse unknown members.
	Other bool
}

// EncodeChatRequest writes a request of Chat Completions that streams its answer.
func EncodeChatRequest(r *provider.Request, model string, opts *RequestOptions) (*provider.Encoded, error) {
	if opts == nil {
		opts = &RequestOptions{}
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	m, err := EncodeChat(r.Entries, &opts.Chat)
	if err != nil {
		return nil, err
	}
	var o wire.Object
	o.SetStr("model", model)
	o.Put("stream", json.RawMessage("true"))
	o.Put("stream_options", json.RawMessage(`{"include_usage":true}`))
	if r.MaxTokens > 0 {
		name := "max_completion_tokens"
		if opts.Other {
			name = "max_tokens"
		}
		o.Put(name, wire.Number(r.MaxTokens))
	}
	if !opts.Other { // other servers may refuse unknown members
		o.SetText("prompt_cache_key", r.Session)
	}
	setTemperature(&o, r)
	if effort := effortOf(r.Thinking); effort != "" {
		o.SetStr("reasoning_effort", effort)
	}
	if len(r.Tools) > 0 {
		list := make([]json.RawMessage, len(r.Tools))
		for i := range r.Tools {
			list[i] = wire.Object{{Name: "type", Value: wire.Quote("function")}, {Name: "function", Value: function(&r.Tools[i]).JSON()}}.JSON()
		}
		o.Put("tools", wire.List(list))
	}
	return r.Finish(session.Fields(o), m), nil
}

// EncodeResponsesRequest writes a request of Responses that streams its answer.
// The provider stores nothing: the log does, and the model's thinking comes back
// encrypted.
func EncodeResponsesRequest(r *provider.Request, model string) (*provider.Encoded, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	m, err := EncodeResponses(r.Entries)
	if err != nil {
		return nil, err
	}
	var o wire.Object
	o.SetStr("model", model)
	o.Put("stream", json.RawMessage("true"))
	o.Put("store", json.RawMessage("false"))
	o.SetText("prompt_cache_key", r.Session)
	if r.MaxTokens > 0 {
		o.Put("max_output_tokens", wire.Number(r.MaxTokens))
	}
	setTemperature(&o, r)
	if effort := effortOf(r.Thinking); effort != "" {
		reasoning := wire.Object{{Name: "effort", Value: wire.Quote(effort)}}
		if effort != "none" {
			reasoning.SetStr("summary", "auto")
		}
		o.SetObject("reasoning", reasoning)
		o.Put("include", json.RawMessage(`["reasoning.encrypted_content"]`))
	}
	if len(r.Tools) > 0 {
		list := make([]json.RawMessage, len(r.Tools))
		for i := range r.Tools {
			tool := wire.Object{{Name: "type", Value: wire.Quote("function")}}
			tool.Merge(function(&r.Tools[i]))
			tool.Put("strict", json.RawMessage("false")) // the default would change the schema
			list[i] = tool.JSON()
		}
		o.Put("tools", wire.List(list))
	}
	return r.Finish(session.Fields(o), m), nil
}

func function(t *provider.Tool) wire.Object {
	var o wire.Object
	o.SetStr("name", t.Name)
	o.SetText("description", t.Description)
	o.Put("parameters", t.Arguments())
	return o
}

// effortOf returns OpenAI's name for a thinking level.
func effortOf(level string) string {
	if level == provider.ThinkingOff {
		return "none"
	}
	return level
}

func setTemperature(o *wire.Object, r *provider.Request) {
	if r.Temperature != nil {
		o.Put("temperature", strconv.AppendFloat(nil, *r.Temperature, 'g', -1, 64))
	}
}
