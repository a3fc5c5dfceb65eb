package conversation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-dev/coppice/agent/summary"
	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// Compact replaces the beginning of the conversation with a summary, however many sessions it
// spans, and keeps as much of the end as fits a number of tokens. It returns what was kept. See
// session.Session.PlanCompaction for its errors, for what else is kept, and for what happens if
// nothing fits. The log keeps everything.
//
// summarize gets the plan and returns the summary of what will go. Messages that are added in
// the meantime stay. If it returns an error or only white space, nothing changes. If the
// chat's context ends first, Compact returns without waiting, and a later summary is dropped.
func (c *Chat) Compact(keepTokens int, summarize func(*session.CompactionPlan) (string, error)) (*session.CompactionPlan, error) {
	return c.compact(keepTokens, func(whole *session.Session, plan *session.CompactionPlan) error {
		summary, err := gate.Await(c.sessions.context(), func() (string, error) { return summarize(plan) })
		if err == nil && strings.TrimSpace(summary) == "" {
			err = fmt.Errorf("the summary is empty: %w", session.ErrInvalid)
		}
		if err == nil {
			_, err = whole.AppendCompaction(summary, plan.FirstKept, plan.TokensBefore)
		}
		return err
	})
}

// CompactBy is Compact with a summary that a model writes: see package summary. What it cost
// is recorded in any case. After an error nothing else has changed.
func (c *Chat) CompactBy(ctx context.Context, model provider.Model, keepTokens int, o summary.Options) (*summary.Summary, error) {
	made := &summary.Summary{}
	_, err := c.WithContext(ctx).compact(keepTokens, func(whole *session.Session, plan *session.CompactionPlan) (err error) {
		o.Announce = func(e session.Entry) error {
			_, err := whole.AppendAll(e)
			return err
		}
		if made, err = summary.Compaction(ctx, model, plan, o); err != nil {
			return errors.Join(err, made.Bill(whole.WithContext(context.WithoutCancel(ctx))))
		}
		_, err = made.Append(whole, plan)
		return err
	})
	return made, err
}

// compact plans a compaction and has write carry it out. write gets the whole conversation as
// one session.
func (c *Chat) compact(keepTokens int, write func(*session.Session, *session.CompactionPlan) error) (*session.CompactionPlan, error) {
	id := c.ID()
	if id == "" {
		return nil, fmt.Errorf("the conversation is empty: %w", session.ErrNothingToCompact)
	}
	count, err := c.counter()
	if err != nil {
		return nil, err
	}
	var plan *session.CompactionPlan
	err = c.sessions.withWhole(id, func(whole *session.Session) (err error) {
		if plan, err = whole.PlanCompaction(session.PlanOptions{KeepTokens: keepTokens, Count: count}); err != nil {
			return err
		}
		return write(whole, plan)
	})
	if err != nil {
		return nil, err
	}
	return plan, nil
}

// counter returns how the conversation's window counts an entry.
func (c *Chat) counter() (func(session.Entry) int, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	o := config.apply(c.window.Options(), c.window.counters)
	return func(e session.Entry) int { return window.CountEntry(o.Counter, o.Provider, &e).Tokens }, nil
}

// withWhole has do write to all of a conversation as one session.
func (m *Sessions) withWhole(id string, do func(*session.Session) error) (err error) {
	chain, err := m.chain(id, writing)
	if err != nil {
		return err
	}
	whole, err := session.OpenChain(m.context(), m.store, chain, m.sessionOptions())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, whole.Close()) }()
	return do(whole.WithContext(m.context()))
}
