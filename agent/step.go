package agent

import (
	"errors"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/media"
	"github.com/coppice-dev/coppice/session"
)

// reply is the result of a step.
type reply struct {
	calls []Pending // without a result
	stop  string
	empty bool // the model said nothing
}

// step asks the model once and writes its answer to the log. An answer that breaks off
// is kept. If asking again may help, it becomes a branch, and the model is asked again.
func (t *turn) step() (*reply, error) {
	var tried attempts
	for {
		r, err := t.prepare()
		if err != nil {
			return nil, err
		}
		if err := t.beforeModel(&r.Request); err != nil {
			return nil, err
		}
		response, cause := t.ask(r)
		if cause == nil {
			return t.accept(r, response)
		}
		differs, err := t.changeRequest(&tried, r, response, cause)
		if err == nil && !differs {
			err = t.askAgain(&tried, r, response, cause)
		}
		if err != nil {
			return nil, err
		}
	}
}

// attempts records what a step has tried, so that it ends: each change of the request is tried
// once, and a model is asked again only so often.
type attempts struct {
	overflow overflowRecovery
	searched bool // for what the provider refuses
	failures int  // of the present model
}

// changeRequest reacts to a failure that comes back if the same request is sent again: a
// parameter that the model does not take, a conversation that is too long, or an entry that the
// provider refuses. It reports whether the next request differs.
func (t *turn) changeRequest(tried *attempts, r *request, response *provider.Response, cause error) (bool, error) {
	if t.reportDropped(cause) { // the next request lacks what was refused
		t.drop(r, response, cause)
		return true, nil
	}
	if errors.Is(cause, provider.ErrOverflow) && !tried.overflow.shortened && !t.opts.Compaction.Off {
		t.drop(r, response, cause)
		ok, err := t.recoverOverflow(&tried.overflow)
		if ok {
			return true, nil
		}
		if tried.searched || !t.isRefused(cause) {
			return false, errors.Join(cause, err)
		}
	}
	if t.isRefused(cause) && !tried.searched {
		tried.searched = true
		t.drop(r, response, cause)
		err := t.setAside(r, cause)
		return err == nil, err
	}
	return false, nil
}

// askAgain prepares the next attempt after a failure that may pass: it waits, or continues with
// another model. If neither helps, it keeps the answer so far and returns why the step failed.
func (t *turn) askAgain(tried *attempts, r *request, response *provider.Response, cause error) error {
	tried.failures++
	wait, again := t.retries().After(cause, tried.failures)
	if !again && !tried.searched && t.isSuspect(cause) {
		tried.searched = true
		if t.setAside(r, cause) == nil {
			t.drop(r, response, cause)
			return nil
		}
	}
	if !again && !t.fallsBack(cause) || t.ctx.Err() != nil {
		return t.leave(r, response, cause)
	}
	if err := t.branchOff(r, response, cause); err != nil {
		return err
	}
	if again {
		return t.pause(tried.failures, wait, response, cause)
	}
	tried.failures = 0
	return t.fallBack(cause)
}

// reportDropped reports whether a request was refused for a parameter that is left out of all
// further ones, and tells the user.
func (t *turn) reportDropped(cause error) bool {
	var known *provider.Error
	if !errors.As(cause, &known) || known.Dropped == "" {
		return false
	}
	info := t.opts.Model.Info()
	told := fmt.Errorf("%s/%s does not take the parameter %q, so it is left out from now on: %w", info.Provider, info.Model, known.Dropped, cause)
	t.publish(Event{Type: Error, Err: told})
	if t.opts.Logger != nil {
		t.opts.Logger.Warn(told.Error())
	}
	return true
}

// retries says when a failed request is sent again. The model's client leaves that to the
// agent, which records every request.
func (t *turn) retries() provider.Retries {
	r := t.opts.Model.Info().Retries
	if t.opts.RetryWait > 0 {
		r.First = t.opts.RetryWait
	}
	return r
}

// pause waits before a request is sent again.
func (t *turn) pause(failures int, wait time.Duration, response *provider.Response, cause error) error {
	retry := &provider.Retry{Attempt: failures + 1, After: wait, Reason: cause.Error()}
	if response != nil && response.Message != nil {
		retry.Usage = response.Message.Usage
	}
	t.publish(Event{Type: Retry, Retry: retry})
	select {
	case <-time.After(wait):
		return nil
	case <-t.ctx.Done():
		return t.ctx.Err()
	}
}

