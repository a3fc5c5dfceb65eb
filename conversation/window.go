package conversation

import (
	"log/slog"
	"sync"

	"github.com/coppice-dev/coppice/window"
)

// DefaultWindow is the size in tokens of the window of a model that does not say.
const DefaultWindow = 100_000

// Window counts tokens, keeps to budgets and trims. It never
// changes what is stored: trimming gives a new value.
type Window struct {
	logger *slog.Logger

	mu      sync.Mutex // guards what follows
	options window.Options
	version int // counts the changes of options
}

// NewWindow returns a manager of windows with the default budget:
// DefaultWindow tokens, of which 10 % are for SYSTEM, 35 % for CONTEXT, 50 % for
// DIALOG and 5 % for SYSTEM_OUTPUT at most, except that a category may use what
// less important ones leave. The logger, which may be nil, is told at debug
// level how tokens are counted.
func NewWindow(logger *slog.Logger) *Window {
	w := &Window{logger: logger}
	w.options = window.Options{Budget: window.Budget{Tokens: DefaultWindow, Strict: true}, Logger: logger}
	w.options.Counter = w.choose("", "", nil)
	return w
}

// choose returns the counter for a model.
func (w *Window) choose(provider, model string, own window.Counter) window.Counter {
	if own == nil {
		return window.Chooser{Logger: w.logger}.Counter(provider, model)
	}
	if w.logger != nil {
		w.logger.Debug("token counter chosen", "counter", own.Name(), "provider", provider, "model", model, "why", "the model brings its own")
	}
	return own
}

// SetModel makes the window that of a model. Conversations go on: what does not
// fit the new window is left out of the next request.
func (w *Window) SetModel(c Capabilities) {
	counter := w.choose(c.Provider, c.Model, c.Counter)
	w.change(func(o *window.Options) {
		o.Provider, o.Model, o.Counter = c.Provider, c.Model, counter
		o.Budget.Tokens, o.Budget.Reserve, o.Budget.Bytes = c.ContextWindow, c.MaxReply, c.MaxRequestBytes
		if o.Budget.Tokens == 0 {
			o.Budget.Tokens = DefaultWindow
		}
	})
}

// SetBudget changes the budget. It returns an error that matches
// session.ErrInvalid, and changes nothing, if the budget makes no sense.
func (w *Window) SetBudget(b window.Budget) error {
	if _, err := window.NewPlanner(window.Options{Budget: b, Counter: w.Options().Counter}); err != nil {
		return err
	}
	w.change(func(o *window.Options) { o.Budget = b })
	return nil
}

// SetImages says how many images are sent, the newest first; of the others a
// text with a reference remains. See window.Options.
func (w *Window) SetImages(n int) {
	w.change(func(o *window.Options) { o.Images = n })
}

func (w *Window) change(f func(*window.Options)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.options)
	w.version++
}

// Options returns what is in force.
func (w *Window) Options() window.Options {
	o, _ := w.inForce()
	return o
}

func (w *Window) inForce() (window.Options, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.options, w.version
}

// CountTokens returns how many tokens a message takes: those that were recorded
// with it, or else what the model's counter counts.
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

// Trim returns a session that has only what fits the window, and a report of
// what it lacks. The given session is not changed. If the SYSTEM messages alone
// do not fit, or the newest message, the error is a *window.OverflowError.
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
