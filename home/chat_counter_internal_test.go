package home

import (
	"testing"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/window"
)

// words counts a token for each byte.
type words struct{ window.Counter }

func (words) Name() string              { return "exact" }
func (words) CountText(text string) int { return len(text) }

// A chat counts as the model does that answers now: exactly, where the program has a vocabulary
// for it. Not parallel: it changes what the program has.
func TestChatCountsAsItsModel(t *testing.T) {
	had := parts
	t.Cleanup(func() { parts = had })
	parts.Counter = func(_, model string) window.Counter {
		if model == "known" {
			return words{}
		}
		return nil
	}
	var m modelCounter
	for _, model := range []string{"known", "unknown", "known"} {
		if err := m.follow(provider.Func{About: provider.Info{Provider: "p", Model: model}}); err != nil {
			t.Fatal(err)
		}
		if exact := m.Name() == "exact" && m.CountText("four") == 4; exact != (model == "known") {
			t.Errorf("%s is counted by %s", model, m.Name())
		}
	}
}
