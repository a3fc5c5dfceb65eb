package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
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

// EncodeChatRequest writes a request of Chat Completions that streams its answer, for a model
// that takes what its family does.
func EncodeChatRequest(r *provider.Request, model string, f provider.Family, opts *RequestOptions) (*provider.Encoded, error) {
	if opts == nil {
		opts = &RequestOptions{}
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	f = f.Without(r.Without)
	m, err := EncodeChat(r.Entries, &opts.Chat)
	if err != nil {
		return nil, err
	}
	var o wire.Object
	o.SetStr("model", model)
	o.Put("stream", json.RawMessage("true"))
	if !slices.Contains(r.Without, "stream_options") {
		o.Put("stream_options", json.RawMessage(`{"include_usage":true}`))
	}
	if r.MaxTokens > 0 && !slices.Contains(r.Without, "max_tokens") {
		name := "max_completion_tokens"
		if opts.Other {
			name = "max_tokens"
		}
		o.Put(name, wire.Number(r.MaxTokens))
	}
	if !opts.Other { // other servers may refuse unknown members
		o.SetText("prompt_cache_key", cacheKey(r, f))
	}
	setTemperature(&o, r, f)
	effort := effortOf(r, f)
	if len(r.Tools) > 0 && f.ChatEffort != "" {
		if effort != "" && effort != f.ChatEffort {
			m.Notes = append(m.Notes, provider.Note{What: "the thinking level is not sent: with tools, Chat Completions takes none for this model; Responses does"})
		}
		effort = f.ChatEffort
	}
	o.SetText("reasoning_effort", effort)
	if len(r.Tools) > 0 {
		o.Put("tools", wire.EncodeTools(r.Tools, "parameters", func(function wire.Object) wire.Object {
			return wire.Object{{Name: "type", Value: wire.Quote("function")}, {Name: "function", Value: function.JSON()}}
		}))
	}
	m.Notes = append(m.Notes, r.Unsupported(f, effort != "", o.Has("temperature"))...)
	return r.Finish(session.Fields(o), m), nil
}

// EncodeResponsesRequest writes a request of Responses that streams its answer, for a model that
// takes what its family does. The provider stores nothing: the log does, and the model's thinking
// comes back encrypted.
func EncodeResponsesRequest(r *provider.Request, model string, f provider.Family) (*provider.Encoded, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	f = f.Without(r.Without)
	m, err := EncodeResponses(r.Entries)
	if err != nil {
		return nil, err
	}
	var o wire.Object
	o.SetStr("model", model)
	o.Put("stream", json.RawMessage("true"))
	o.Put("store", json.RawMessage("false"))
	o.SetText("prompt_cache_key", cacheKey(r, f))
	if r.MaxTokens > 0 && !slices.Contains(r.Without, "max_tokens") {
		o.Put("max_output_tokens", wire.Number(r.MaxTokens))
	}
	setTemperature(&o, r, f)
	effort := effortOf(r, f)
	if effort != "" {
		reasoning := wire.Object{{Name: "effort", Value: wire.Quote(effort)}}
		if effort != f.Off {
			reasoning.SetText("summary", f.Summary)
		}
		o.SetObject("reasoning", reasoning)
	}
	if f.Encrypted { // a model may think even if it is not asked to
		o.Put("include", json.RawMessage(`["reasoning.encrypted_content"]`))
	}
	if len(r.Tools) > 0 {
		o.Put("tools", wire.EncodeTools(r.Tools, "parameters", func(function wire.Object) wire.Object {
			tool := wire.Object{{Name: "type", Value: wire.Quote("function")}}
			tool.Merge(function)
			tool.Put("strict", json.RawMessage("false")) // the default would change the schema
			return tool
		}))
	}
	m.Notes = append(m.Notes, r.Unsupported(f, effort != "", o.Has("temperature"))...)
	return r.Finish(session.Fields(o), m), nil
}

// effortOf returns the effort that asks for a request's thinking, or "".
func effortOf(r *provider.Request, f provider.Family) string {
	if f.Thinking != provider.ThinkingEffort {
		return ""
	}
	return f.Level(r.Thinking)
}

// cacheKey returns the name of the conversation as a key for the cache, or "".
func cacheKey(r *provider.Request, f provider.Family) string {
	if len(r.Session) <= f.CacheKey {
		return r.Session
	}
	sum := sha256.Sum256([]byte(r.Session))
	return hex.EncodeToString(sum[:])[:min(f.CacheKey, hex.EncodedLen(len(sum)))]
}

func setTemperature(o *wire.Object, r *provider.Request, f provider.Family) {
	if r.Temperature != nil && f.Temperature {
		o.Put("temperature", strconv.AppendFloat(nil, *r.Temperature, 'g', -1, 64))
	}
}
