package conversation

import (
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// view is the part of a conversation that fits a window. It is updated message by message,
// across the boundaries of sessions. The whole of which it is a part is the context of the
// conversation as one session.
type view struct {
	planner *window.Planner
	version int    // of the options that the planner was made with
	config  Config // that the planner was made with
	seen    int    // how many entries of the context the planner has
	last    session.Fingerprint
}

// update adds what is new since the last time, and returns what fits. at says in which session a
// reply would be.
func (v *view) update(m *Sessions, w *Window, id string) (fits *window.View, at Request, err error) {
	var config Config
	var options window.Options
	var version int
	roomAt := func(l *link) int {
		at.Conversation, at.Session, config = l.Before.Root, l.id, l.config
		options, version = w.inForce()
		options = config.apply(options, w.counters)
		return options.Budget.Room()
	}
	var whole *session.Context
	err = m.inEnd(id, roomAt, func(s *session.Session) (err error) {
		whole, err = s.Context(session.ContextOptions{Shared: true})
		return err
	})
	if err != nil {
		return nil, at, err
	}
	if v.planner == nil || v.version != version || v.config != config || !v.isBeginningOf(whole) {
		planner, err := window.NewPlanner(options)
		if err != nil {
			return nil, at, err
		}
		*v = view{planner: planner, version: version, config: config}
	}
	v.planner.Add(whole.Entries[v.seen:]...)
	if v.seen = len(whole.Entries); v.seen > 0 {
		v.last = whole.Fingerprints[v.seen-1]
	}
	fits, err = v.planner.View()
	return fits, at, err
}

// isBeginningOf reports whether what the planner has is the beginning of a context.
func (v *view) isBeginningOf(c *session.Context) bool {
	return v.seen == 0 || v.seen <= len(c.Entries) && c.Fingerprints[v.seen-1] == v.last
}

// Context returns the whole context of a conversation: what a model with an unlimited
// window would be sent.
func (m *Sessions) Context(id string) (c *session.Context, err error) {
	err = m.inWhole(id, func(w *whole) error {
		c, err = w.WithContext(m.context()).Context(session.ContextOptions{})
		return err
	})
	return c, err
}
