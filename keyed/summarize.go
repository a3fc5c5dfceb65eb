package keyed

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/session"
)

const (
	// SummarizeAfter is the number of messages above which Summarize does anything.
	SummarizeAfter = 20
	// SummarizeKeep is how many messages Summarize keeps.
	SummarizeKeep = 4
)

// Summarize replaces the beginning of a history of more than SummarizeAfter messages with a
// summary, keeps the last SummarizeKeep messages, and saves. It returns what it kept; if it
// dropped nothing, there was nothing to summarise.
//
// It calls summarize with the previous summary and the messages that will go. Messages
// may be added in the meantime: all of them stay, which calling GetHistory, SetSummary
// and TruncateHistory in turn cannot guarantee. If summarize returns an error or only
// white space, nothing changes. It must not call Close, which waits for it. If the
// manager's context (see WithContext) ends first, Summarize does not wait for it, and
// nothing changes.
func (sm *SessionManager) Summarize(key string, summarize func(summary string, old []Message) (string, error)) (Cut, error) {
	var done Cut
	if summarize == nil {
		return done, fmt.Errorf("summarize session %.80q: there is no function that writes the summary: %w", key, session.ErrInvalid)
	}
	err := sm.try(key, func(c *chat) error {
		if err := c.save(sm.context()); err != nil { // only what is in the log can be summarised
			return err
		}
		now := c.read(sm.context())
		done.Kept = now.messages
		cut := now.cutFor(SummarizeKeep)
		if now.messages <= SummarizeAfter || cut == 0 {
			return nil
		}
		old := copyMessages(now.items[:cut], now.messages)
		summary, err := gate.Await(sm.context(), func() (string, error) { return summarize(now.summary, old) })
		if err == nil && strings.TrimSpace(summary) == "" {
			err = fmt.Errorf("the summary is empty: %w", session.ErrInvalid)
		}
		if err != nil {
			return fmt.Errorf("summarize session %.80q: %w", key, err)
		}
		if done, err = c.summarized(sm.context(), summary, now.items[cut].entry.ID); err != nil {
			return err
		}
		return c.save(sm.context())
	})
	return done, err
}

// summarized puts a summary in place of the messages before an entry, unless the entry is no
// longer in the history.
func (c *chat) summarized(ctx context.Context, summary, keepFrom string) (Cut, error) {
	at := c.manager.opts.Now().UTC()
	if err := c.lock(ctx); err != nil {
		return Cut{}, err
	}
	defer c.unlock()
	c.readNew()
	before := c.shown.messages
	if c.shown.index(keepFrom) >= 0 {
		// -1 if another writer has already cut there; Save reports other errors.
		c.keepRefusal(c.do(rewrite(at, &summary, func(v view) (int, bool, []session.Entry) { return v.index(keepFrom), false, nil })))
	}
	return Cut{Kept: c.shown.messages, Dropped: before - c.shown.messages}, nil
}

// BuildContext returns what to send to a model: the system prompt; the system messages of the
// history; the summary, if there is one; the rest of the history; and the user's message. A
// prompt or message that is "" is left out: give no message if Add has it already.
// Apart from what the caller gives, that is the session's context (package session). Every
// tool call in it has its result right after it and every result its call, because providers
// reject anything else. A call that was never answered gets a result that says so, and a
// result without a call is left out.
func (sm *SessionManager) BuildContext(key, systemPrompt, userMessage string) ([]Message, error) {
	var messages []Message
	if systemPrompt != "" {
		messages = append(messages, Message{Role: session.RoleSystem, Content: systemPrompt})
	}
	err := sm.try(key, func(c *chat) error {
		history, err := c.pairedForModel(sm.context())
		messages = append(messages, history...)
		return err
	})
	if userMessage != "" {
		messages = append(messages, Message{Role: session.RoleUser, Content: userMessage})
	}
	return messages, err
}

// pairedForModel returns the summary and the history in a form that a model accepts.
func (c *chat) pairedForModel(ctx context.Context) ([]Message, error) {
	if err := c.lock(ctx); err != nil {
		return nil, err
	}
	defer c.unlock()
	if err := c.flush(nil); err != nil {
		c.show()
		return c.shown.inContext(), err
	}
	c.readNew()
	if c.session == nil || c.written.leaf == "" {
		return nil, nil
	}
	found, err := c.session.Context(session.ContextOptions{Leaf: c.written.leaf})
	if err != nil {
		return c.shown.inContext(), err
	}
	var messages []Message
	for i := range found.Entries {
		e := &found.Entries[i]
		if e.Compaction != nil {
			messages = append(messages, summaryMessage(e.Compaction.Summary)...)
			continue
		}
		messages = append(messages, messagesOf(e)...)
	}
	return messages, nil
}

// inContext returns the known messages, for when the session cannot be asked.
func (v view) inContext() []Message {
	system := 0
	for system < v.stays && v.items[system].isSystem() {
		system++
	}
	return slices.Concat(copyMessages(v.items[:system], 0), summaryMessage(v.summary), copyMessages(v.items[system:], 0))
}

// summaryMessage returns the message that gives a summary to a model, if there is a summary.
func summaryMessage(summary string) []Message {
	if summary == "" {
		return nil
	}
	return []Message{{Role: session.RoleSystem, Content: session.CompactionLead + summary}}
}
