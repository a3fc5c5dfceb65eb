package conversation_test

import (
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// An edit that was taken back, and then put back by taking back the revert, counts. So an
// instruction that no model sees is not carried into the next session.
func TestRevertOfARevert(t *testing.T) {
	t.Parallel()
	for reverts, want := range []bool{false, true, false, true} {
		st := memory.New(nil)
		open := func() (*conversation.Sessions, *conversation.Chat) {
			m := must(conversation.NewSessions(st, &conversation.Options{Settings: conversation.Settings{MaxMessagesPerSession: 3, AutoSaveInterval: -1}}))(t)
			return m, conversation.NewChat(m, conversation.NewWindow(nil))
		}
		m, chat := open()
		must(chat.AddMessage(session.RoleSystem, "be kind", 0, nil))(t)
		must(chat.AddMessage(session.RoleUser, "hello", 0, nil))(t)
		id := chat.ID()
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		s := must(session.Open(t.Context(), st, id, nil))(t)
		path := must(s.Forward(""))(t)
		last := must(s.AppendEntry(session.ContextEdit(path[slices.IndexFunc(path, func(e session.Entry) bool { return e.Message != nil })].ID)))(t)
		for range reverts {
			last = must(s.AppendEntry(session.Revert(last)))(t)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		m, chat = open()
		if err := chat.Load(id); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"two", "three", "four"} {
			must(chat.AddMessage(session.RoleAssistant, text, 0, nil))(t)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		links := must(session.Chain(t.Context(), st, id))(t)
		next := must(session.Open(t.Context(), st, links[1], nil))(t)
		carried := slices.ContainsFunc(must(next.Forward(""))(t), func(e session.Entry) bool {
			return e.Message != nil && session.TextOf(e.Message.Content) == "be kind"
		})
		if carried != want {
			t.Errorf("after %d reverts the instruction is carried: %v", reverts, carried)
		}
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A conversation that goes on in another session keeps its tags in lists.
func TestTagsAtABoundary(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	m := must(conversation.NewSessions(st, &conversation.Options{Settings: conversation.Settings{MaxMessagesPerSession: 3, AutoSaveInterval: -1}}))(t)
	defer m.Close()
	chat := conversation.NewChat(m, conversation.NewWindow(nil))
	must(chat.AddMessage(session.RoleUser, "one", 0, nil))(t)
	s := must(session.Open(t.Context(), st, chat.ID(), nil))(t)
	must(s.AppendEntry(session.Tags("garden")))(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	id := chat.ID()
	for _, text := range []string{"two", "three", "four", "five"} {
		must(chat.AddMessage(session.RoleUser, text, 0, nil))(t)
	}
	if links := must(session.Chain(t.Context(), st, id))(t); len(links) < 2 {
		t.Fatalf("only %v", links)
	}
	list := must(m.ListConversations(0, 0))(t)
	if info := must(m.Info(id))(t); len(list) != 1 || !slices.Equal(list[0].Tags, []string{"garden"}) || !slices.Equal(info.Tags, list[0].Tags) {
		t.Errorf("%+v, %+v", list, info)
	}
}
