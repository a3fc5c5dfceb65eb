package provider_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// TestReadError: whatever shape a provider gives its errors, the kind is known, and
// what it says is in the message, in one line that is not too long.
func TestReadError(t *testing.T) {
	t.Parallel()
	for body, tt := range map[string]struct {
		status    int
		want      error
		says      string
		temporary bool
	}{
		`{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`:              {429, provider.ErrLimited, "slow down", true},
		`{"error":{"message":"pay first","code":"insufficient_quota"}}`:               {429, provider.ErrLimited, "pay first", false},
		`[{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}]`:            {0, provider.ErrUnavailable, "busy", true},
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`: {0, provider.ErrUnavailable, "Overloaded", true},
		`{"type":"error","code":"context_length_exceeded","message":"too much"}`:      {0, provider.ErrOverflow, "too much", false},
		`{"error":{"type":"permission_error","message":"not you"}}`:                   {0, provider.ErrDenied, "not you", false},
		`{"error":{"type":"invalid_request_error","message":"odd"}}`:                  {0, session.ErrInvalid, "odd", false},
		`{"error":{"type":"nobody_knows"}}`:                                           {0, provider.ErrUnavailable, "nobody_knows", true},
		`{"error":"model 'x' not found"}`:                                             {404, session.ErrInvalid, "not found", false},
		"<html>\n  <b>Bad   Gateway</b>":                                              {502, provider.ErrUnavailable, "<html> <b>Bad Gateway</b>", true},
		`{"error":{"message":"` + strings.Repeat("long ", 1000) + `"}}`:               {500, provider.ErrUnavailable, "…", true},
		``: {403, provider.ErrDenied, "status 403", false},
	} {
		err := provider.ReadError("p", tt.status, []byte(body))
		if !errors.Is(err, tt.want) || err.Temporary() != tt.temporary || !strings.Contains(err.Error(), tt.says) || len(err.Error()) > 700 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.80s: %v, temporary %v, want %v with %q", body, err, err.Temporary(), tt.want, tt.says)
		}
	}
	cause := errors.New("no route")
	err := error(&provider.Error{Kind: provider.ErrUnavailable, Provider: "p", Err: cause, RetryAfter: time.Second})
	if !errors.Is(err, cause) || !errors.Is(err, provider.ErrUnavailable) || !strings.Contains(err.Error(), "no route") {
		t.Errorf("%v does not have its cause", err)
	}
}

// TestFuncEncode: a request to a function is written down, always in the same bytes.
func TestFuncEncode(t *testing.T) {
	t.Parallel()
	r := &provider.Request{
		Entries: []session.Entry{
			{Type: session.TypeMessage, ID: "a", Message: &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("hi")}}},
			{Type: session.TypeMessage, ID: "b", Message: &session.MessageEntry{Role: session.RoleAssistant, Content: []session.Content{session.Text("yes")}}},
		},
		Tools: []provider.Tool{{Name: "now", Description: "the time"}, {Name: "read", Schema: []byte(`{ "type" : "object", "properties" : {"path":{}} }`)}},
	}
	f := provider.Func{About: provider.Info{Model: "m"}}
	first, err := f.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := f.Encode(r)
	if err != nil || string(first.Body) != string(again.Body) || f.Info().Model != "m" {
		t.Errorf("%s, then %s, %v", first.Body, again.Body, err)
	}
	for _, part := range []string{`"hi"`, `"yes"`, `"the time"`, `{"type":"object","properties":{"path":{}}}`} {
		if strings.Count(string(first.Body), part) != 1 {
			t.Errorf("%s is not once in %s", part, first.Body)
		}
	}
	if _, err := f.Encode(&provider.Request{}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a request without messages: %v", err)
	}
	if _, err := provider.Respond(t.Context(), f, &provider.Request{Entries: r.Entries, MaxTokens: -1}, nil); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("an answer of less than nothing: %v", err)
	}
}

// TestFuncLeft: a caller may stop at any event.
func TestFuncLeft(t *testing.T) {
	t.Parallel()
	thought := session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "hm"}}
	m := provider.Func{Answer: answering(&session.MessageEntry{Content: []session.Content{
		thought, session.Text("one"), session.ToolUse("c", "now", nil), session.Image("image/png", "AA=="),
	}})}
	told := provider.Func{Answer: telling("one", "two")}
	r := &provider.Request{Entries: []session.Entry{{Type: session.TypeMessage, Message: &session.MessageEntry{Role: session.RoleUser}}}}
	for name, model := range map[string]provider.Func{"at once": m, "piece by piece": told} {
		for most := 1; ; most++ {
			seen, ended := 0, false
			for e, err := range model.Stream(t.Context(), r) {
				if err != nil {
					t.Fatal(err)
				}
				if ended = e.Type == provider.EventStop; ended {
					break
				}
				if seen++; seen == most {
					break
				}
			}
			if ended {
				break
			}
			if most > 10 {
				t.Fatalf("%s: it never ends", name)
			}
		}
	}
}
