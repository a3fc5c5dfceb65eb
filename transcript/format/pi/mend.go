package pi

import (
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/residue"
)

// repairs lists the changes to the path that make pi send the model what we would. pi answers a
// call by itself if its result does not come next, and sends a second result of a call as it
// is. pi's own sessions are not changed.
type repairs struct {
	whole map[string]*session.MessageEntry // replies that were kept in pieces, by their first
	gone  map[string]string                // entries that are not written, and what their children follow
	after map[string][]session.Entry       // results that never came, by what they follow
}

func repairsFor(s *transcript.Script) *repairs {
	m := &repairs{
		whole: make(map[string]*session.MessageEntry), gone: make(map[string]string), after: make(map[string][]session.Entry),
	}
	if s.NativeID != "" {
		return m
	}
	m.join(s.Path)
	m.interrupted(s)
	return m
}

// join turns each reply into one message.
func (m *repairs) join(path []session.Entry) {
	var replies transcript.Replies
	first := -1
	for i := range path {
		e := &path[i]
		goesOn := replies.Continues(e)
		if e.Message == nil || e.Message.Role != session.RoleAssistant {
			continue
		}
		if !goesOn || first < 0 || e.ParentID == nil || residue.In(e.Extra, name) != nil || residue.In(path[first].Extra, name) != nil {
			first = i
			continue
		}
		whole := m.whole[path[first].ID]
		if whole == nil {
			whole = transcript.OwnReply(path[first].Message)
			m.whole[path[first].ID] = whole
		}
		transcript.ExtendReply(whole, e.Message)
		m.gone[e.ID] = *e.ParentID
	}
}

// interrupted finds the stand-ins for results that never came, and the second results of
// calls, which a context leaves out.
func (m *repairs) interrupted(s *transcript.Script) {
	onPath := make(map[string]int)
	for i := range s.Path {
		onPath[s.Path[i].ID] = i
	}
	parted := make(map[string]bool) // entries with children on other branches
	for i := range s.All {
		if e := &s.All[i]; e.ParentID != nil && e.Message != nil {
			if _, on := onPath[e.ID]; on {
				continue
			}
			parted[*e.ParentID] = true
		}
	}
	last, known := "", false // the last entry before the results
	before := ""
	for _, e := range s.Context.Entries {
		if !strings.HasPrefix(e.ID, session.InterruptedPrefix) {
			before, known = e.ID, false
			continue
		}
		if !known {
			last, known = "", true
			if at, on := onPath[before]; on {
				last = m.last(s.Path, at)
			}
		}
		if last != "" && !parted[last] {
			e.ID = transcript.HashID(name, e.ID, last)
			m.after[last] = append(m.after[last], e)
		}
	}
	for _, p := range s.Context.Problems {
		if at, on := onPath[p.EntryID]; on && p.Kind == session.ProblemOrphan {
			m.orphan(&s.Path[at])
		}
	}
}

// last returns the last piece of the reply that begins with an entry, or the entry.
func (m *repairs) last(path []session.Entry, at int) string {
	for at+1 < len(path) {
		if _, gone := m.gone[path[at+1].ID]; !gone {
			break
		}
		at++
	}
	return path[at].ID
}

// orphan leaves out an entry that holds only a result which no call waits for.
func (m *repairs) orphan(e *session.Entry) {
	if e.Message != nil && len(e.Message.Content) == 1 && e.Message.Content[0].ToolResult != nil && e.ParentID != nil {
		m.gone[e.ID] = *e.ParentID
	}
}
