package provider_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
)

func offlineMessage(role, text string) session.Entry {
	return session.Message(role, session.Text(text))
}

func ask(prompt string) *provider.Request {
	return &provider.Request{Entries: []session.Entry{offlineMessage(session.RoleUser, prompt)}, Tools: []provider.Tool{{Name: "now"}, {Name: "read"}}}
}

func TestOfflineAnswers(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string]string{
		"hello there":            "You said: hello there",
		"say one\nsay two":       "one\ntwo",
		"repeat 3 la":            "la la la",
		"think hard":             "",
		"call none {}":           "I have no tool none.",
		"call now [1]":           "The input of now must be a JSON object.",
		"fail somehow":           "You said: fail somehow",
		"repeat many la":         "You said: repeat many la",
		"Call me when it is out": "You said: Call me when it is out",
	} {
		var heard strings.Builder
		r, err := provider.Respond(t.Context(), &offline.Model{}, ask(prompt), func(e provider.Event) {
			if e.Type == provider.EventText {
				heard.WriteString(e.Text)
			}
		})
		if err != nil {
			t.Fatalf("%q: %v", prompt, err)
		}
		if got := session.TextOf(r.Message.Content); got != want || heard.String() != want || r.Message.StopReason != provider.StopEndTurn {
			t.Errorf("%q: it says %q, streamed %q, want %q", prompt, got, heard.String(), want)
		}
	}
}

// TestOfflineToolLoop: calls, thoughts, and what it says of the results; twice the same.
func TestOfflineToolLoop(t *testing.T) {
	t.Parallel()
	request := ask("think first\ncall read {\"path\":\"a\"}\ncall now")
	first, err := provider.Respond(t.Context(), &offline.Model{}, request, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := provider.Respond(t.Context(), &offline.Model{}, request, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Message, again.Message, cmpopts.IgnoreUnexported(session.MessageEntry{}, session.ToolUseContent{})); diff != "" {
		t.Errorf("the same request has another answer:\n%s", diff)
	}
	calls := first.Calls()
	if len(calls) != 2 || calls[0].Name != "read" || calls[0].ID == calls[1].ID || first.Message.StopReason != provider.StopToolUse || first.Message.Content[0].Thinking == nil {
		t.Fatalf("the answer is %+v", first.Message)
	}
	request.Entries = append(request.Entries, session.Entry{Type: session.TypeMessage, Message: first.Message})
	for i, call := range calls {
		request.Entries = append(request.Entries, session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
			Role: session.RoleTool, Content: []session.Content{session.ToolResult(call.ID, "result", i == 1)},
		}})
	}
	last, err := provider.Respond(t.Context(), &offline.Model{}, request, nil)
	if err != nil || session.TextOf(last.Message.Content) != "read answered: result\nnow failed: result" {
		t.Errorf("it says %+v, %v", last, err)
	}
}

func TestOfflineFailures(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]error{
		"overflow": provider.ErrOverflow, "limited": provider.ErrLimited, "unavailable": provider.ErrUnavailable, "broken": provider.ErrBroken,
	} {
		r, err := provider.Respond(t.Context(), &offline.Model{}, ask("say one two three four\nfail "+what), nil)
		if !errors.Is(err, want) || (r != nil) != (what == "broken") {
			t.Errorf("fail %s: %+v, %v", what, r, err)
		}
		if r != nil && (!r.Partial || r.Message.StopReason != provider.StopFailed || len(session.TextOf(r.Message.Content)) == 0) {
			t.Errorf("fail %s leaves %+v", what, r)
		}
	}
	long := ask(strings.Repeat("word ", 1000))
	if _, err := provider.Respond(t.Context(), &offline.Model{Window: 1000}, long, nil); !errors.Is(err, provider.ErrOverflow) {
		t.Errorf("a long conversation: %v, want ErrOverflow", err)
	}
	n, err := (&offline.Model{}).CountTokens(t.Context(), long)
	if err != nil || n < 1000 || n > 2000 {
		t.Errorf("it counts %d tokens, %v", n, err)
	}
}

func TestOfflineCancel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := provider.Respond(ctx, &offline.Model{}, ask("repeat 100 la"), func(provider.Event) { cancel() })
	if !errors.Is(err, context.Canceled) || r == nil || r.Message.StopReason != provider.StopCancelled {
		t.Errorf("%+v, %v", r, err)
	}
}
