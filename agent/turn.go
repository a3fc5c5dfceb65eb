package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// turn is one piece of work of an agent: from a prompt, or from where the log stops,
// to the point where the model is done.
type turn struct {
	*Session
	ctx   context.Context
	s     *session.Session // the log, with a context that does not end
	opts  Options
	tools map[string]*Tool
	out   Outcome
}

// Send adds what the user says and lets the model answer until it is done. If ctx
// ends, what has arrived is kept, and the error is context.Cause(ctx). Calls of earlier
// turns that have no result get one that says that they were interrupted.
//
// An error does not undo anything: the outcome is what was reached, and Resume tries
// to go on from there.
func (a *Session) Send(ctx context.Context, content ...session.Content) (*Outcome, error) {
	if len(content) == 0 {
		return nil, invalid("the message is empty")
	}
	return a.work(ctx, func(t *turn) error {
		if _, err := t.adoptDraft(); err != nil {
			return err
		}
		pending, err := t.pending()
		if err != nil {
			return err
		}
		var entries []session.Entry
		for _, p := range pending {
			entries = append(entries, resultEntry(p.Call, Result{Text: supersededText, IsError: true}))
		}
		before, err := t.settings()
		if err != nil {
			return err
		}
		entries = append(entries, before...)
		entries = append(entries, message(&session.MessageEntry{Role: session.RoleUser, Content: content}))
		if _, err := t.append(entries...); err != nil {
			return err
		}
		return t.run(nil)
	})
}

// Resume goes on where the session stopped: after a crash, after an error, or after
// decisions about waiting calls. Calls that never started are run, and so are those of
// tools that may be repeated. Other calls that were running get a result that says
// that they were interrupted, because nobody knows what they did. If there is nothing
// to do, the outcome has no steps. An answer that had arrived in part becomes a branch,
// and the model is asked again.
func (a *Session) Resume(ctx context.Context) (*Outcome, error) {
	return a.work(ctx, func(t *turn) error {
		if askedAt, err := t.adoptDraft(); err != nil {
			return err
		} else if askedAt != "" {
			if err := t.moveTo(askedAt); err != nil {
				return err
			}
		}
		pending, err := t.pending()
		if err != nil {
			return err
		}
		if len(pending) == 0 {
			open, err := t.open()
			if err != nil || !open {
				return err
			}
		}
		before, err := t.settings()
		if err != nil {
			return err
		}
		if len(before) > 0 {
			if _, err := t.append(before...); err != nil {
				return err
			}
		}
		return t.run(pending)
	})
}

// Unfinished reports whether Resume would have something to do.
func (a *Session) Unfinished() (bool, error) {
	t := &turn{Session: a, s: a.log}
	pending, err := t.pending()
	if err != nil || len(pending) > 0 {
		return err == nil, err
	}
	return t.open()
}

// Retry has the last turn answered again, on a new branch. The answer that there was
// stays on its own. If the conversation has no turn, it is session.ErrInvalid.
func (a *Session) Retry(ctx context.Context) (*Outcome, error) {
	return a.work(ctx, func(t *turn) error {
		c, err := t.s.Context(session.ContextOptions{Shared: true})
		if err != nil {
			return err
		}
		last := len(c.Entries) - 1
		for last >= 0 && !c.Entries[last].BeginsTurn() {
			last--
		}
		if last < 0 {
			return invalid("there is nothing to answer again")
		}
		if err := t.moveTo(c.Entries[last].ID); err != nil {
			return err
		}
		before, err := t.settings()
		if err != nil {
			return err
		}
		if len(before) > 0 {
			if _, err := t.append(before...); err != nil {
				return err
			}
		}
		return t.run(nil)
	})
}

// work runs a turn and tells how it went.
func (a *Session) work(ctx context.Context, f func(*turn) error) (*Outcome, error) {
	t, end, err := a.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	finish := t.traceTurn()
	a.publish(Event{Type: TurnStart})
	err = f(t)
	if err != nil && t.ctx.Err() != nil && errors.Is(err, t.ctx.Err()) {
		err = context.Cause(t.ctx)
	}
	finish(err)
	a.publish(Event{Type: TurnEnd, Outcome: &t.out, Err: err})
	return &t.out, err
}

// run asks the model and runs its calls until it makes no more. It begins with calls
// that have no result yet, if there are any.
func (t *turn) run(pending []Pending) error {
	for {
		if len(pending) > 0 {
			waiting, err := t.perform(pending)
			if err != nil {
				return err
			}
			if len(waiting) > 0 {
				t.out.Stop, t.out.Waiting = StopApproval, waiting
				return nil
			}
		}
		if err := t.ctx.Err(); err != nil {
			return err
		}
		if t.out.Steps >= t.opts.MaxSteps {
			t.out.Stop = StopMaxSteps
			return nil
		}
		reply, err := t.step()
		if err != nil {
			return err
		}
		pending = reply.calls
		if len(pending) == 0 && reply.stop != provider.StopPause {
			t.out.Stop = reply.stop
			return nil
		}
	}
}

