package transcript

import (
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// Replies follows a conversation and knows which messages are one reply of the model:
// those of one response, as in session.Pairs, and those that directly follow a call,
// whatever their response ids. Programs that keep each call separately write such
// messages, and most others would treat a call whose result does not come next as
// unanswered.
//
// The zero value is ready to use.
type Replies struct {
	pairs session.Pairs
	open  bool // the model spoke last
	calls bool // and called a tool
}

// Continues takes the next entry, and reports whether it continues the reply before it.
func (r *Replies) Continues(e *session.Entry) bool {
	if r == nil || e == nil {
		return false
	}
	same := r.pairs.Add(e).Continues >= 0
	if e.Message == nil {
		return false
	}
	if e.Message.Role != session.RoleAssistant {
		r.open, r.calls = false, false
		return false
	}
	goesOn := r.open && (same || r.calls)
	r.open = true
	r.calls = goesOn && r.calls || slices.ContainsFunc(e.Message.Content, func(c session.Content) bool { return c.ToolUse != nil })
	return goesOn
}

// JoinReplies returns a conversation in which each reply is one message. It has the
// id and the time of the first of its messages, and why the last one stopped.
func JoinReplies(entries []session.Entry) []session.Entry {
	var replies Replies
	var out []session.Entry
	at := -1        // the current reply
	isOurs := false // it is a copy, to which we may add: the entries are not ours
	for i := range entries {
		e := entries[i]
		if !replies.Continues(&e) {
			if e.Message != nil && e.Message.Role == session.RoleAssistant {
				at, isOurs = len(out), false
			}
			out = append(out, e)
			continue
		}
		if !isOurs {
			out[at].Message, isOurs = OwnReply(out[at].Message), true
		}
		ExtendReply(out[at].Message, e.Message)
	}
	return out
}

// OwnReply returns a copy of a reply's first part for ExtendReply.
func OwnReply(first *session.MessageEntry) *session.MessageEntry {
	own := *first
	own.Content = slices.Clip(own.Content) // so that the first block that is added moves them
	return &own
}

// ExtendReply adds a further part to a reply that OwnReply returned.
func ExtendReply(whole, part *session.MessageEntry) {
	whole.Content = append(whole.Content, part.Content...)
	whole.StopReason, whole.Tokens = part.StopReason, nil
	whole.Usage = whole.Usage.Plus(part.Usage)
}
