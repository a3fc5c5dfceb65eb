package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// This file records what becomes of a request: an answer, a part of one, or nothing.

// request is a request and the facts that the log will record about it.
type request struct {
	provider.Request
	leaf  string // where the context ends
	c     *session.Context
	sum   string // of the body
	bytes int
	begun time.Time
}

// next returns the request that is due, for the conversation as it is in the log, with what
// was queued for it, after a compaction if the window is full. The log says that the model is
// asked.
func (k *Keeper) next() (*request, error) {
	if err := k.crossBoundary(message(&session.MessageEntry{Role: session.RoleAssistant})); err != nil {
		return nil, err
	}
	if _, err := k.writeQueued(false, nil); err != nil {
		return nil, err
	}
	c, err := k.s.Context(session.ContextOptions{Shared: true})
	if err != nil {
		return nil, err
	}
	if full, err := k.isFull(c); err != nil {
		return nil, err
	} else if full {
		// A failure does not end the work: the provider may still accept the whole
		// conversation.
		if _, err := k.compact(reasonWindow, ""); err != nil && k.ctx.Err() != nil {
			return nil, err
		}
		if c, err = k.s.Context(session.ContextOptions{Shared: true}); err != nil {
			return nil, err
		}
	}
	if err := k.recordTools(); err != nil {
		return nil, err
	}
	if err := k.announce(); err != nil {
		return nil, err
	}
	k.arriving = &draft{last: time.Now()}
	return &request{leaf: k.s.LeafID(), c: c, begun: time.Now()}, nil
}

// keep writes a whole answer to the log, together with its request. The same write records
// as running the calls that start picks from the beginning of the answer. It returns no
// answer if the model had nothing to add.
func (k *Keeper) keep(r *request, answered *session.MessageEntry, start func([]Pending) []Pending) (*session.Entry, []Pending, error) {
	m := *answered
	m.Content = ofModel(m.Content)
	k.bill(m.Usage)
	if len(m.Content) == 0 {
		_, err := k.append(k.recordOf(r, "", nil, nil), billEntry(&m))
		return nil, nil, err
	}
	answer := message(&m)
	answer.ID = session.NewID()
	calls := k.callsOf(&answer)
	proofs, err := k.made(calls)
	if err != nil {
		return nil, nil, err
	}
	entries := []session.Entry{answer, k.recordOf(r, answer.ID, nil, proofs)}
	now := start(calls)
	if len(now) > 0 {
		entries = append(entries, Running(idsOf(now)...))
	}
	if _, err := k.append(entries...); err != nil {
		return nil, nil, err
	}
	for i := range now {
		calls[i].State, calls[i].started = CallRunning, true
	}
	k.count.observe(answer.ID, m.Usage, r)
	return &answer, calls, nil
}

// ofModel returns the blocks of an answer in a form that can be kept. Calls that share an id
// get different ones, because no provider accepts duplicates. Results are left out: a model
// cannot answer its own calls.
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

// keepPartial writes the part of an answer that has arrived to the log. It returns that part,
// or nil if nothing can be kept, and why the answer broke off.
func (k *Keeper) keepPartial(r *request, response *provider.Response, cause error) (*session.Entry, error) {
	m := response.Kept(cause, k.ctx.Err() != nil)
	if m == nil {
		return nil, k.drop(r, response, cause)
	}
	k.bill(m.Usage)
	answer := message(m)
	answer.ID = session.NewID()
	if _, err := k.append(answer, k.recordOf(r, answer.ID, cause, nil)); err != nil {
		return nil, errors.Join(cause, err)
	}
	return &answer, cause
}

// drop records that a request was not answered, and returns why. It does not matter if even
// that cannot be written.
func (k *Keeper) drop(r *request, response *provider.Response, cause error) error {
	k.publish(Event{Type: MessageDropped, Err: cause})
	entries := []session.Entry{k.recordOf(r, "", cause, nil)}
	if response != nil && response.Message != nil && response.Message.Usage != nil {
		k.bill(response.Message.Usage)
		entries = append(entries, billEntry(response.Message))
	}
	if _, err := k.append(entries...); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// branchOff keeps an answer that broke off on a branch of its own, and goes back to
// where the model was asked.
func (k *Keeper) branchOff(r *request, response *provider.Response, cause error) error {
	kept, err := k.keepPartial(r, response, cause)
	if err != cause { // it could not be written
		return err
	}
	if kept == nil {
		return nil
	}
	return k.write(func() error { return k.s.Branch(r.leaf) })
}

// billEntry returns the entry with the cost of a response whose message is not kept.
func billEntry(m *session.MessageEntry) session.Entry {
	u := session.Usage{}
	if m.Usage != nil {
		u = *m.Usage
	}
	return session.Entry{Type: session.TypeCustom, Custom: session.NewUsage(m.Provider, m.Model, m.ResponseID, u)}
}

// recordNotAsked records that the model was not asked after all, and why the work ended: an
// error, or in words. It returns that error.
func (k *Keeper) recordNotAsked(why string, cause error) error {
	if k.announced == "" {
		return cause
	}
	if cause != nil {
		why = k.whyEnded(cause).Error()
	}
	r := k.newRecord()
	r.Error = "it was not sent: " + why
	if _, err := k.append(r.entry()); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// whyEnded returns the error of a turn. For a cancelled turn that is the cause, and
// what else went wrong with the log.
func (k *Keeper) whyEnded(err error) error {
	if err == nil || k.ctx.Err() == nil || !errors.Is(err, k.ctx.Err()) {
		return err
	}
	var failed *session.Error
	if errors.As(err, &failed) {
		return errors.Join(context.Cause(k.ctx), failed)
	}
	return context.Cause(k.ctx)
}
