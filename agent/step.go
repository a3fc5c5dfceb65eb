package agent

import (
	"errors"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// reply is what came of a step.
type reply struct {
	calls []Pending // without a result
	stop  string
	empty bool // the model said nothing
}

// step asks the model once and writes its answer to the log. An answer that breaks off
// is kept. If asking again may help, it becomes a branch, and the model is asked again.
func (t *turn) step() (*reply, error) {
	t.out.Steps++
	var relief relief
	searched := false // for what the provider refuses
	for failures := 0; ; {
		r, err := t.prepare()
		if err != nil {
			return nil, err
		}
		response, cause := t.ask(r)
		if cause == nil {
			return t.keep(r, response)
		}
		if errors.Is(cause, provider.ErrOverflow) && !relief.shortened && !t.opts.Compaction.Off {
			t.drop(r, response, cause)
			if ok, err := t.relieve(&relief); !ok {
				return nil, errors.Join(cause, err)
			}
			continue
		}
		if isRefused(cause) && !searched {
			searched = true
			t.drop(r, response, cause)
			if err := t.setAside(r, cause); err != nil {
				return nil, errors.Join(cause, err)
			}
			continue
		}
		failures++
		wait, again := t.retries().After(cause, failures)
		if !again && !t.fallsBack(cause) || t.ctx.Err() != nil {
			return nil, t.keepPartial(r, response, cause)
		}
		if err := t.branchOff(r, response, cause); err != nil {
			return nil, err
		}
		if again {
			err = t.pause(failures, wait, response, cause)
		} else {
			failures, err = 0, t.fallBack(cause)
		}
		if err != nil {
			return nil, err
		}
	}
}

// retries says when a request that failed is sent again. The model's client leaves that to
// the agent, which writes every request down.
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
// the same long call for ever.
const maxCutOffs = 2

// goesOn reports whether the turn goes on after a reply.
func (t *turn) goesOn(r *reply) bool {
	if !provider.IsCutOff(r.stop) {
		t.cutOffs = 0
		// A model that pauses without a word would only be asked the same again.
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

// request is a request with what will be written down about it.
type request struct {
	provider.Request
	leaf  string // where the context ends
	c     *session.Context
	sum   string // of the body
	bytes int
	begun time.Time
}

// prepare builds the request for the conversation as it is in the log, after a
// compaction if the window is full.
func (t *turn) prepare() (*request, error) {
	c, err := t.s.Context(session.ContextOptions{Shared: true})
	if err != nil {
		return nil, err
	}
	if full, err := t.isFull(c); err != nil {
		return nil, err
	} else if full {
		// A failure does not end the turn: the provider may still accept the whole
		// conversation.
		if err := t.compact(reasonWindow); err != nil && t.ctx.Err() != nil {
			return nil, err
		}
		if c, err = t.s.Context(session.ContextOptions{Shared: true}); err != nil {
			return nil, err
		}
	}
	if err := t.recordTools(); err != nil {
		return nil, err
	}
	if err := t.announce(); err != nil {
		return nil, err
	}
	r := &request{Request: *t.params(c), leaf: t.s.LeafID(), c: c, begun: time.Now()}
	if r.Encoded, err = t.opts.Model.Encode(&r.Request); err != nil {
		return nil, err
	}
	r.sum, r.bytes = r.Encoded.Sum(), r.Encoded.Size()
	return r, nil
}

// params returns the request for a context.
func (t *turn) params(c *session.Context) *provider.Request {
	thinking := t.opts.Thinking
	if thinking == "" {
		thinking = provider.KnownThinking(c.ThinkingLevel)
	}
	if info := t.opts.Model.Info(); info != t.memoOf {
		t.memo, t.memoOf = provider.Memo{}, info
	}
	return &provider.Request{
		Entries: c.Entries, Tools: offered(t.opts.Tools), Session: t.s.ID(), Thinking: thinking,
		MaxTokens: t.opts.MaxTokens, Temperature: t.opts.Temperature, Fields: t.opts.Fields, Once: true, Memo: &t.memo,
	}
}

// ask sends a request and passes on what arrives.
func (t *turn) ask(r *request) (*provider.Response, error) {
	ctx, finish := t.traceRequest(r)
	t.publish(Event{Type: MessageStart})
	arriving := draft{last: time.Now()}
	defer arriving.end()
	response, err := provider.Respond(ctx, t.opts.Model, &r.Request, func(e provider.Event) {
		switch e.Type {
		case provider.EventRetry:
			t.publish(Event{Type: Retry, Retry: e.Retry})
		case provider.EventStop:
		default:
			t.arrive(&arriving, e) // before a subscriber sees it
			t.publish(Event{Type: MessageUpdate, Update: &e})
		}
	})
	finish(response, err)
	return response, err
}

// keep writes a whole answer to the log, together with what was asked and which calls
// start right away.
func (t *turn) keep(r *request, response *provider.Response) (*reply, error) {
	m := *response.Message
	m.Content = ofModel(m.Content)
	t.bill(m.Usage)
	if len(m.Content) == 0 {
		// The model had nothing to add.
		_, err := t.append(t.evidence(r, "", nil), billEntry(&m))
		return &reply{stop: m.StopReason, empty: true}, err
	}
	answer := message(&m)
	answer.ID = session.NewID()
	entries := []session.Entry{answer, t.evidence(r, answer.ID, nil)}
	calls := t.callsOf(&answer)
	now := t.startable(calls)
	if len(now) > 0 {
		entries = append(entries, startedEntry(now))
	}
	if _, err := t.append(entries...); err != nil {
		return nil, err
	}
	for i := range now {
		calls[i].State, calls[i].started = CallRunning, true
	}
	t.count.learn(answer.ID, m.Usage, r)
	t.out.Message, t.out.Entry = &m, answer.ID
	return &reply{calls: calls, stop: m.StopReason}, nil
}

// ofModel returns the blocks of an answer in a form that can be kept. Calls that share an
// id get ids of their own, because no provider takes two alike. Results are left out: a
// model cannot answer its own calls.
func ofModel(blocks []session.Content) []session.Content {
	seen := make(map[string]bool)
	kept := make([]session.Content, 0, len(blocks))
	for _, block := range blocks {
		if block.ToolResult != nil {
			continue
		}
		if call := block.ToolUse; call != nil {
			id := call.ID
			for n := 2; id == "" || seen[id]; n++ {
				id = fmt.Sprintf("%s_%d%s", call.ID, n, session.NewID()[:8])
			}
			seen[id] = true
			if id != call.ID {
				other := *call
				other.ID, block.ToolUse = id, &other
			}
		}
		kept = append(kept, block)
	}
	return kept
}

// keepPartial writes down what has arrived of an answer, and returns why it broke off.
func (t *turn) keepPartial(r *request, response *provider.Response, cause error) error {
	m := response.Kept(cause, t.ctx.Err() != nil)
	if m == nil {
		return t.drop(r, response, cause)
	}
	t.bill(m.Usage)
	answer := message(m)
	answer.ID = session.NewID()
	if _, err := t.append(answer, t.evidence(r, answer.ID, cause)); err != nil {
		return errors.Join(cause, err)
	}
	t.out.Message, t.out.Entry, t.out.Stop = m, answer.ID, m.StopReason
	return cause
}

// drop writes down that a request was not answered, and returns why. If even that
// cannot be written, it does not matter.
func (t *turn) drop(r *request, response *provider.Response, cause error) error {
	t.publish(Event{Type: MessageDropped, Err: cause})
	entries := []session.Entry{t.evidence(r, "", cause)}
	if response != nil && response.Message != nil && response.Message.Usage != nil {
		t.bill(response.Message.Usage)
		entries = append(entries, billEntry(response.Message))
	}
	if _, err := t.append(entries...); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// branchOff keeps an answer that broke off on a branch of its own, and goes back to
// where the model was asked.
func (t *turn) branchOff(r *request, response *provider.Response, cause error) error {
	before := t.out
	if err := t.keepPartial(r, response, cause); err != cause { // it could not be written
		return err
	}
	if t.out.Entry == before.Entry {
		return nil // nothing of it is kept
	}
	t.out.Message, t.out.Entry, t.out.Stop = before.Message, before.Entry, before.Stop
	return t.write(func() error { return t.s.Branch(r.leaf) })
}

// billEntry returns the entry with the cost of a response whose message is not kept.
func billEntry(m *session.MessageEntry) session.Entry {
	u := session.Usage{}
	if m.Usage != nil {
		u = *m.Usage
	}
	return session.Entry{Type: session.TypeCustom, Custom: session.NewUsage(m.Provider, m.Model, m.ResponseID, u)}
}
