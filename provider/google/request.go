package google

import (
	"encoding/json"
	"strconv"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/internal/wire"
	"github.com/coppice-dev/coppice/session"
)

// budgets are the tokens that a model may think with, by level.
var budgets = map[string]int{
	provider.ThinkingOff: 0, provider.ThinkingMinimal: 512, provider.ThinkingLow: 2048,
	provider.ThinkingMedium: 8192, provider.ThinkingHigh: 16384, provider.ThinkingXHigh: 24576,
}

// EncodeRequest writes a request. Its address names the model and asks for streaming.
func EncodeRequest(r *provider.Request) (*provider.Encoded, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	m, err := Encode(r.Entries)
	if err != nil {
		return nil, err
	}
	var o, config wire.Object
	if r.MaxTokens > 0 {
		config.Put("maxOutputTokens", wire.Number(r.MaxTokens))
	}
	if r.Temperature != nil {
		config.Put("temperature", strconv.AppendFloat(nil, *r.Temperature, 'g', -1, 64))
	}
	if budget, ok := budgets[r.Thinking]; ok {
		thinking := wire.Object{{Name: "thinkingBudget", Value: wire.Number(budget)}}
		if budget > 0 {
			thinking.Put("includeThoughts", json.RawMessage("true"))
		}
		config.SetObject("thinkingConfig", thinking)
	}
	if len(config) > 0 {
		o.SetObject("generationConfig", config)
	}
	if len(r.Tools) > 0 {
		list := make([]json.RawMessage, len(r.Tools))
		for i := range r.Tools {
			var function wire.Object
			function.SetStr("name", r.Tools[i].Name)
			function.SetText("description", r.Tools[i].Description)
			function.Put("parametersJsonSchema", r.Tools[i].Arguments())
			list[i] = function.JSON()
		}
		all := wire.Object{{Name: "functionDeclarations", Value: wire.List(list)}}
		o.Put("tools", wire.List([]json.RawMessage{all.JSON()}))
	}
	return r.Finish(session.Fields(o), m), nil
}
