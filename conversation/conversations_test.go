package conversation_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

func newConversations(t *testing.T, dir string, o conversation.ManagerOptions) *conversation.Manager {
	t.Helper()
	m := must(conversation.Open(dir, &o))(t)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// TestNothingToSay: an empty message is refused before anything is stored.
func TestNothingToSay(t *testing.T) {
	t.Parallel()
	m := newConversations(t, "", conversation.ManagerOptions{Model: echo(), SystemPrompt: "be brief"})
	for _, text := range []string{"", " \n"} {
		_, err := m.ProcessMessage(t.Context(), text, "")
		wantError(t, err, session.ErrInvalid)
	}
	if id := m.Current().ID(); id != "" {
		t.Errorf("it has begun session %s", id)
	}
}

func TestProcessMessage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := newConversations(t, dir, conversation.ManagerOptions{Sessions: *quiet(4), Model: echo(), SystemPrompt: "be brief"})
	// The first message makes the conversation.
	if got := must(m.ProcessMessage(t.Context(), "one", ""))(t); got != "echo one" {
		t.Errorf("%q", got)
	}
	first := m.Current().ID()
	second := must(m.CreateConversation("Second"))(t)
	if m.Current().ID() != second {
		t.Error("a new conversation is not the current one")
	}
	must(m.ProcessMessage(t.Context(), "two", ""))(t)
	must(m.ProcessMessage(t.Context(), "three", first))(t)
	if m.Current().ID() != second {
		t.Error("a message to another conversation made that the current one")
	}
	for i := range 5 {
		must(m.ProcessMessage(t.Context(), fmt.Sprint(i), first))(t)
	}
	want := []string{"system: be brief", "user: one", "assistant: echo one", "user: three", "assistant: echo three"}
	for i := range 5 {
		want = append(want, fmt.Sprint("user: ", i), fmt.Sprint("assistant: echo ", i))
	}
	c := must(m.Sessions.Conversation(first))(t)
	if diff := cmp.Diff(want, texts(c.Messages)); diff != "" {
		t.Error(diff)
	}
	if len(c.Links) < 3 {
		t.Errorf("%d links", len(c.Links))
	}
	// Any of its sessions will do.
	must(m.ProcessMessage(t.Context(), "by the last", c.Links[len(c.Links)-1].ID))(t)
	do(t, m.LoadConversation(c.Links[1].ID))
	must(m.ProcessMessage(t.Context(), "by the second", ""))(t)
	if got := must(m.Sessions.Totals(first))(t).Messages; got != len(want)+4 {
		t.Errorf("%d messages, want %d", got, len(want)+4)
	}
	list := must(m.ListConversations(0, 0))(t)
	if len(list) != 2 || list[0].ID != first || list[1].Title != "Second" {
		t.Errorf("%+v", list)
	}
	do(t, m.SaveConversation())
	// Another program goes on with it, and knows the instructions.
	other := newConversations(t, dir, conversation.ManagerOptions{Sessions: *quiet(4), Model: echo(), SystemPrompt: "be brief"})
	must(other.ProcessMessage(t.Context(), "from outside", first))(t)
	n := 0
	for _, msg := range must(m.Sessions.Conversation(first))(t).Messages {
		if msg.Text() == "be brief" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the instructions are there %d times", n)
	}
	_, err := m.ProcessMessage(t.Context(), "x", "missing")
	wantError(t, err, session.ErrNotExist)
}

func TestConversationManagerParts(t *testing.T) {
	t.Parallel()
	m := newConversations(t, "", conversation.ManagerOptions{Sessions: *quiet(100)})
	_, err := m.ProcessMessage(t.Context(), "hello", "")
	wantError(t, err, session.ErrInvalid) // there is no model
	path := filepath.Join(t.TempDir(), "dot.png")
	do(t, os.WriteFile(path, pixel(0), 0o600))
	m.SetSystemPrompt("be brief")
	must(m.AddUserMessage("look", path))(t)
	_, err = m.GetResponse(t.Context(), "", nil)
	wantError(t, err, session.ErrInvalid)
	var calls []string
	do(t, m.SetModel(script{reply: reply("seen it"), calls: &calls}.model()))
	must(m.GetResponse(t.Context(), "", nil))(t)
	must(m.AddUserMessage("more"))(t)
	must(m.GetResponse(t.Context(), "", func(string) {}))(t)
	streamed := ""
	if _, err := m.Process(t.Context(), conversation.Turn{Message: "again", ImagePaths: []string{path}, Stream: func(s string) { streamed += s }}); err != nil || streamed != "seen it" {
		t.Errorf("%q, %v", streamed, err)
	}
	if len(calls) != 3 {
		t.Errorf("the model was asked %d times, want 3", len(calls))
	}
	want := []string{"user: hello", "system: be brief", "user: lookimage", "assistant: seen it", "user: more", "assistant: seen it", "user: againimage", "assistant: seen it"}
	if diff := cmp.Diff(want, texts(must(m.Current().Conversation())(t).Messages)); diff != "" {
		t.Error(diff)
	}
	if r := must(m.TokenUsage())(t); r.Tokens == 0 || len(r.Categories) != 4 {
		t.Errorf("%+v", r)
	}
	_, err = m.LoadContext()
	wantError(t, err, session.ErrInvalid)
	id := m.Current().ID()
	m.Reset()
	if m.Current().ID() != "" {
		t.Error("the old conversation is still the current one")
	}
	_, err = m.Process(t.Context(), conversation.Turn{Message: "x", ImagePaths: []string{"/missing.png"}})
	wantError(t, err, os.ErrNotExist)
	must(m.ProcessMessage(t.Context(), "new", ""))(t)
	if deleted := must(m.DeleteConversation(id))(t); !deleted {
		t.Error("not deleted")
	}
	if gone := must(m.DeleteConversation(id))(t); !gone {
		t.Error("deleted twice")
	}
	if must(m.DeleteConversation(m.Current().ID()))(t); m.Current().ID() != "" {
		t.Error("the deleted conversation is still the current one")
	}
	if list := must(m.ListConversations(0, 0))(t); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}

