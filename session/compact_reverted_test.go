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

// A revert that is appended together with a compaction counts in it as one that was appended before.
func TestCompactionWithARevertBesideIt(t *testing.T) {
	t.Parallel()
	for _, together := range []bool{false, true} {
		st := memory.New(nil)
		s := mustGet(session.Create(t.Context(), st, session.Header{ID: "s"}, nil))(t)
		add := func(e session.Entry) string { return mustGet(s.AppendEntry(e))(t) }
		say := func(role session.MessageRole, text string) string {
			return add(session.Message(role, session.Text(text)))
		}
		rule := say(session.RoleSystem, "rule")
		edit := func(text string) string {
			return add(session.Entry{Type: session.TypeContextEdit, ContextEdit: &session.ContextEditEntry{TargetID: rule, Replacement: []session.Content{session.Text(text)}}})
		}
		edit("one")
		revert := session.Revert(edit("two"))
		add(session.Entry{Type: session.TypeCompaction, Compaction: &session.CompactionEntry{Summary: "so far", FirstKeptEntryID: say(session.RoleUser, "three")}})
		say(session.RoleUser, "four")
		compaction := session.Entry{Type: session.TypeCompaction, Compaction: &session.CompactionEntry{Summary: "so far"}}
		if together {
			mustGet(s.AppendAll(revert, compaction))(t)
		} else {
			add(revert)
			add(compaction)
		}
		open := mustGet(session.Open(t.Context(), st, "s", nil))(t)
		for _, s := range []*session.Session{s, open} {
			c := mustGet(s.Context(session.ContextOptions{}))(t)
			if said := session.TextOf(c.Entries[0].Message.Content); said != "one" {
				t.Errorf("together %v: the system message is %q", together, said)
			}
		}
		mustDo(t, open.Close())
	}
}
