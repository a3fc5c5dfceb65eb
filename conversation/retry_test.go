package conversation_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// A turn that failed is retried by the conversation's id, from another program too,
// and the user's message is there once.
func TestRetry(t *testing.T) {
	t.Parallel()
	broken := errors.New("the line is dead")
	for name, failing := range map[string]script{
		"nothing arrived": {reply: reply("never"), err: broken},
		"half arrived":    {reply: reply("one two three"), err: broken, after: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			first := newConversations(t, dir, conversation.ManagerOptions{Sessions: *quiet(100), Model: failing.model(), SystemPrompt: "be brief"})
			must(first.CreateConversation("A title"))(t)
			id := first.Current().ID()
			_, err := first.Process(t.Context(), conversation.Turn{Message: "hello", Stream: func(string) {}})
			wantError(t, err, broken)
			_, err = first.Retry(t.Context(), id, nil)
			wantError(t, err, broken)

			var seen []string
			model := (&witness{seen: &seen}).model()
			second := newConversations(t, dir, conversation.ManagerOptions{Sessions: *quiet(100), Model: model, SystemPrompt: "be brief"})
			if got := must(second.Retry(t.Context(), id, nil))(t); got != "at last" {
				t.Errorf("%q", got)
			}
			if diff := cmp.Diff([]string{"system: be brief", "user: hello"}, seen); diff != "" {
				t.Errorf("the model was sent: %s", diff)
			}
			c := must(first.Sessions.Conversation(id))(t)
			if diff := cmp.Diff([]string{"system: be brief", "user: hello", "assistant: at last"}, texts(c.Messages)); diff != "" || c.Metadata["title"] != "A title" {
				t.Errorf("%v: %s", c.Metadata, diff)
			}
			_, err = second.Retry(t.Context(), id, nil)
			wantError(t, err, conversation.ErrAnswered)
			wantError(t, err, session.ErrInvalid)
		})
	}
}

// witness notes what it is sent.
type witness struct{ seen *[]string }

func (w *witness) model() provider.Model {
	return provider.Func{Answer: func(_ context.Context, r *provider.Request, _ func(string) error) (*session.MessageEntry, error) {
		*w.seen = entryTexts(r.Entries)
		return messageOf(reply("at last")), nil
	}}
}

func TestNothingToRetry(t *testing.T) {
	t.Parallel()
	m := newConversations(t, "", conversation.ManagerOptions{Sessions: *quiet(100), Model: echo(), SystemPrompt: "be brief"})
	_, err := m.Retry(t.Context(), "", nil)
	wantError(t, err, conversation.ErrAnswered)
	must(m.Current().AddMessage("system", "a document", 0, nil))(t)
	_, err = m.Retry(t.Context(), "", nil)
	wantError(t, err, conversation.ErrAnswered)
	must(m.Current().Add(call("a")))(t)
	_, err = m.Retry(t.Context(), "", nil)
	wantError(t, err, conversation.ErrAnswered)
	_, err = m.Retry(t.Context(), "missing", nil)
	wantError(t, err, session.ErrNotExist)
}

// tongue is a model with a name and a window.
type tongue struct {
	name   string
	window int
}

func (m tongue) model() provider.Model {
	return provider.Func{
		About: provider.Info{Provider: "p", Model: m.name, Window: m.window},
		Answer: func(context.Context, *provider.Request, func(string) error) (*session.MessageEntry, error) {
			return &session.MessageEntry{Content: []session.Content{session.Text(m.name)}, Provider: "p", Model: m.name}, nil
		},
	}
}

// Each conversation has its own model, window and limits, in every program.
func TestEachConversationHasItsOwn(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	open := func(o conversation.ManagerOptions) *conversation.Manager {
		o.Sessions = *quiet(100)
		m := must(conversation.NewManager(st, &o))(t)
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	m := open(conversation.ManagerOptions{Model: tongue{"usual", 50_000}.model()})
	usual, special := must(m.CreateConversation(""))(t), must(m.CreateConversation(""))(t)
	do(t, m.UseModel(special, tongue{"special", 5000}.model()))
	do(t, m.Sessions.Configure(usual, conversation.Config{MaxMessages: 2}))
	other := open(conversation.ManagerOptions{Model: tongue{"usual", 50_000}.model(), Models: func(maker, name string) provider.Model {
		if maker == "p" && name == "special" {
			return tongue{"special", 5000}.model()
		}
		return nil
	}})
	for i, m := range []*conversation.Manager{m, other} {
		for id, want := range map[string]struct {
			name   string
			window int
		}{usual: {"usual", 50_000}, special: {"special", 5000}} {
			if got := must(m.ProcessMessage(t.Context(), "who are you?", id))(t); got != want.name {
				t.Errorf("manager %d: %q answers, want %q", i, got, want.name)
			}
			if got := must(m.GetResponse(t.Context(), id, nil))(t).Text(); got != want.name {
				t.Errorf("manager %d: %q answers, want %q", i, got, want.name)
			}
			chat := conversation.NewChat(m.Sessions, m.Window)
			do(t, chat.Load(id))
			if v := must(chat.View())(t); v.Report.Room != want.window {
				t.Errorf("manager %d: %s has a window of %d, want %d", i, want.name, v.Report.Room, want.window)
			}
		}
	}
	if n := len(must(m.Sessions.Conversation(usual))(t).Links); n < 2 {
		t.Errorf("%d sessions of two messages", n)
	}
	if n := len(must(m.Sessions.Conversation(special))(t).Links); n != 1 {
		t.Errorf("%d sessions of a hundred messages", n)
	}
	if c := must(m.Sessions.Context(special))(t); c.Provider != "p" || c.Model != "special" {
		t.Errorf("the context is for %s/%s", c.Provider, c.Model)
	}
	// Who has no such model says so.
	stranger := open(conversation.ManagerOptions{Model: echo()})
	_, err := stranger.ProcessMessage(t.Context(), "hello", special)
	wantError(t, err, session.ErrInvalid)
	// A setting goes along into the next session.
	links := must(m.Sessions.Conversation(usual))(t).Links
	if c := must(m.Sessions.Config(links[len(links)-1].ID))(t); c.MaxMessages != 2 {
		t.Errorf("%+v", c)
	}
	if !slices.ContainsFunc(must(m.ListConversations(0, 0))(t), func(i conversation.Info) bool { return i.ID == usual }) {
		t.Error("it is not listed")
	}
}
