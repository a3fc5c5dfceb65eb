package transcript

import (
	"bytes"

	"github.com/coppice-dev/coppice/session"
)

// A program may write an answer first and its cost later, or a result first and the
// failure of its command later. If a file is imported between the two, the stored
// message lacks that, and it is still the same message when the file has grown:
// branches must not depend on the time of an import. The cost is then noted separately;
// the failure is not recorded.

// isLater reports whether a record says the same as the stored one, plus only what its
// program learned afterwards.
func isLater(stored, e *session.Entry) bool {
	if stored.Message == nil || e.Message == nil {
		return false
	}
	have, now := *stored.Message, *e.Message
	if have.Usage == nil {
		now.Usage = nil
	}
	if len(have.Content) == len(now.Content) {
		now.Content = append([]session.Content(nil), now.Content...)
		for i := range now.Content {
			was, is := have.Content[i].ToolResult, now.Content[i].ToolResult
			if was != nil && is != nil && is.IsError && !was.IsError {
				plain := *is
				plain.IsError = false
				now.Content[i].ToolResult = &plain
			}
		}
	}
	plain := *e
	plain.Message = &now
	line, before := contentKey(&plain, true), contentKey(stored, true)
	return bytes.Equal(line, before) || isRedactedFrom(before, line)
}

// recordCost notes the cost of a response if the stored message lacks it.
func (t *target) recordCost(stored, e *session.Entry) error {
	m := e.Message
	if m == nil || m.Usage == nil || stored.Message.Usage != nil {
		return nil
	}
	id := "usage-" + HashID(t.id, e.ID)[:18]
	if has, err := t.has(id); has || err != nil {
		return err
	}
	t.remark(id, session.NewUsage(m.Provider, m.Model, m.ResponseID, *m.Usage))
	return nil
}

// assignCosts adds separately noted costs to their messages, so that a writer sees the
// same as after a single import.
func (s *Script) assignCosts() {
	bills := make(map[string]*session.Usage) // by response
	for i := range s.All {
		if bill, ok := session.BillOf(&s.All[i]); ok && s.All[i].Custom != nil {
			bills[bill.Response] = &bill.Usage
		}
	}
	if len(bills) == 0 {
		return
	}
	last := make(map[string]string) // the message of a response that carries what it cost
	for i := range s.All {
		if m := s.All[i].Message; m != nil && m.Role == session.RoleAssistant {
			key := session.ResponseKey(&s.All[i])
			last[key] = s.All[i].ID
			if m.Usage != nil {
				delete(bills, key)
			}
		}
	}
	for _, list := range [][]session.Entry{s.All, s.Path, s.Context.Entries} {
		for i := range list {
			e := &list[i]
			if e.Message == nil {
				continue
			}
			key := session.ResponseKey(e)
			if u := bills[key]; u != nil && last[key] == e.ID {
				m := *e.Message
				m.Usage = u
				e.Message = &m
			}
		}
	}
}

// lostCosts returns the lost costs of responses without a message, if a format has no
// place for them: less was read back than the path has.
func (s *Script) lostCosts(read *Collected) []Loss {
	var have, got session.Spent
	carried := make(map[string]bool)
	for i := range s.Path {
		have.Add(&s.Path[i])
		if s.Path[i].Message != nil {
			carried[session.ResponseKey(&s.Path[i])] = true
		}
	}
	for _, c := range read.Conversations {
		for i := range c.Records {
			got.Add(&c.Records[i].Entry)
		}
	}
	if got.Reported >= have.Reported {
		return nil
	}
	var losses []Loss
	for i := range s.Path {
		e := &s.Path[i]
		if bill, ok := session.BillOf(e); ok && e.Custom != nil && !carried[bill.Response] {
			losses = append(losses, Loss{EntryID: e.ID, What: "usage", Why: "a response without a message has no place there"})
		}
	}
	return losses
}
