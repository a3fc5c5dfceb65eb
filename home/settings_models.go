package home

import (
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/provider/offline"
)

// KnownModel is a model that a chat can be given, and what is known about it.
type KnownModel struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	// Window is how many tokens a request and its answer may have together, and MaxOutput
	// how many the answer alone; 0 if that is not known.
	Window    int  `json:"window,omitempty"`
	MaxOutput int  `json:"max_output,omitempty"`
	Thinks    bool `json:"thinks"` // it is known to think before it answers, if asked to
	// Priced says whether the prices are known: in micro-dollars for a million tokens.
	Priced         bool  `json:"priced"`
	InputMicroUSD  int64 `json:"input_micro_usd,omitempty"`
	OutputMicroUSD int64 `json:"output_micro_usd,omitempty"`
	// Ready means that it can be asked: there is a key, or none is needed.
	Ready   bool `json:"ready"`
	Default bool `json:"default"` // it answers if no other is chosen
}

// Name returns what a person types for the model: provider/model.
func (m *KnownModel) Name() string { return m.Provider + "/" + m.Model }

// ModelsResult lists models.
type ModelsResult struct {
	Models []KnownModel `json:"models"`
}

// makers maps the beginnings of models' names to their providers.
var makers = []struct{ prefix, provider string }{
	{"claude-", "anthropic"}, {"gemini-", "google"}, {"gpt-", "openai"}, {"o", "openai"},
}

// Models returns the models that there are to choose from: the one in the settings, those
// whose price is known, and the built-in one. Those that are ready come first; otherwise they
// are sorted by name. It asks no provider.
func (s *Settings) Models() (*ModelsResult, error) {
	prices, err := s.prices()
	if err != nil {
		return nil, err
	}
	builtIn := s.knownModel(ModelChoice{Provider: offline.Name, Model: offline.ModelName}.settings(s), prices)
	own := builtIn
	if !s.isOfflineByDefault() {
		own = s.knownModel(s.model, prices)
	}
	own.Default = true
	all := []KnownModel{own}
	add := func(m KnownModel) {
		if !slices.ContainsFunc(all, func(had KnownModel) bool { return had.Name() == m.Name() }) {
			all = append(all, m)
		}
	}
	add(builtIn)
	for _, name := range prices.Models() {
		for _, maker := range makers {
			if strings.HasPrefix(name, maker.prefix) {
				if maker.provider == "anthropic" {
					name = strings.ReplaceAll(name, ".", "-") // the provider's own spelling
				}
				add(s.knownModel(ModelChoice{Provider: maker.provider, Model: name}.settings(s), prices))
				break
			}
		}
	}
	slices.SortStableFunc(all, func(a, b KnownModel) int {
		switch {
		case a.Ready == b.Ready:
			return strings.Compare(a.Name(), b.Name())
		case a.Ready:
			return -1
		}
		return 1
	})
	return &ModelsResult{all}, nil
}

// settings returns the settings that lead to the model of a choice.
func (c ModelChoice) settings(s *Settings) modelSettings { return s.model.with(c.asSource()) }

// knownModel describes the model that some settings lead to.
func (s *Settings) knownModel(h modelSettings, prices *index.Prices) KnownModel {
	m := KnownModel{Provider: h[SettingProvider].Value, Model: h[SettingModel].Value}
	if built, err := s.build(h); err == nil {
		m.Ready, m.Model = true, built.Info().Model
	}
	if m.Provider == offline.Name {
		m.Window, m.Thinks = s.offline(h).Info().Window, true
		return m
	}
	known := s.family(m.Model)
	m.Window, m.MaxOutput, m.Thinks = known.Window, known.MaxOutput, known.Thinks()
	if own := h.window(); own > 0 {
		m.Window = own
	}
	if price, ok := prices.Price(m.Provider, m.Model); ok {
		m.Priced, m.InputMicroUSD, m.OutputMicroUSD = true, price.Input, price.Output
	}
	return m
}
