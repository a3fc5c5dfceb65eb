package home_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// A request that makes no sense is refused with the JSON name of the field that is wrong, so
// that every face can point at it.
func TestErrorsNameTheField(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, _ := begin(t, h)
	minus := -5
	bad := "caf\xe9"
	for _, test := range []struct {
		field, text string
		ask         func(ctx context.Context) error
	}{
		{"keep_tokens", "keep_tokens is -5; it must not be negative", func(ctx context.Context) error {
			_, err := h.Entries.Compact(ctx, home.CompactRequest{Session: id, Summary: "s", KeepTokens: &minus})
			return err
		}},
		{"summary", "a compaction needs a summary or auto; dry_run shows what it must cover", func(ctx context.Context) error {
			_, err := h.Entries.Compact(ctx, home.CompactRequest{Session: id})
			return err
		}},
		{"window.reserve", "window.reserve is -5; it must not be negative", func(ctx context.Context) error {
			_, err := h.Entries.Context(ctx, home.ContextRequest{Session: id, Window: &home.WindowRequest{Tokens: 1, Reserve: -5}})
			return err
		}},
		{"window.counter", `window.counter is "abacus"; it must be`, func(ctx context.Context) error {
			_, err := h.Entries.Context(ctx, home.ContextRequest{Session: id, Window: &home.WindowRequest{Tokens: 1, Counter: "abacus"}})
			return err
		}},
		{"message.category", `message.category is "PIE"; it must be SYSTEM`, func(ctx context.Context) error {
			m := &session.MessageEntry{Role: session.RoleUser, Category: "PIE", Content: []session.Content{session.Text("x")}}
			_, err := h.Entries.Append(ctx, home.AppendRequest{Session: id, Message: m})
			return err
		}},
		{"entry.message.category", `entry.message.category is "PIE"`, func(ctx context.Context) error {
			entry := []byte(`{"type":"message","message":{"role":"user","category":"PIE","content":[{"type":"text","text":{"content":"x"}}]}}`)
			_, err := h.Entries.Append(ctx, home.AppendRequest{Session: id, Entry: entry})
			return err
		}},
		{"auto.thinking", `auto.thinking is "deep"; it must be one of off, minimal`, func(ctx context.Context) error {
			auto := &home.AutoRequest{ModelChoice: home.ModelChoice{Thinking: "deep"}}
			_, err := h.Sessions.Rename(ctx, home.RenameRequest{Session: id, Auto: auto})
			return err
		}},
		{"thinking", `thinking is "deep"; it must be one of off, minimal`, func(ctx context.Context) error {
			_, err := h.Chat(ctx, home.TurnOptions{ChatRequest: home.ChatRequest{Thinking: "deep"}})
			return err
		}},
		{"deny", `deny: the rule "bsh": there is no such tool`, func(ctx context.Context) error {
			_, err := h.Chat(ctx, home.TurnOptions{ChatRequest: home.ChatRequest{Allow: []string{"read"}, Deny: []string{"bsh"}}})
			return err
		}},
		{"last", "last is -5; it must not be negative", func(ctx context.Context) error {
			_, err := h.Entries.Follow(ctx, home.FollowRequest{Session: id, Last: -5}, nil)
			return err
		}},
		{"page", "page is -5; the first page is 1", func(ctx context.Context) error {
			_, err := h.Sessions.List(ctx, home.ListRequest{Page: -5})
			return err
		}},
		{"known", "value and known exclude each other", func(ctx context.Context) error {
			_, err := h.Upkeep.Redact(ctx, home.RedactRequest{Value: "otters sleep", Known: true})
			return err
		}},
		{"known", "keep and known exclude each other", func(ctx context.Context) error {
			_, err := h.Upkeep.Redact(ctx, home.RedactRequest{All: true, Known: true, Keep: []string{"k3v9x2ab"}})
			return err
		}},
		{"older_than", "older_than is 0s, which would remove every session", func(ctx context.Context) error {
			_, err := h.Upkeep.Retain(ctx, home.RetainRequest{})
			return err
		}},
		{"title", "title is not UTF-8: byte 4 is 0xe9", func(ctx context.Context) error {
			_, err := h.Sessions.Create(ctx, home.CreateRequest{Title: bad})
			return err
		}},
		{"add", "the tag \"a\\tb\" has control characters", func(ctx context.Context) error {
			_, err := h.Sessions.Tag(ctx, home.TagRequest{Session: id, Add: []string{"a\tb"}})
			return err
		}},
		{"text", "the message is empty", func(ctx context.Context) error {
			_, err := h.Turns.Prompt(ctx, home.PromptRequest{TurnOptions: home.TurnOptions{ChatRequest: home.ChatRequest{Session: id}}, Text: " \n"}, nil)
			return err
		}},
		{"text", "the message is empty", func(ctx context.Context) error {
			_, err := h.Turns.Steer(ctx, home.SteerRequest{Session: id, Content: []session.Content{session.Text(" ")}})
			return err
		}},
		{"session", "the session's name is empty", func(ctx context.Context) error {
			_, err := h.Sessions.Get(ctx, home.SessionRequest{Session: ""})
			return err
		}},
	} {
		err := test.ask(t.Context())
		got := home.Describe(err)
		if got.Kind != home.KindInvalid || got.Field != test.field || !strings.HasPrefix(got.Message, test.text) {
			t.Errorf("%s: %+v", test.field, got)
		}
	}
}

