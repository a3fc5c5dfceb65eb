package agent

import (
	"fmt"
	"strings"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// This file says how work on a conversation begins: with what the user says, or with what
// is still open.

// checkPrompt refuses content that a user's message cannot have. Once it is in the log,
// providers would refuse every further request.
func checkPrompt(content []session.Content) error {
	empty := true
	for i := range content {
		switch c := &content[i]; {
		case c.ToolUse != nil || c.ToolResult != nil || c.Thinking != nil:
			return invalid("a user's message cannot have a block of type %q", c.Type)
		case c.Text == nil || strings.TrimSpace(c.Text.Content) != "":
			empty = false
		}
	}
	if empty {
		return invalid("the message is empty")
	}
	return nil
}

// prompt writes what is queued and what the user says to the log. Calls of earlier turns that
// have no result get one that says they were interrupted.
func (k *Keeper) prompt(content []session.Content) error {
	if err := k.checkFits(content); err != nil {
		return err
	}
	if err := k.adoptDraft(); err != nil {
		return err
	}
	pending, err := k.pending()
	if err != nil {
		return err
	}
	var entries []session.Entry
	for _, a := range answersTo(supersededText, pending...) {
		entries = append(entries, resultEntry(a.Call, a.result))
	}
	settings, err := k.settings()
	if err != nil {
		return err
	}
	entries = append(entries, settings...)
	said := message(&session.MessageEntry{Role: session.RoleUser, Content: content})
	if err := k.crossBoundary(said); err != nil {
		return err
	}
	if _, err := k.writeQueued(true, entries, said); err != nil {
		return err
	}
	for _, p := range pending {
		k.forgetCall(p)
		if p.isDecidedLater() {
			k.publish(Event{Type: Error, Err: &errGivenUp{p.Call}})
		}
	}
	return nil
}

// checkFits returns an error if what the user says is larger than the window. Nothing could be left
// out to make room for it.
func (k *Keeper) checkFits(content []session.Content) error {
	window := k.opts.Compaction.window(k.opts.Model)
	if window == 0 {
		return nil
	}
	tokens := k.count.entry(message(&session.MessageEntry{Role: session.RoleUser, Content: content}), k.opts.Model)
	if tokens <= window {
		return nil
	}
	return invalid("the message has about %d tokens, and the window of the model has %d, so it was not sent; "+
		"send it in parts, let the model read it from a file with tools, or set the window if the model's is larger", tokens, window)
}

// errGivenUp is the result of a call that waited for a decision and was given up.
type errGivenUp struct{ call Call }

func (e *errGivenUp) Error() string {
	const most = 300
	input := []rune(string(e.call.Input))
	if len(input) > most {
		input = append(input[:most], '…')
	}
	return fmt.Sprintf("the conversation continued without the call of %s that waited for approval; the call is given up and did not run: %s", e.call.Name, string(input))
}

// restore finds out where the work stopped, after an end or a crash: see unfinished. An
// answer that broke off becomes a branch.
func (k *Keeper) restore() (pending []Pending, open bool, _ error) {
	if err := k.adoptDraft(); err != nil {
		return nil, false, err
	}
	if err := k.leaveBroken(); err != nil {
		return nil, false, err
	}
	pending, open, err := k.unfinished()
	if err == nil && !open {
		open, err = k.queuedBefore()
	}
	if err != nil || !open {
		return nil, false, err
	}
	return pending, true, k.recordSettings()
}

// unfinished returns the calls that wait for a result, and whether anything is left to do:
// such calls, or something that the model has not answered.
func (k *Keeper) unfinished() (pending []Pending, open bool, _ error) {
	pending, err := k.pending()
	if err != nil || len(pending) > 0 {
		return pending, err == nil, err
	}
	open, err = k.open()
	return nil, open, err
}

// open reports whether the conversation waits for the model: it ends with something that
// the model has not answered, or not to the end.
func (k *Keeper) open() (bool, error) {
	last, err := k.lastMessage()
	if err != nil || !waits(last) || last.Message.Role == session.RoleAssistant {
		return waits(last), err
	}
	r, err := k.lastRecord(func(e *session.Entry) bool { return e.Message != nil })
	hadNothingToAdd := r != nil && r.Response == "" && r.Error == ""
	return !hadNothingToAdd, err
}

// waits reports whether a message, the last of a conversation, waits for the model.
func waits(last *session.Entry) bool {
	switch {
	case last == nil:
		return false
	case last.Message.Role == session.RoleAssistant:
		return last.Message.StopReason == provider.StopPause || brokeOff(last.Message)
	}
	return !endsTurn(last.Message)
}

// metaEndsTurn is the member of a message's metadata that marks a result to which the model has
// nothing to add.
const metaEndsTurn = "coppice.ends_turn"

func endsTurn(m *session.MessageEntry) bool {
	return m.Role == session.RoleTool && m.Metadata[metaEndsTurn] != nil
}

// lastMessage returns the message with which the conversation ends, or nil. Summaries,
// system messages, notes and commands that the user ran are not answered.
func (k *Keeper) lastMessage() (*session.Entry, error) {
	end, err := k.end()
	if err == nil && len(pendingIn("", end)) > 0 { // then a context ends with results that are made up
		end, err = k.whole()
	}
	return lastMessageIn(end), err
}

// Of several results it is the one that ends the turn, if there is one.
func lastMessageIn(entries []session.Entry) (last *session.Entry) {
	for i := len(entries) - 1; i >= 0; i-- {
		m := entries[i].Message
		_, isNote := entries[i].NoteBy()
		switch {
		case m == nil || isNote || m.Role == session.RoleSystem || m.Role == session.RoleBashExecution:
			continue
		case last == nil:
			last = &entries[i]
		case m.Role != session.RoleTool || last.Message.Role != session.RoleTool:
			return last
		}
		if endsTurn(m) {
			return &entries[i]
		}
	}
	return last
}

// brokeOff reports whether a message is the part of an answer that arrived before the
// connection failed. A cancelled answer did not break off.
func brokeOff(m *session.MessageEntry) bool {
	return m.Role == session.RoleAssistant && m.StopReason == provider.StopFailed && m.Metadata[provider.MetaIncomplete] != nil
}

// leaveBroken goes back to where the model was asked, if the conversation ends with an
// answer that broke off. That answer becomes a branch.
func (k *Keeper) leaveBroken() error {
	last, err := k.lastMessage()
	if err != nil || last == nil || !brokeOff(last.Message) || last.ParentID == nil {
		return err
	}
	_, askedAt, err := session.DraftAt(k.s, *last.ParentID)
	if err != nil {
		return err
	}
	return k.moveTo(askedAt)
}

// lastPrompt returns the entry that began the last turn, or "". It may be in the part of
// the path that a compaction has replaced.
func (k *Keeper) lastPrompt() (string, error) {
	shape, err := k.s.Shape()
	if err != nil {
		return "", err
	}
	for n := shape.Leaf(); n >= 0; n = shape.Parent(n) {
		if shape.Type(n) != session.TypeMessage {
			continue
		}
		found, err := k.s.Peek(shape.ID(n))
		if err != nil {
			return "", err
		}
		if found[0].BeginsTurn() {
			return shape.ID(n), nil
		}
	}
	return "", nil
}
