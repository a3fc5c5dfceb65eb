package session_test

import (
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// A compaction may keep more than the one before it. That does not bring back an edit that was
// reverted before the entries that the earlier compaction kept.
func TestCompactionThatKeepsMoreKnowsOlderReverts(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	s := mustGet(session.Create(t.Context(), st, session.Header{ID: "s"}, nil))(t)
	add := func(e session.Entry) string { return mustGet(s.AppendEntry(e))(t) }
	say := func(role session.MessageRole, text string) string {
		return add(session.Message(role, session.Text(text)))
	}
	rule := say(session.RoleSystem, "be kind")
	edit := add(session.Entry{Type: session.TypeContextEdit, ContextEdit: &session.ContextEditEntry{TargetID: rule, Replacement: []session.Content{session.Text("edited")}}})
	add(session.Entry{Type: session.TypeRevert, Revert: &session.RevertEntry{TargetID: edit}})
	early := say(session.RoleUser, "one")
	say(session.RoleAssistant, "two")
	for _, first := range []string{say(session.RoleUser, "three"), early} {
		add(session.Entry{Type: session.TypeCompaction, Compaction: &session.CompactionEntry{Summary: "so far", FirstKeptEntryID: first}})
		open := mustGet(session.Open(t.Context(), st, "s", nil))(t)
		for _, s := range []*session.Session{s, open} {
			c := mustGet(s.Context(session.ContextOptions{}))(t)
			if said := session.TextOf(c.Entries[0].Message.Content); said != "be kind" {
				t.Errorf("after a compaction that keeps entries from %s, the system message is %q", first, said)
			}
		}
		mustDo(t, open.Close())
	}
}
