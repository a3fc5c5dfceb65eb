package codex

import (
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// counter distinguishes new token counts from repeated ones: Codex repeats the last one
// at the beginning of a turn, and whenever limits change.
type counter struct {
	total   session.Usage // all that was counted before
	known   bool          // there was a total
	context int           // the tokens of the conversation after the last response
}

// count reads a token count: an event's, or that of a completed turn.
func (r *reader) count(v loose.Value, l *line) error {
	switch info := v.Get("info"); {
	case info.Has("total_token_usage"):
		return r.addUsage(r.usage.next(info.Get("total_token_usage"), info.Get("last_token_usage")), l)
	case info.Has("last_token_usage"):
		return r.addUsage(usageOf(info.Get("last_token_usage")), l)
	case info.Has("prompt"):
		return r.addUsage(&session.Usage{Input: info.Get("prompt").Int(), Output: info.Get("completion").Int()}, l)
	case v.Has("usage"): // a turn's end has the total of the thread so far
		return r.addUsage(r.usage.next(v.Get("usage"), nil), l)
	}
	return nil
}

// usageOf reads a usage that is not part of a total.
func usageOf(v loose.Value) *session.Usage { return provider.CodexUsage(v) }

// next returns what a response cost, given the new total and the cost of the last
// response according to Codex. It returns nil if the total is the same as before.
func (c *counter) next(total, last loose.Value) *session.Usage {
	now := usageOf(total)
	if now == nil {
		return nil
	}
	before := c.total
	grown := c.known && now.Input >= before.Input && now.CacheRead >= before.CacheRead && now.Output >= before.Output
	if c.known && same(now, &before) {
		return nil
	}
	c.total, c.known = *now, true
	switch u := usageOf(last); {
	case u != nil:
		return u
	case grown:
		return minus(now, &before)
	}
	return now // the first, or a count that began again
}

func same(a, b *session.Usage) bool {
	return a.Input == b.Input && a.Output == b.Output && a.CacheRead == b.CacheRead && a.CacheWrite == b.CacheWrite && a.Reasoning == b.Reasoning
}

func minus(a, b *session.Usage) *session.Usage {
	return &session.Usage{
		Input: a.Input - b.Input, Output: a.Output - b.Output, CacheRead: a.CacheRead - b.CacheRead,
		CacheWrite: max(a.CacheWrite-b.CacheWrite, 0), Reasoning: max(a.Reasoning-b.Reasoning, 0),
	}
}

// addUsage adds a usage to the last message of the current response. Without a message, as
// after a compaction, it gets an entry of its own.
func (r *reader) addUsage(u *session.Usage, l *line) error {
	if u == nil {
		return nil
	}
	r.usage.context = u.Context()
	for i := len(r.queue) - 1; i >= 0; i-- {
		m := r.queue[i].Entry.Message
		if m == nil || m.Role != session.RoleAssistant {
			continue
		}
		if _, past := r.past.entry(r.queue[i].ID); past {
			return r.flush() // the parent's entry has it already
		}
		m.Usage = u
		return r.flush()
	}
	r.add(session.Entry{Type: session.TypeCustom, Custom: session.NewUsage(r.providerName(), r.model, "", *u)}, l, string(l.payload))
	return r.flush()
}
