package conversation

import (
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// Compact lets a summary stand for the beginning of the conversation, in however many
// sessions that is, and keeps as much of the end as fits a number of tokens. It returns
// what was kept. See session.PlanCompaction for its errors, for what else is kept, and
// for what happens if nothing fits. The log keeps everything.
//
// summarize gets the plan and returns the summary of what will go. Messages that are added in
// the meantime stay. If it returns an error or only white space, nothing changes. If the
// chat's context ends first, Compact returns without waiting, and a later summary is dropped.
func (c *Chat) Compact(keepTokens int, summarize func(*session.CompactionPlan) (string, error)) (*session.CompactionPlan, error) {
	id := c.ID()
	if id == "" {
		return nil, fmt.Errorf("the conversation is empty: %w", session.ErrNothingToCompact)
	}
	count, err := c.counter()
	if err != nil {
		return nil, err
	}
	return c.sessions.compact(id, func(whole *session.Session) (*session.CompactionPlan, string, error) {
		plan, err := whole.PlanCompaction(keepTokens, count)
		if err != nil {
			return nil, "", err
		}
		summary, err := gate.Await(c.sessions.context(), func() (string, error) { return summarize(plan) })
		if err == nil && strings.TrimSpace(summary) == "" {
			err = fmt.Errorf("the summary is empty: %w", session.ErrInvalid)
		}
		return plan, summary, err
	})
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

// compact compacts a conversation according to plan, which gets all of it as one session.
func (m *Sessions) compact(id string, plan func(*session.Session) (*session.CompactionPlan, string, error)) (_ *session.CompactionPlan, err error) {
	if err := m.refreshTail(id, writing); err != nil {
		return nil, err
	}
	chain, err := m.chain(id)
	if err != nil {
		return nil, err
	}
	whole, err := session.OpenChain(m.context(), m.store, chain, m.sessionOptions())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, whole.Close()) }()
	whole = whole.WithContext(m.context())
	planned, summary, err := plan(whole)
	if err != nil {
		return nil, err
	}
	if _, err := whole.AppendCompaction(summary, planned.FirstKept, planned.TokensBefore); err != nil {
		return nil, err
	}
	return planned, nil
}
