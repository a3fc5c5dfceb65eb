package google

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

// EncodeRequest writes a request, for a model that takes what its family does. Its address names
// the model and asks for streaming.
func EncodeRequest(r *provider.Request, f provider.Family) (*provider.Encoded, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	f = f.Without(r.Without)
	m, err := encode(r.Entries, false, f.Signature)
	if err != nil {
		return nil, err
	}
	var o, config wire.Object
	if r.MaxTokens > 0 && !slices.Contains(r.Without, "max_tokens") {
		config.Put("maxOutputTokens", wire.Number(r.MaxTokens))
	}
	if r.Temperature != nil && f.Temperature {
		config.Put("temperature", strconv.AppendFloat(nil, *r.Temperature, 'g', -1, 64))
	}
	if thinking := thinkingOf(r.Thinking, f); thinking != nil {
		config.SetObject("thinkingConfig", thinking)
	}
	if len(config) > 0 {
		o.SetObject("generationConfig", config)
	}
	if len(r.Tools) > 0 {
		functions := wire.EncodeTools(r.Tools, "parametersJsonSchema", func(function wire.Object) wire.Object { return function })
		all := wire.Object{{Name: "functionDeclarations", Value: functions}}
		o.Put("tools", wire.List([]json.RawMessage{all.JSON()}))
	}
	m.Notes = append(m.Notes, r.Unsupported(f, config.Has("thinkingConfig"), config.Has("temperature"))...)
	return r.Finish(session.Fields(o), m), nil
}

// thinkingOf returns the setting that asks for a thinking level, or nil.
func thinkingOf(level string, f provider.Family) wire.Object {
	var o wire.Object
	word, budget := f.Level(level), f.Budget(level)
	switch {
	case f.Thinking == provider.ThinkingLevel && word != "":
		o.SetStr("thinkingLevel", word)
	case f.Thinking == provider.ThinkingBudget && budget > 0:
		o.Put("thinkingBudget", wire.Number(budget))
	case f.Thinking == provider.ThinkingBudget && level == provider.ThinkingOff && f.Off != "":
		return wire.Object{{Name: "thinkingBudget", Value: json.RawMessage(f.Off)}}
	default:
		return nil
	}
	if f.Summary != "" {
		o.Put("includeThoughts", json.RawMessage("true"))
	}
	return o
}
