package window

import (
	"log/slog"

	"github.com/coppice-dev/coppice/window/estimate"
)

// Counter counts the tokens of a text. Package window/tiktoken has exact ones for
// OpenAI's models; Estimate returns one for any model.
//
// A Counter counts as Exact unless it has a method Exact() bool that returns false, as
// estimates do.
type Counter interface {
	// Name identifies the counter in logs and reports.
	Name() string
	// CountText returns how many tokens a text has. It must return the same for the same
	// text until it learns better (see Chooser), and never a negative number.
	CountText(text string) int
}

// Estimate returns a counter that needs no vocabulary: it looks at each text's
// characters and knows roughly how many tokens they are for a provider's models. Empty
// names give the most cautious guess.
func Estimate(provider, model string) Counter { return estimator{estimate.For(provider, model)} }

type estimator struct{ *estimate.Profile }

func (e estimator) Name() string              { return "estimate/" + e.Profile.Name }
func (e estimator) CountText(text string) int { return e.Count(text) }
func (e estimator) Exact() bool               { return false }

// isExact reports whether a counter is a tokenizer, not a guess.
func isExact(c Counter) bool {
	guess, ok := c.(interface{ Exact() bool })
	return !ok || guess.Exact()
}

// Chooser picks the counter for a model. The zero Chooser estimates.
type Chooser struct {
	// Exact are asked in order for an exact counter of a model; they return nil if they have
	// none. See tiktoken.For.
	Exact []func(provider, model string) Counter
	// Logger gets a debug message that says which counter was chosen. Default: none.
	Logger *slog.Logger
}

// Counter returns the counter for a model: an exact one if there is any, or else
// an estimate that learns.
func (c Chooser) Counter(provider, model string) Counter {
	var chosen Counter
	why := "no exact counter for this model: estimating, and learning from reported usage"
	for _, exact := range c.Exact {
		if chosen = exact(provider, model); chosen != nil {
			why = "exact counter for this model"
			break
		}
	}
	if chosen == nil {
		chosen = newLearning(Estimate(provider, model))
	}
	if c.Logger != nil {
		c.Logger.Debug("token counter chosen", "counter", chosen.Name(), "provider", provider, "model", model, "why", why)
	}
	return chosen
}