// A face calls fields by its own words. What a user typed is left alone, even if it looks
// like the name of a field.
func TestErrorsInTheWordsOfAFace(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	_, err := h.Transfer.Export(t.Context(), home.ExportRequest{Format: "{format}%s"}, nil)
	wrong, ok := errors.AsType[*home.FieldError](err)
	if !ok {
		t.Fatal(err)
	}
	got := wrong.Words(func(field string) string { return "the 100% " + field })
	if !strings.HasPrefix(got, `the 100% format is "{format}%s"; it must be one of md, html, json, jsonl`) {
		t.Error(got)
	}
}

// An error that came from another machine names fields in the words of a face here, too.
func TestFieldErrorsTravel(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	flag := func(field string) string { return "--" + strings.ReplaceAll(field, "_", "-") }
	for want, ask := range map[string]func() error{
		"--first-kept and --keep-tokens": func() error {
			_, err := h.Entries.Compact(t.Context(), home.CompactRequest{FirstKept: "x", KeepTokens: new(1), Summary: "s"})
			return err
		},
		`--format is "{format}%s 100% format_x"; it must be`: func() error {
			_, err := h.Transfer.Export(t.Context(), home.ExportRequest{Format: "{format}%s 100% format_x"}, nil)
			return err
		},
	} {
		here := ask()
		text, err := json.Marshal(home.Describe(here))
		if err != nil {
			t.Fatal(err)
		}
		var sent home.ErrorInfo
		if err := json.Unmarshal(text, &sent); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "{first_kept}") {
			t.Errorf("a template is sent: %s", text)
		}
		got, was := home.DescribeIn(&sent, flag), home.DescribeIn(here, flag)
		if got.Message != was.Message || got.Field != was.Field || !strings.Contains(got.Message, want) {
			t.Errorf("%+v there is %+v here; want %s", was, got, want)
		}
	}
}

// Of several changes of one tag the last counts, for whoever writes them down.
func TestTheLastChangeOfATagCounts(t *testing.T) {
	t.Parallel()
	var r home.TagRequest
	for _, change := range []string{"+a", "-a", "-b", "+b", "+ b "} {
		if err := r.Change(change); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Join(r.Add, " ") != "b" || strings.Join(r.Remove, " ") != "a" {
		t.Errorf("%+v", r)
	}
	for change, field := range map[string]string{"+": "add", "- ": "remove", "a": "add", "": "add"} {
		if got := home.Describe(r.Change(change)); got.Kind != home.KindInvalid || got.Field != field {
			t.Errorf("%q: %+v", change, got)
		}
	}
}
