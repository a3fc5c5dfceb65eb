package conversation

import (
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
	link    string // where it stands: in this link
	seen    int    // after so many of its messages
	last    string // the id of the last of these
	waiting bool   // a result is made up that may yet come
}

// update takes in what was added since the last time, and returns what fits.
func (v *view) update(m *Sessions, w *Window, id string) (*window.View, error) {
	options, version := w.inForce()
	if v.planner == nil || v.version != version || v.waiting || !v.advance(m, id) {
		if err := v.rebuild(m, id, options, version); err != nil {
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
		plain = plain && l.isPlain()
		if l.id == v.link {
			plain = plain && v.seen <= len(l.entries) && (v.seen == 0 || l.entries[v.seen-1].ID == v.last)
		}
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
	v.link, v.seen, v.last = l.id, len(l.entries), ""
	if v.seen > 0 {
		v.last = l.entries[v.seen-1].ID
	}
}

// isPlain reports whether what a link gives the model is simply its messages.
func (l *link) isPlain() bool { return !l.composed && !l.pairs.loose }

// rebuild makes the view anew: from the last links of the chain, as many as are
// needed to fill the window. The rest could only be left out.
func (v *view) rebuild(m *Sessions, id string, options window.Options, version int) error {
	planner, err := window.NewPlanner(options)
	if err != nil {
		return err
	}
	*v = view{planner: planner, version: version}
	var parts [][]session.Entry // the last first
	tokens, pending := 0, false
	err = m.walkBack(id, func(l *link) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		entries, whole := l.context()
		if v.link == "" {
			v.stand(l)
			pending = l.pairs.pending()
		}
		parts = append(parts, entries)
		tokens += l.tokens
		return whole && tokens <= options.Budget.Room()
	})
	if err != nil {
		return err
	}
	all := joined(parts)
	v.waiting = pending && slices.ContainsFunc(all, func(e session.Entry) bool { return interruptedCall(&e) != "" })
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
func (l *link) context() (_ []session.Entry, whole bool) {
	if l.isPlain() {
		return l.entries, true
	}
	entries, err := l.s.GetContext()
	if err != nil {
		return l.entries, true // the messages are in memory all the same
	}
	there := make(map[string]bool)
	compacted := false
	for i := range entries {
		there[entries[i].ID] = true
		compacted = compacted || entries[i].Compaction != nil
	}
	if !compacted {
		return entries, true
	}
	// Instructions and reference are not summarised away.
	var kept []session.Entry
	for i := range l.entries {
		if e := &l.entries[i]; fromEntry(*e).Category <= CategoryContext && !there[e.ID] && !l.isCleared(e.ID) {
			kept = append(kept, *e)
		}
	}
	return append(kept, entries...), false
}

func (l *link) isCleared(id string) bool {
	for _, target := range l.cleared {
		if target == id {
			return true
		}
	}
	return false
}
