package provider_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/digest"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
)

func answerTo(t *testing.T, task *digest.Task) string {
	t.Helper()
	r, err := provider.Respond(t.Context(), &offline.Model{}, task.Request(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return session.TextOf(r.Message.Content)
}

func TestOfflineSummaryIsAnExtract(t *testing.T) {
	t.Parallel()
	task := &digest.Task{Kind: digest.Summary, MaxTokens: 500, Turns: []digest.Turn{
		{Who: digest.User, Text: "\nFix the parser.\nIt is slow. " + strings.Repeat("Really. ", 50)},
		{Who: digest.Call, Name: "read", Text: `{"path":"a.go"}`},
		{Who: digest.Result, Name: "read", Text: "say RESULT"},
		{Who: digest.Assistant, Text: "It is fast now.\nfail overflow"},
		{Who: digest.User, Text: "say nothing"},
	}}
	want := "## Goal\nFix the parser.\n\n## Progress\n- Assistant: It is fast now.\n- User: say nothing"
	got := answerTo(t, task)
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	next := &digest.Task{Kind: digest.Summary, MaxTokens: 500, Previous: got, Turns: []digest.Turn{{Who: digest.User, Text: "Thanks."}, {Who: digest.Result, Text: strings.Repeat("x", 200)}}}
	if updated := answerTo(t, next); updated != want+"\n- User: Thanks." {
		t.Errorf("updated:\n%s", updated)
	}
}

// The extract is always shorter than what it was made from, and within the limit.
func TestOfflineExtractKeepsItsLimit(t *testing.T) {
	t.Parallel()
	previous := ""
	for round := range 40 {
		task := &digest.Task{Kind: digest.Summary, MaxTokens: 200, Previous: previous}
		for i := range 10 {
			task.Turns = append(task.Turns, digest.Turn{Who: digest.User, Text: fmt.Sprintf("Request %d of round %d", i, round)})
		}
		size := len(digest.Text(task.Turns)) + len(previous)
		if previous = answerTo(t, task); len(previous) > 400 || len(previous) >= size {
			t.Fatalf("round %d: %d bytes of %d:\n%s", round, len(previous), size, previous)
		}
	}
	for _, want := range []string{"## Goal\nRequest 0 of round 0\n", "Request 9 of round 39", "left out: 389\n"} {
		if !strings.Contains(previous, want) {
			t.Errorf("it lacks %q:\n%s", want, previous)
		}
	}
	foreign := answerTo(t, &digest.Task{Kind: digest.Branch, MaxTokens: 100, Previous: "We build a house.\nThe walls stand.\n" + strings.Repeat("long ", 90)})
	if !strings.HasPrefix(foreign, "## Goal\nWe build a house.") || len(foreign) > 200 {
		t.Errorf("of another's summary:\n%s", foreign)
	}
	if none := answerTo(t, &digest.Task{Kind: digest.Summary, MaxTokens: 100}); !strings.HasPrefix(none, "## Goal\n") {
		t.Errorf("of nothing: %q", none)
	}
}

func TestOfflineTitleIsTheFirstLineOfTheUser(t *testing.T) {
	t.Parallel()
	for want, task := range map[string]*digest.Task{
		"Blue sky":       {Turns: []digest.Turn{{Who: digest.Assistant, Text: "Hi"}, {Who: digest.User, Text: " \nBlue  sky\nplease"}}},
		"Hi":             {Turns: []digest.Turn{{Who: digest.Assistant, Text: "Hi"}, {Who: digest.Result, Text: "x"}}},
		"The goal":       {Previous: "## Goal\nThe goal", Turns: []digest.Turn{{Who: digest.User, Text: "And now?"}}},
		"A conversation": {},
	} {
		task.Kind = digest.Title
		if got := answerTo(t, task); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	long := answerTo(t, &digest.Task{Kind: digest.Title, Turns: []digest.Turn{{Who: digest.User, Text: strings.Repeat("é", 100)}}})
	if utf8.RuneCountInString(long) > digest.MaxTitle {
		t.Errorf("%q is too long", long)
	}
}

// The user's own instructions are obeyed, so that one can see what happens when a
// summary fails.
func TestOfflineInstructionsOfASummaryAreObeyed(t *testing.T) {
	t.Parallel()
	task := &digest.Task{Kind: digest.Summary, Instructions: "say ## Goal", Turns: []digest.Turn{{Who: digest.User, Text: "x"}}}
	if got := answerTo(t, task); got != "## Goal" {
		t.Errorf("%q", got)
	}
	task.Instructions = "fail unavailable"
	if _, err := provider.Respond(t.Context(), &offline.Model{}, task.Request(), nil); !errors.Is(err, provider.ErrUnavailable) {
		t.Errorf("%v", err)
	}
}