func TestDeleteAllLinks(t *testing.T) {
	t.Parallel()
	m := newConversations(t, t.TempDir(), conversation.ManagerOptions{Sessions: *quiet(2), Model: echo()})
	for i := range 6 {
		must(m.ProcessMessage(t.Context(), fmt.Sprint(i), ""))(t)
	}
	if list := must(m.Sessions.ListSessions(0, 0))(t); len(list) < 3 {
		t.Fatalf("%d sessions", len(list))
	}
	must(m.DeleteConversation(m.Current().ID()))(t)
	if list := must(m.Sessions.ListSessions(0, 0))(t); len(list) != 0 {
		t.Errorf("%d sessions are left", len(list))
	}
	_, err := m.DeleteConversation("../x")
	wantError(t, err, session.ErrInvalid)
}

func TestCapableModel(t *testing.T) {
	t.Parallel()
	m := newConversations(t, "", conversation.ManagerOptions{Sessions: *quiet(100), Model: large()})
	if o := m.Window.Options(); o.Budget.Tokens != 200_000 || o.Provider != "anthropic" {
		t.Errorf("%+v", o)
	}
}

func large() provider.Model {
	model := echo()
	model.About = provider.Info{Provider: "anthropic", Model: "claude", Window: 200_000}
	return model
}

// Conversations that nobody uses are forgotten, and found again.
func TestManyConversations(t *testing.T) {
	t.Parallel()
	o := quiet(100)
	o.Settings.MaxSessionsInMemory = 2
	m := newConversations(t, t.TempDir(), conversation.ManagerOptions{Sessions: *o, Model: echo()})
	var ids []string
	for i := range 6 {
		ids = append(ids, must(m.CreateConversation(""))(t))
		must(m.ProcessMessage(t.Context(), fmt.Sprint(i), ids[i]))(t)
	}
	for i, id := range ids {
		must(m.ProcessMessage(t.Context(), "again", id))(t)
		if got := texts(must(m.Sessions.Conversation(id))(t).Messages); len(got) != 4 || got[0] != fmt.Sprint("user: ", i) {
			t.Errorf("%v", got)
		}
	}
}

// counting is a model that notices when it is asked twice at once in one
// conversation.
type counting struct {
	t     *testing.T
	asked *sync.Map // *atomic.Int32 by conversation
}

func (c counting) answer(_ context.Context, r *provider.Request, _ func(string) error) (*session.MessageEntry, error) {
	n, _ := c.asked.LoadOrStore(r.Session, new(atomic.Int32))
	if n := n.(*atomic.Int32).Add(1); n != 1 {
		c.t.Errorf("%d turns at once", n)
	}
	for range 10 {
		runtime.Gosched()
	}
	n.(*atomic.Int32).Add(-1)
	return messageOf(reply("yes")), nil
}

// Turns of one conversation wait for each other, also when more conversations
// are in use than are remembered.
func TestTurnsWait(t *testing.T) {
	t.Parallel()
	o := quiet(100)
	o.Settings.MaxSessionsInMemory = 1
	m := newConversations(t, "", conversation.ManagerOptions{Sessions: *o, Model: provider.Func{Answer: counting{t, new(sync.Map)}.answer}})
	ids := make([]string, 4)
	for i := range ids {
		ids[i] = must(m.CreateConversation(""))(t)
	}
	const each = 15
	var wg sync.WaitGroup
	for w := range 4 * len(ids) {
		wg.Go(func() {
			for range each {
				if _, err := m.ProcessMessage(t.Context(), "well?", ids[w%len(ids)]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		for i, msg := range must(m.Sessions.Conversation(id))(t).Messages {
			if want := []string{"user", "assistant"}[i%2]; msg.Role != want {
				t.Fatalf("message %d is of the %s", i, msg.Role)
			}
		}
	}
}

func TestConversationManagerRefuses(t *testing.T) {
	t.Parallel()
	_, err := conversation.Open("", &conversation.ManagerOptions{Sessions: conversation.Options{Settings: conversation.Settings{MaxMessagesPerSession: -1}}})
	wantError(t, err, session.ErrInvalid)
	path := filepath.Join(t.TempDir(), "file")
	do(t, os.WriteFile(path, nil, 0o600))
	if _, err = conversation.Open("", &conversation.ManagerOptions{ContextDir: path}); err == nil {
		t.Error("a file is no directory")
	}
	m := must(conversation.Open("", nil))(t)
	do(t, m.Close())
	_, err = m.CreateConversation("")
	wantError(t, err, session.ErrClosed)
}
