package conversation

import (
	"errors"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// view is what of a conversation fits a window. It is kept up to date message by
// message, across the boundaries of sessions.
type view struct {
	planner *window.Planner
	version int    // of the options that the planner was made with
	config  Config // that the planner was made with
	waiting bool   // a result is made up that may yet come

	// Where it stands: in this link, after so many of its messages, and after so
	// many changes of other kinds.
	link     string
	seen     int
	composed int
}

// update takes in what was added since the last time, and returns what fits.
func (v *view) update(m *Sessions, w *Window, id string) (*window.View, error) {
	config, err := m.Config(id)
	if err != nil {
		return nil, err
	}
	options, version := w.inForce()
	options = config.apply(options, w.counters)
	if v.planner == nil || v.version != version || v.config != config || v.waiting || !v.advance(m, id) {
		if err := v.rebuild(m, id, options, view{version: version, config: config}); err != nil {
			return nil, err
		}
	}
	return v.planner.View()
}

// advance takes in what comes after the place where the view stands; false means
// that it must be built anew.
func (v *view) advance(m *Sessions, id string) bool {
	var links []*link // from the tail back to where we stand
	plain := true
	err := m.walkBack(id, func(l *link) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.id == v.link {
			plain = plain && l.composed == v.composed
		} else {
			plain = plain && l.composed == l.plainAt
		}
		plain = plain && !l.pairs.Pending()
		links = append(links, l)
		return plain && l.id != v.link
	})
	if err != nil || !plain || links[len(links)-1].id != v.link {
		return false
	}
	for i := len(links) - 1; i >= 0; i-- {
		v.take(links[i])
	}
	return true
}

// take adds the messages of a link that the view has not seen yet. What was
// carried over to it has been seen in the link before.
func (v *view) take(l *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id != v.link {
		v.link, v.seen = l.id, 0
	}
	for i := v.seen; i < len(l.entries); i++ {
		if e := &l.entries[i]; !IsCarried(e) {
			v.planner.Add(*e)
		}
	}
	v.stand(l)
}

// stand notes that the view has seen all of a link.
func (v *view) stand(l *link) {
	v.link, v.seen, v.composed = l.id, len(l.entries), l.composed
}

// rebuild makes the view anew: from the last links of the chain, as many as are
// needed to fill the window. The rest could only be left out.
func (v *view) rebuild(m *Sessions, id string, options window.Options, with view) error {
	planner, err := window.NewPlanner(options)
	if err != nil {
		return err
	}
	*v = with
	v.planner = planner
	var parts [][]session.Entry // the last first
	tokens, pending := 0, false
	var failed error
	err = m.walkBack(id, func(l *link) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		var entries []session.Entry
		var whole bool
		if entries, whole, failed = l.context(); failed != nil {
			return false
		}
		if v.link == "" {
			v.stand(l)
			pending = l.pairs.Pending()
		}
		parts = append(parts, entries)
		tokens += l.tokens().total()
		return whole && tokens <= options.Budget.Room()
	})
	if err = errors.Join(err, failed); err != nil {
		v.planner = nil
		return err
	}
	all := joined(parts)
	v.waiting = pending
	planner.Add(all...)
	return nil
}

// joined makes one conversation of what links give the model, the last first.
// Copies count in the first link that there is; elsewhere the original is there.
func joined(parts [][]session.Entry) []session.Entry {
	answered := make(map[string]bool) // calls that have a result
	for _, part := range parts {
		for i := range part {
			if e := &part[i]; e.Message != nil && !IsCarried(e) && interruptedCall(e) == "" {
				noteResults(e, answered)
			}
		}
	}
	var all []session.Entry
	for i := len(parts) - 1; i >= 0; i-- {
		first := i == len(parts)-1
		for j := range parts[i] {
			e := &parts[i][j]
			if e.Message != nil && (isMarker(e) || !first && IsCarried(e)) {
				continue
			}
			// A call whose turn crossed a boundary is seen on both sides, and
			// lacks its result on one or both.
			if id := interruptedCall(e); id != "" {
				if answered[id] {
					continue
				}
				answered[id] = true
			}
			all = append(all, *e)
		}
	}
	return all
}

// interruptedCall returns the id of the call for whose missing result an entry
// stands in, or "".
func interruptedCall(e *session.Entry) string {
	if id, ok := strings.CutPrefix(e.ID, session.InterruptedPrefix); ok {
		return id
	}
	return ""
}

func noteResults(e *session.Entry, answered map[string]bool) {
	for i := range e.Message.Content {
		if r := e.Message.Content[i].ToolResult; r != nil {
			answered[r.ToolUseID] = true
		}
	}
}

// context returns what a link gives the model; whole is false if a summary
// stands for all that came before.
func (l *link) context() (_ []session.Entry, whole bool, _ error) {
	if l.composed == l.plainAt && !l.pairs.Pending() {
		return l.entries, true, nil
	}
	entries, err := l.s.GetContext()
	if err != nil {
		return nil, false, err
	}
	compacted := slices.ContainsFunc(entries, func(e session.Entry) bool { return e.Compaction != nil })
	return entries, !compacted, nil
}