// open reports whether the conversation waits for the model: it ends with something
// that the model has not answered.
func (t *turn) open() (bool, error) {
	c, err := t.s.Context(session.ContextOptions{Shared: true})
	if err != nil {
		return false, err
	}
	for i := len(c.Entries) - 1; i >= 0; i-- {
		m := c.Entries[i].Message
		switch {
		case m == nil || m.Role == session.RoleSystem:
			continue // summaries and documents are not answered
		case m.Role != session.RoleAssistant:
			return true, nil
		case m.StopReason == provider.StopPause:
			return true, nil
		}
		return false, nil
	}
	return false, nil
}

// settings returns what must be in the log before the next request: new instructions,
// another model, another thinking level.
func (t *turn) settings() ([]session.Entry, error) {
	c, err := t.s.Context(session.ContextOptions{Shared: true})
	if err != nil {
		return nil, err
	}
	if !t.recorded.known {
		t.recorded = recorded{known: true, provider: c.Provider, model: c.Model, thinking: c.ThinkingLevel}
	}
	var entries []session.Entry
	info := t.opts.Model.Info()
	if r := &t.recorded; info.Model != "" && (r.provider != info.Provider || r.model != info.Model) {
		entries = append(entries, session.Entry{Type: session.TypeModelChange, ModelChange: &session.ModelChangeEntry{Provider: info.Provider, ModelID: info.Model}})
		r.provider, r.model = info.Provider, info.Model
	}
	if level := t.opts.Thinking; level != "" && level != t.recorded.thinking {
		entries = append(entries, session.Entry{Type: session.TypeThinkingLevel, ThinkingLevel: &session.ThinkingLevelEntry{ThinkingLevel: level}})
		t.recorded.thinking = level
	}
	return append(entries, instructions(c, t.opts.System)...), nil
}

// instructions returns what makes a text the instructions of a conversation: nothing if
// it is already. Earlier instructions stay in the log, and go out of the context.
func instructions(c *session.Context, text string) []session.Entry {
	if text == "" {
		return nil
	}
	var entries []session.Entry
	sent := false
	for i := range c.Entries {
		e := &c.Entries[i]
		switch {
		case !session.IsPrompt(e):
		case session.TextOf(e.Message.Content) == text && !sent:
			sent = true
		default:
			entries = append(entries, session.Entry{Type: session.TypeContextEdit, ContextEdit: &session.ContextEditEntry{TargetID: e.ID}})
		}
	}
	if !sent {
		entries = append(entries, message(&session.MessageEntry{
			Role: session.RoleSystem, Content: []session.Content{session.Text(text)},
			Metadata: map[string]any{session.MetaType: session.PromptType},
		}))
	}
	return entries
}

func message(m *session.MessageEntry) session.Entry {
	return session.Entry{Type: session.TypeMessage, Message: m}
}

// append writes entries and tells of the messages among them. If another writer was
// faster, the log grows a branch: what a model or a tool has said is never thrown away.
func (t *turn) append(entries ...session.Entry) ([]string, error) {
	ids, err := t.s.AppendAll(entries...)
	if errors.Is(err, session.ErrConflict) {
		t.publish(Event{Type: Error, Err: err})
		ids, err = t.s.AppendAll(entries...)
	}
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		entries[i].ID = id
		if t.counted {
			t.spent.Add(&entries[i])
		}
		if entries[i].Message != nil {
			t.publish(Event{Type: MessageEnd, Entry: &entries[i]})
		}
	}
	return ids, nil
}

// moveTo moves the leaf. What was known about the path no longer holds.
func (t *turn) moveTo(id string) error {
	t.recorded = recorded{}
	t.count.forget()
	return t.s.Branch(id)
}

// unique gives calls of one message that share an id an id of their own: no provider
// takes two alike.
func unique(blocks []session.Content) []session.Content {
	seen := make(map[string]bool)
	var changed []session.Content
	for i, block := range blocks {
		call := block.ToolUse
		if call == nil {
			continue
		}
		id := call.ID
		for n := 2; id == "" || seen[id]; n++ {
			id = call.ID + "_" + string(rune('0'+n%10)) + session.NewID()[:8]
		}
		seen[id] = true
		if id != call.ID {
			if changed == nil {
				changed = slices.Clone(blocks)
			}
			other := *call
			other.ID = id
			changed[i].ToolUse = &other
		}
	}
	if changed != nil {
		return changed
	}
	return blocks
}
