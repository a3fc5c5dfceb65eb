package home

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-dev/coppice/agent/summary"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// AutoRequest lets a model write a text that a person would write otherwise. The zero value
// asks the model in the settings.
type AutoRequest struct {
	ModelChoice
	// Instructions say what to pay attention to, in addition to the usual. Default: none.
	Instructions string `json:"instructions,omitempty"`
}

// AutoResult says what a model wrote, and what it took.
type AutoResult struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Text     string `json:"text"`
	Tokens   int    `json:"tokens"`   // of the text
	Requests int    `json:"requests"` // how often the model was asked
	// Usage is what the provider reported, all requests together. It is in the log, too.
	Usage session.Usage `json:"usage"`
}

// What a model may be asked to write, as ModelAsked names it.
const (
	writesSummary = "summary"
	writesTitle   = "title"
)

// author is a model that writes for the home.
type author struct {
	home  *Home
	model provider.Model
	opts  summary.Options
}

// author returns the model that a request means, and announces that it is going to be asked.
func (h *Home) author(ctx context.Context, r *AutoRequest, writes string) (*author, error) {
	if err := checkUTF8("instructions", r.Instructions); err != nil {
		return nil, within("auto", err)
	}
	chosen, err := h.settings.ModelFor(nil, r.ModelChoice)
	if err != nil {
		return nil, within("auto", err)
	}
	info := chosen.Model.Info()
	counter, err := counterNamed("", info.Provider, info.Model)
	if err != nil {
		return nil, err
	}
	h.notify(ctx, Notice{Kind: ModelAsked, Provider: info.Provider, Model: info.Model, For: writes, ByDefault: chosen.From == FromDefault})
	return &author{home: h, model: chosen.Model, opts: summary.Options{
		Instructions: r.Instructions, Counter: counter, Emit: h.reportRetries(ctx, info),
	}}, nil
}

// announceIn records in a session that the model will be asked.
func (a *author) announceIn(s *session.Session) {
	a.opts.Announce = func(e session.Entry) error {
		return retry(s, func() error {
			_, err := s.AppendAll(e)
			return err
		})
	}
}

// reportRetries reports that a provider has to be asked again, so that people know why it takes
// so long.
func (h *Home) reportRetries(ctx context.Context, info provider.Info) func(provider.Event) {
	return func(e provider.Event) {
		if e.Retry != nil {
			h.notify(ctx, Notice{Kind: ModelRetried, Provider: info.Provider, Model: info.Model, Retry: e.Retry})
		}
	}
}

// result returns the text that the model wrote.
func (a *author) result(made *summary.Summary) *AutoResult {
	info := a.model.Info()
	result := &AutoResult{
		Provider: info.Provider, Model: info.Model, Text: made.Text, Tokens: made.Tokens, Requests: made.Requests,
	}
	for i := range made.Log {
		if bill, ok := session.BillOf(&made.Log[i]); ok {
			result.Usage = *result.Usage.Plus(&bill.Usage)
		}
	}
	return result
}

// failed records the cost of a text that the model failed to write, and returns why it
// failed. The conversation has not changed.
func (a *author) failed(ctx context.Context, op, name string, s *session.Session, made *summary.Summary, cause error) error {
	s = s.WithContext(context.WithoutCancel(ctx)) // it was paid for even if the caller no longer waits
	why := unwritten(op, name, cause)
	if err := retry(s, func() error { return made.Bill(s) }); err != nil {
		return errors.Join(why, err)
	}
	return why
}

// unwritten is the error of a model that did not write the requested text.
func unwritten(op, name string, err error) error {
	if errors.Is(err, summary.ErrNothing) {
		return &session.Error{Op: op, Name: name, Err: session.Invalidf("%w", err)}
	}
	e := &session.Error{Op: op, Name: name, Err: fmt.Errorf("%w; nothing was changed", err)}
	switch {
	case errors.Is(err, summary.ErrNoGain):
		e.Hint = "keep fewer tokens, so that the summary covers more"
	case errors.Is(err, summary.ErrUnusable):
		e.Hint = "try again, or ask another model"
	case errors.Is(err, provider.ErrDenied):
		e.Hint = "check the provider's key"
	}
	return e
}

// write appends the text that a model wrote. Others may have written in the meantime. Their
// additions do not matter, because they come after what the text is about; but what they redacted
// must not come back.
func (a *author) write(ctx context.Context, s *session.Session, do func() (string, error)) (string, error) {
	a.home.beforeWriting(ctx)
	return remark(s, do)
}
