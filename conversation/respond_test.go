package conversation_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// script is a model that says what it was told to, word by word.
type script struct {
	reply   conversation.Reply
	err     error
	after   int    // how many words come before err; all if it is nil
	partial bool   // whether what has arrived is also in the reply
	silent  bool   // it tells nothing before it is done
	empty   bool   // it tells everything, and returns nothing
	onWord  func() // called before each word
	calls   *[]string
}

func (s script) model() provider.Model { return provider.Func{Answer: s.answer} }

func (s script) answer(ctx context.Context, _ *provider.Request, tell func(string) error) (*session.MessageEntry, error) {
	if s.calls != nil {
		*s.calls = append(*s.calls, "asked")
	}
	for i, word := range strings.SplitAfter(blocksText(s.reply.Content), " ") {
		if s.silent || s.err != nil && i == s.after {
			break
		}
		if s.onWord != nil {
			s.onWord()
		}
		if err := tell(word); err != nil {
			return nil, err
		}
	}
	switch {
	case s.err == nil && s.empty:
		return messageOf(conversation.Reply{StopReason: "end_turn"}), nil
	case s.err == nil:
		return messageOf(s.reply), ctx.Err()
	case s.partial:
		half := s.reply
		half.Content = append([]session.Content{session.Text("half")}, session.ToolUse("a", "ls", nil))
		return messageOf(half), s.err
	}
	return nil, s.err
}

// messageOf returns a reply as a model's message.
func messageOf(r conversation.Reply) *session.MessageEntry {
	return &session.MessageEntry{
		Content: r.Content, Model: r.Model, Provider: r.Provider, StopReason: r.StopReason, ResponseID: r.ResponseID, Usage: r.Usage,
	}
}

func reply(text string) conversation.Reply {
	return conversation.Reply{
		Content: []session.Content{session.Text(text)}, Model: "m", Provider: "p", StopReason: "end_turn", ResponseID: "r1", Usage: &session.Usage{Input: 5, Output: 3},
	}
}

// Streaming and plain calls leave the same in the conversation.
func TestRespond(t *testing.T) {
	t.Parallel()
	var first *conversation.Message
	for name, ask := range map[string]struct {
		model  provider.Model
		stream bool
	}{
		"plain": {script{reply: reply("one two")}.model(), false}, "streaming": {script{reply: reply("one two")}.model(), true},
		"a model that cannot stream": {script{reply: reply("one two"), silent: true}.model(), true},
	} {
		var got strings.Builder
		var emit func(string)
		if ask.stream {
			emit = func(text string) { got.WriteString(text) }
		}
		c := newSystem(t, newManager(t, "", 1))
		must(c.AddUserMessage("hello"))(t)
		m := must(c.Respond(t.Context(), ask.model, emit))(t)
		if ask.stream && got.String() != "one two" {
			t.Errorf("%s: %q was streamed", name, got.String())
		}
		if m.Model != "m" || m.StopReason != "end_turn" || m.Usage == nil || m.ResponseID != "r1" || m.Tokens != nil {
			t.Errorf("%s: %+v", name, m)
		}
		if first == nil {
			first = &m
		}
		if diff := cmp.Diff(*first, m, cmpopts.IgnoreFields(conversation.Message{}, "ID", "Timestamp")); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		if diff := cmp.Diff([]string{"user: hello", "assistant: one two"}, texts(must(c.Conversation())(t).Messages)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// What was streamed is not lost if the reply lacks it.
func TestStreamedTextCounts(t *testing.T) {
	t.Parallel()
	c := newSystem(t, newManager(t, "", 100))
	must(c.AddUserMessage("hello"))(t)
	m := must(c.Respond(t.Context(), script{reply: reply("one two"), empty: true}.model(), func(string) {}))(t)
	if m.Text() != "one two" || m.StopReason != "end_turn" || m.Metadata[conversation.MetaIncomplete] != nil {
		t.Errorf("%+v", m)
	}
}

var errDown = errors.New("the line is down")

// A reply that does not come to its end is kept as far as it came, and marked.
func TestIncompleteReply(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		model func(cancel func()) script
		want  string // what is stored of the reply
		stop  string
		err   error
	}{
		{"cancelled", func(cancel func()) script {
			n := 0
			return script{reply: reply("one two three"), onWord: func() {
				if n++; n == 3 {
					cancel()
				}
			}}
		}, "one two ", conversation.StopCancelled, context.Canceled},
		{"failed", func(func()) script { return script{reply: reply("one two three"), err: errDown, after: 1} }, "one ", conversation.StopFailed, errDown},
		{"failed with part of a reply", func(func()) script {
			return script{reply: reply("one two three"), err: errDown, after: 1, partial: true}
		}, "half", conversation.StopFailed, errDown},
		{"failed at once", func(func()) script { return script{reply: reply("one"), err: errDown} }, "", "", errDown},
		{"timed out", func(func()) script {
			return script{reply: reply("one two"), err: context.DeadlineExceeded, after: 1}
		}, "one ", conversation.StopCancelled, context.DeadlineExceeded},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := newSystem(t, newManager(t, "", 100))
			must(c.AddUserMessage("hello"))(t)
			m, err := c.Respond(ctx, tt.model(cancel).model(), func(string) {})
			wantError(t, err, tt.err)
			want := []string{"user: hello"}
			if tt.want != "" {
				want = append(want, "assistant: "+tt.want)
				if m.StopReason != tt.stop || m.Metadata[conversation.MetaIncomplete] == nil || m.Text() != tt.want {
					t.Errorf("%+v", m)
				}
			}
			if diff := cmp.Diff(want, texts(must(c.Conversation())(t).Messages)); diff != "" {
				t.Error(diff)
			}
			// The next request is a good one.
			must(c.AddUserMessage("go on"))(t)
			must(c.Respond(t.Context(), script{reply: reply("done")}.model(), nil))(t)
		})
	}
}

func TestRespondWithoutAReply(t *testing.T) {
	t.Parallel()
	c := newSystem(t, newManager(t, "", 100))
	must(c.AddUserMessage("hello"))(t)
	_, err := c.Respond(t.Context(), script{}.model(), nil)
	wantError(t, err, conversation.ErrEmptyReply)
	_, err = c.Respond(t.Context(), script{err: errDown, silent: true}.model(), func(string) { t.Error("something was streamed") })
	wantError(t, err, errDown)
	if n := len(must(c.Conversation())(t).Messages); n != 1 {
		t.Errorf("%d messages", n)
	}
}