// maxCutOffs is how often a model is asked again after its calls were cut off. It may make
// the same long call forever.
const maxCutOffs = 2

// continues reports whether the turn continues after a reply.
func (t *turn) continues(r *reply) bool {
	if !provider.IsCutOff(r.stop) {
		t.cutOffs = 0
		// A model that pauses without a word would only get the same request again.
		return len(r.calls) > 0 || r.stop == provider.StopPause && !r.empty
	}
	t.cutOffs++
	switch {
	case r.stop == provider.StopRefusal || t.cutOffs > maxCutOffs:
		return false
	case r.empty: // Gemini drops a call that it cannot read: MALFORMED_FUNCTION_CALL
		return r.stop != provider.StopMaxTokens
	}
	return len(r.calls) > 0
}

// prepare builds the request for the conversation as it is in the log, after a
// compaction if the window is full.
func (t *turn) prepare() (*request, error) {
	r, err := t.next()
	if err != nil {
		return nil, err
	}
	r.Request = *t.params(r.c)
	if r.Encoded, err = t.opts.Model.Encode(&r.Request); err != nil {
		return nil, err
	}
	r.sum, r.bytes = r.Encoded.Sum(), r.Encoded.Size()
	t.reportLost(r)
	return r, nil
}

// reportLost reports, once each, the pictures and files of this turn that the model cannot see:
// the request tells the model, and the user should know as well.
func (t *turn) reportLost(r *request) {
	for _, n := range r.Encoded.Notes {
		if !media.IsLost(n.What) || t.reportedLosses[n] {
			continue
		}
		for i := len(r.c.Entries) - 1; i >= 0; i-- {
			e := &r.c.Entries[i]
			if e.ID == n.Entry {
				if t.reportedLosses == nil {
					t.reportedLosses = make(map[provider.Note]bool)
				}
				t.reportedLosses[n] = true
				t.publish(Event{Type: Error, Err: fmt.Errorf("the model does not get everything: %s", n.What)})
			}
			if e.BeginsTurn() {
				break
			}
		}
	}
}

// params returns the request for a context.
func (t *turn) params(c *session.Context) *provider.Request {
	if info := t.opts.Model.Info(); info != t.memoOf {
		t.memo, t.memoOf = provider.Memo{}, info
	}
	return &provider.Request{
		Entries: c.Entries, Tools: definitions(t.opts.Tools), Session: t.s.ID(), Thinking: thinking(t.opts.Thinking, c),
		MaxTokens: t.opts.MaxTokens, Temperature: t.opts.Temperature, Fields: t.opts.Fields, Once: true, Memo: &t.memo,
	}
}

// ask sends a request and passes on what arrives.
func (t *turn) ask(r *request) (*provider.Response, error) {
	ctx, finish := t.traceRequest(r)
	t.publish(Event{Type: MessageStart})
	defer t.arriving.end()
	response, err := provider.Respond(ctx, t.opts.Model, &r.Request, func(e provider.Event) {
		switch e.Type {
		case provider.EventRetry:
			t.publish(Event{Type: Retry, Retry: e.Retry})
		case provider.EventStop:
		default:
			if e.Type == provider.EventText {
				t.addToDraft(e.Text) // before a subscriber sees it
			}
			t.publish(Event{Type: MessageUpdate, Update: &e})
		}
	})
	finish(response, err)
	return response, err
}

// accept keeps a whole answer, together with its request and the calls that start right away.
func (t *turn) accept(r *request, response *provider.Response) (*reply, error) {
	start := t.startable
	if t.opts.Hooks.AfterModel != nil { // the hook may end the turn before the calls run
		start = func([]Pending) []Pending { return nil }
	}
	answer, calls, err := t.keep(r, response.Message, start)
	if err != nil {
		return nil, err
	}
	if answer != nil {
		t.out.Message, t.out.Entry = answer.Message, answer.ID
	}
	if err := t.afterModel(response.Message); err != nil {
		return nil, err
	}
	return &reply{calls: calls, stop: response.Message.StopReason, empty: answer == nil}, nil
}

// leave keeps the part of an answer that arrived, and returns why it broke off.
func (t *turn) leave(r *request, response *provider.Response, cause error) error {
	kept, err := t.keepPartial(r, response, cause)
	if kept != nil {
		t.out.Message, t.out.Entry, t.out.Stop = kept.Message, kept.ID, kept.Message.StopReason
	}
	return err
}
