package conversation

import (
	"log/slog"
	"sync"

	"github.com/coppice-dev/coppice/window"
)

// Window counts tokens, keeps to budgets and trims. It never changes what is stored: trimming
// returns a new value.
type Window struct {
	counters *counters

	mu      sync.Mutex // guards what follows
	options window.Options
	version int // counts the changes of options
}

// NewWindow returns a window with the default budget: window.DefaultWindow tokens, of which
// SYSTEM is guaranteed 10 %, CONTEXT 35 %, DIALOG 50 % and SYSTEM_OUTPUT 5 %. Nothing
// is trimmed before the window is full. The logger may be nil; it gets a debug message
// that says how tokens are counted.
func NewWindow(logger *slog.Logger) *Window { return newWindow(newCounters(logger, nil)) }

func newWindow(counters *counters) *Window {
	w := &Window{counters: counters}
	w.options = window.Options{Budget: window.Budget{Tokens: window.DefaultWindow}, Logger: counters.logger}
	w.options.Counter = counters.get("", "")
	return w
}

// counters has one counter per model, which learns from what the model's provider
// reports in all conversations.
type counters struct {
	logger *slog.Logger
	exact  []func(provider, model string) window.Counter

	mu    sync.Mutex // guards known
	known map[[2]string]window.Counter
}

func newCounters(logger *slog.Logger, exact []func(provider, model string) window.Counter) *counters {
	return &counters{logger: logger, exact: exact, known: make(map[[2]string]window.Counter)}
}

// get returns the counter for a model: an exact one if there is any.
func (c *counters) get(provider, model string) window.Counter {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := [2]string{provider, model}
	if c.known[key] == nil {
		c.known[key] = window.Chooser{Exact: c.exact, Logger: c.logger}.Counter(provider, model)
	}
	return c.known[key]
}

// set sets the counter of a model.
func (c *counters) set(provider, model string, own window.Counter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[[2]string{provider, model}] = own
	if c.logger != nil {
		c.logger.Debug("token counter chosen", "counter", own.Name(), "provider", provider, "model", model, "why", "the model brings its own")
	}
}

// SetExact sets where to ask for exact counters, such as tiktoken.For. Models that
// already have a counter keep it.
func (w *Window) SetExact(exact ...func(provider, model string) window.Counter) {
	w.counters.mu.Lock()
	defer w.counters.mu.Unlock()
	w.counters.exact = exact
}

// SetModel sets the window up for a model. Conversations continue: what does not fit the new
// window is left out of the next request. If the capabilities make no sense, such as a reply
// as large as the window, it changes nothing and returns an error that matches
// session.ErrInvalid.
func (w *Window) SetModel(c Capabilities) error {
	if c.Counter != nil {
		w.counters.set(c.Provider, c.Model, c.Counter)
	}
	return w.change(func(o *window.Options) {
		o.Provider, o.Model, o.Counter = c.Provider, c.Model, w.counters.get(c.Provider, c.Model)
		o.Budget.Tokens, o.Budget.Reserve, o.Budget.Bytes = c.ContextWindow, c.MaxReply, c.MaxRequestBytes
		if o.Budget.Tokens == 0 {
			o.Budget.Tokens = window.DefaultWindow
		}
	})
}

// SetBudget replaces the whole budget. If it makes no sense, SetBudget changes nothing
// and returns an error that matches session.ErrInvalid.
func (w *Window) SetBudget(b window.Budget) error {
	return w.change(func(o *window.Options) { o.Budget = b })
}

// SetImages sets how many images are sent, newest first; the others become a text with a
// reference. See window.Options.
func (w *Window) SetImages(n int) error {
	return w.change(func(o *window.Options) { o.Images = n })
}

// change changes the options, if the result makes sense.
func (w *Window) change(f func(*window.Options)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed := w.options
	f(&changed)
	if _, err := window.NewPlanner(changed); err != nil {
		return err
	}
	w.options = changed
	w.version++
	return nil
}

// Options returns the options in force.
func (w *Window) Options() window.Options {
	o, _ := w.inForce()
	return o
}

func (w *Window) inForce() (window.Options, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.options, w.version
}

// CountTokens returns how many tokens a message takes: the recorded number, or else what the
// model's counter counts.
func (w *Window) CountTokens(m Message) int {
	o := w.Options()
	e := m.entry()
	return window.CountEntry(o.Counter, o.Provider, &e).Tokens
}

// Usage reports how a session uses the window, and what trimming would leave out.
func (w *Window) Usage(s Session) (window.Report, error) {
	_, report, err := w.Trim(s)
	return report, err
}

// Trim returns a session with only what fits the window, and a report of what it lacks.
// The given session does not change. If the SYSTEM messages alone or the newest message
// does not fit, the error is a *window.OverflowError.
func (w *Window) Trim(s Session) (Session, window.Report, error) {
	p, err := window.NewPlanner(w.Options())
	if err != nil {
		return Session{}, window.Report{}, err
	}
	for _, m := range s.Messages {
		p.Add(m.entry())
	}
	v, err := p.View()
	if err != nil {
		return Session{}, window.Report{}, err
	}
	trimmed := s
	trimmed.Messages = make([]Message, len(v.Entries))
	for i := range v.Entries {
		trimmed.Messages[i] = fromEntry(v.Entries[i])
	}
	return trimmed.Clone(), v.Report, nil
}
