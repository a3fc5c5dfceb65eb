package provider_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// TestFunc: what a function tells and what it returns come as one answer, and what
// it told before it failed is kept.
func TestFunc(t *testing.T) {
	t.Parallel()
	errDown := errors.New("down")
	two := []session.Content{session.Text("one"), session.ToolUse("c", "now", nil)}
	for name, tt := range map[string]struct {
		tell    []string
		message *session.MessageEntry
		err     error
		events  int
		text    string
		stop    string
	}{
		"at once":         {nil, &session.MessageEntry{Content: two}, nil, 4, "one", provider.StopToolUse},
		"piece by piece":  {[]string{"o", "ne"}, nil, nil, 3, "one", provider.StopEndTurn},
		"both":            {[]string{"o", "ne"}, &session.MessageEntry{Content: two[:1], StopReason: "odd"}, nil, 3, "one", "odd"},
		"fails at once":   {nil, nil, errDown, 0, "", ""},
		"fails midway":    {[]string{"o"}, nil, errDown, 1, "o", provider.StopFailed},
		"fails with part": {nil, &session.MessageEntry{Content: two}, errDown, 0, "one", provider.StopFailed},
	} {
		t.Run(name, func(t *testing.T) {
			m := provider.Func{Answer: func(_ context.Context, _ *provider.Request, tell func(string) error) (*session.MessageEntry, error) {
				for _, text := range tt.tell {
					if err := tell(text); err != nil {
						return nil, err
					}
				}
				return tt.message, tt.err
			}}
			events := 0
			request := &provider.Request{Entries: []session.Entry{{Type: session.TypeMessage, Message: &session.MessageEntry{Role: session.RoleUser}}}}
			r, err := provider.Respond(t.Context(), m, request, func(provider.Event) { events++ })
			if !errors.Is(err, tt.err) || events != tt.events {
				t.Fatalf("%d events, error %v, want %d, %v", events, err, tt.events, tt.err)
			}
			if tt.text == "" {
				if r != nil {
					t.Errorf("it answers %+v", r)
				}
				return
			}
			if session.TextOf(r.Message.Content) != tt.text || r.Message.StopReason != tt.stop || r.Partial != (tt.err != nil) || r.Message.Role != session.RoleAssistant {
				t.Errorf("it answers %+v, stopped by %q", r, r.Message.StopReason)
			}
		})
	}
}

// answering is a function that returns a message.
func answering(m *session.MessageEntry) func(context.Context, *provider.Request, func(string) error) (*session.MessageEntry, error) {
	return func(context.Context, *provider.Request, func(string) error) (*session.MessageEntry, error) {
		return m, nil
	}
}

// telling is a function that tells pieces of text.
func telling(pieces ...string) func(context.Context, *provider.Request, func(string) error) (*session.MessageEntry, error) {
	return func(_ context.Context, _ *provider.Request, tell func(string) error) (*session.MessageEntry, error) {
		for _, text := range pieces {
			if err := tell(text); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
}

// An error that this package names is retried, whoever returns it.
func TestErrorsOfAFunctionAreRetried(t *testing.T) {
	t.Parallel()
	for cause, again := range map[error]bool{
		provider.ErrUnavailable: true, provider.ErrLimited: true, fmt.Errorf("line 3: %w", provider.ErrBroken): true,
		provider.ErrDenied: false, errors.New("a mistake"): false,
		&provider.Error{Kind: provider.ErrUnavailable, Provider: "x"}: true,
	} {
		model := provider.Func{Answer: func(context.Context, *provider.Request, func(string) error) (*session.MessageEntry, error) {
			return nil, cause
		}}
		_, err := provider.Respond(t.Context(), model, &provider.Request{Entries: []session.Entry{session.Message(session.RoleUser, session.Text("hi"))}}, nil)
		if _, ok := (provider.Retries{}).After(err, 1); ok != again || !errors.Is(err, cause) {
			t.Errorf("%v became %v, sent again: %v", cause, err, ok)
		}
	}
}

// counted is an argument of a call that counts how often it is written.
type counted struct{ written *int }

func (c counted) MarshalJSON() ([]byte, error) {
	*c.written++
	return []byte("1"), nil
}

// A step of an agent costs the same with a function as with a client: what did not change is not
// written again for the record.
func TestFunctionWritesOnlyTheEnd(t *testing.T) {
	t.Parallel()
	written, most := 0, 0
	entry := func(role session.MessageRole, n int, block session.Content) session.Entry {
		e := session.Message(role, block)
		e.ID = fmt.Sprint(role, n)
		return e
	}
	entries := []session.Entry{entry(session.RoleUser, 0, session.Text("go"))}
	memo := &provider.Memo{}
	var last *provider.Encoded
	const steps = 1000
	for step := range steps {
		id := fmt.Sprint("call", step)
		entries = append(entries, entry(session.RoleAssistant, step, session.ToolUse(id, "look", map[string]any{"n": counted{&written}})),
			entry(session.RoleTool, step, session.ToolResult(id, "found", false)))
		before := written
		var err error
		if last, err = (provider.Func{}).Encode(&provider.Request{Entries: entries, Memo: memo}); err != nil {
			t.Fatal(err)
		}
		most = max(most, written-before)
	}
	if written > 50*steps || most > 200 {
		t.Errorf("%d calls were written in %d steps, and up to %d in one", written, steps, most)
	}
	whole, err := provider.Func{}.Encode(&provider.Request{Entries: entries})
	if err != nil || whole.Sum() != last.Sum() || whole.Size() != last.Size() {
		t.Errorf("the last request is another one without a memo: %v", err)
	}
}
