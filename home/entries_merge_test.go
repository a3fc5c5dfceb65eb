package home_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// A branch of another session comes as a branch of this one, which begins where the
// two part, and the model is sent what was picked of it.
func TestMergeBringsABranchOfAnotherSession(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	ctx := t.Context()
	id, said := begin(t, h, "one", "two")
	fork := must[*home.ForkResult](t)(h.Sessions.Fork(ctx, home.ForkRequest{Session: id, At: said[0]})).Session
	third, fourth := say(t, h, fork, "three"), say(t, h, fork, "four")

	merged := must[*home.MergeResult](t)(h.Entries.Merge(ctx, home.MergeRequest{
		Session: id, Other: fork, Summary: "three is better", Picks: []string{home.Leaf},
	}))
	if merged.Other != fork || merged.Copied != 2 || merged.From != fourth || !slices.Equal(merged.Picks, []string{fourth}) {
		t.Errorf("%+v", merged)
	}
	sent := must[*home.ContextResult](t)(h.Entries.Context(ctx, home.ContextRequest{Session: id}))
	if want := []string{said[0], said[1], merged.Entry, fourth}; !slices.Equal(idsOf(sent.Entries), want) {
		t.Errorf("the context has %q, want %q", idsOf(sent.Entries), want)
	}
	parts := must[*home.CompareResult](t)(h.Entries.Compare(ctx, home.CompareRequest{Session: id, A: said[1], B: fourth}))
	if parts.Ancestor != said[0] || !slices.Equal(idsOf(parts.OnlyB), []string{third, fourth}) {
		t.Errorf("the branch is %+v", parts)
	}

	// What was brought before is not brought again.
	fifth := say(t, h, fork, "five")
	again := must[*home.MergeResult](t)(h.Entries.Merge(ctx, home.MergeRequest{Session: id, Other: fork, Summary: "and more"}))
	if again.Copied != 1 || again.From != fifth {
		t.Errorf("%+v", again)
	}
}

// Sessions that have nothing in common, but an id by chance, can be merged as well.
func TestMergeOfAStrangeSession(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ctx := t.Context()
	const taken = "m1"
	for name, text := range map[string]string{"here": "one", "there": "two"} {
		e := session.Entry{Type: session.TypeMessage, ID: taken, Timestamp: time.Now(), Message: userSays(text)}
		if err := h.say(session.Header{ID: name}).Graft(e); err != nil {
			t.Fatal(err)
		}
	}
	merged := must[*home.MergeResult](t)(h.Entries.Merge(ctx, home.MergeRequest{Session: "here", Other: "there", Picks: []string{home.Leaf}}))
	if merged.Copied != 1 || merged.From == taken {
		t.Errorf("%+v", merged)
	}
	sent := must[*home.ContextResult](t)(h.Entries.Context(ctx, home.ContextRequest{Session: "here"}))
	if want := []string{taken, merged.Entry, merged.From}; !slices.Equal(idsOf(sent.Entries), want) {
		t.Errorf("the context has %q, want %q", idsOf(sent.Entries), want)
	}
	if brought := sent.Entries[2].Message.Content[0].Text.Content; brought != "two" {
		t.Errorf("it brought %q", brought)
	}
	again := must[*home.MergeResult](t)(h.Entries.Merge(ctx, home.MergeRequest{Session: "here", Other: "there", Summary: "s"}))
	if again.Copied != 0 || again.From != merged.From {
		t.Errorf("again: %+v", again)
	}
}

func TestMergeRefusesWhatTheOtherBranchDoesNotHave(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, _ := begin(t, h, "one")
	other, said := begin(t, h, "two")
	must[*home.BranchResult](t)(h.Entries.Branch(t.Context(), home.BranchRequest{Session: other, Entry: said[0]}))
	for _, r := range []home.MergeRequest{
		{Session: id, Other: other, From: "nope", Summary: "x"},
		{Session: id, Other: other, Picks: []string{"nope"}},
		{Session: id, Other: "nope", Summary: "x"},
		{Session: id, Other: id, From: home.Leaf, Summary: "x"},
	} {
		_, err := h.Entries.Merge(t.Context(), r)
		if !errors.Is(err, session.ErrNotExist) && !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	entries := must[*home.ContextResult](t)(h.Entries.Context(t.Context(), home.ContextRequest{Session: id}))
	if len(entries.Entries) != 1 {
		t.Errorf("%+v", entries)
	}
}

// What an earlier session of the conversation has is not brought to its last one.
func TestMergeIntoAContinuedConversation(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ctx := t.Context()
	first := h.say(session.Header{ID: "first"}, "one", "two", "three")
	fork := must[*home.ForkResult](t)(h.Sessions.Fork(ctx, home.ForkRequest{Session: "first"})).Session
	say(t, h.Home, fork, "four")
	next, err := first.Continue()
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
	say(t, h.Home, "first", "five")
	merged := must[*home.MergeResult](t)(h.Entries.Merge(ctx, home.MergeRequest{Session: "first", Other: fork, Summary: "s"}))
	if merged.Copied != 1 {
		t.Errorf("%+v", merged)
	}
}

// What cannot be merged is not copied either.
func TestRefusedMergeWritesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	ctx := t.Context()
	id, _ := begin(t, h, "one")
	other, _ := begin(t, h, "two")
	call := &session.MessageEntry{Role: session.RoleAssistant, Content: []session.Content{session.ToolUse("c", "ls", nil)}}
	made := must[*home.AppendResult](t)(h.Entries.Append(ctx, home.AppendRequest{Session: other, Message: call})).Entry
	answer := &session.MessageEntry{Role: session.RoleTool, Content: []session.Content{session.ToolResult("c", "a.txt", false)}}
	must[*home.AppendResult](t)(h.Entries.Append(ctx, home.AppendRequest{Session: other, Message: answer}))
	before := must[*home.SessionInfo](t)(h.Sessions.Get(ctx, home.SessionRequest{Session: id}))
	_, err := h.Entries.Merge(ctx, home.MergeRequest{Session: id, Other: other, Picks: []string{made}})
	if !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a call without its result: %v", err)
	}
	if after := must[*home.SessionInfo](t)(h.Sessions.Get(ctx, home.SessionRequest{Session: id})); after.Size != before.Size {
		t.Errorf("the session grew from %d to %d bytes", before.Size, after.Size)
	}
}

// What a reply cost is counted where it was given, however old the session is that it
// was brought to.
func TestMergeLeavesTheCostWhereItWas(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	ctx := t.Context()
	id, _ := begin(t, h, "one")
	other, _ := begin(t, h, "two")
	reply := &session.MessageEntry{
		Role: session.RoleAssistant, Content: []session.Content{session.Text("three")},
		ResponseID: "r1", Model: "m", Usage: &session.Usage{Input: 10, Output: 5},
	}
	must[*home.AppendResult](t)(h.Entries.Append(ctx, home.AppendRequest{Session: other, Message: reply}))
	must[*home.MergeResult](t)(h.Entries.Merge(ctx, home.MergeRequest{Session: id, Other: other, Summary: "s"}))
	for name, want := range map[string]int64{id: 0, other: 1} {
		if got := must[*home.StatsResult](t)(h.Search.Stats(ctx, home.StatsRequest{Session: name})).Total.Responses; got != want {
			t.Errorf("%s has %d responses, want %d", name, got, want)
		}
	}
}

// Several programs may bring the same branch at once.
func TestMergesAtTheSameTime(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	id, said := begin(t, h, "one", "two")
	fork := must[*home.ForkResult](t)(h.Sessions.Fork(t.Context(), home.ForkRequest{Session: id, At: said[0]})).Session
	say(t, h, fork, "three")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := h.Entries.Merge(t.Context(), home.MergeRequest{Session: id, Other: fork, Summary: "s"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	info := must[*home.SessionInfo](t)(h.Sessions.Get(t.Context(), home.SessionRequest{Session: id}))
	if info.Messages != 3 {
		t.Errorf("%d messages", info.Messages)
	}
}
