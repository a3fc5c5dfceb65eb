package coppice_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/coppice-dev/coppice"
	"github.com/coppice-dev/coppice/session"
)

// A branch of another session comes as a branch of this one, which begins where the
// two part, and the model is sent what was picked of it.
func TestMergeBringsABranchOfAnotherSession(t *testing.T) {
	h := newHouse(t).Home
	ctx := t.Context()
	id, said := begin(t, h, "one", "two")
	fork := must[*coppice.ForkResult](t)(h.Sessions.Fork(ctx, coppice.ForkRequest{Session: id, At: said[0]})).Session
	third, fourth := say(t, h, fork, "three"), say(t, h, fork, "four")

	merged := must[*coppice.MergeResult](t)(h.Entries.Merge(ctx, coppice.MergeRequest{
		Session: id, Other: fork, Summary: "three is better", Picks: []string{coppice.Leaf},
	}))
	if merged.Other != fork || merged.Copied != 2 || merged.From != fourth || !slices.Equal(merged.Picks, []string{fourth}) {
		t.Errorf("%+v", merged)
	}
	sent := must[*coppice.ContextResult](t)(h.Entries.Context(ctx, coppice.ContextRequest{Session: id}))
	if want := []string{said[0], said[1], merged.Entry, fourth}; !slices.Equal(idsOf(sent.Entries), want) {
		t.Errorf("the context has %q, want %q", idsOf(sent.Entries), want)
	}
	parts := must[*coppice.CompareResult](t)(h.Entries.Compare(ctx, coppice.CompareRequest{Session: id, A: said[1], B: fourth}))
	if parts.Ancestor != said[0] || !slices.Equal(idsOf(parts.OnlyB), []string{third, fourth}) {
		t.Errorf("the branch is %+v", parts)
	}

	// What was brought before is not brought again.
	fifth := say(t, h, fork, "five")
	again := must[*coppice.MergeResult](t)(h.Entries.Merge(ctx, coppice.MergeRequest{Session: id, Other: fork, Summary: "and more"}))
	if again.Copied != 1 || again.From != fifth {
		t.Errorf("%+v", again)
	}
}

// Sessions that have nothing in common, but an id by chance, can be merged as well.
func TestMergeOfAStrangeSession(t *testing.T) {
	h := newHouse(t)
	ctx := t.Context()
	const taken = "m1"
	for name, text := range map[string]string{"here": "one", "there": "two"} {
		e := session.Entry{Type: session.TypeMessage, ID: taken, Timestamp: time.Now(), Message: userSays(text)}
		if err := h.say(session.Header{ID: name}).Graft(e); err != nil {
			t.Fatal(err)
		}
	}
	merged := must[*coppice.MergeResult](t)(h.Entries.Merge(ctx, coppice.MergeRequest{Session: "here", Other: "there", Picks: []string{coppice.Leaf}}))
	if merged.Copied != 1 || merged.From == taken {
		t.Errorf("%+v", merged)
	}
	sent := must[*coppice.ContextResult](t)(h.Entries.Context(ctx, coppice.ContextRequest{Session: "here"}))
	if want := []string{taken, merged.Entry, merged.From}; !slices.Equal(idsOf(sent.Entries), want) {
		t.Errorf("the context has %q, want %q", idsOf(sent.Entries), want)
	}
	if brought := sent.Entries[2].Message.Content[0].Text.Content; brought != "two" {
		t.Errorf("it brought %q", brought)
	}
}

func TestMergeRefusesWhatTheOtherBranchDoesNotHave(t *testing.T) {
	h := newHouse(t).Home
	id, _ := begin(t, h, "one")
	other, said := begin(t, h, "two")
	must[*coppice.BranchResult](t)(h.Entries.Branch(t.Context(), coppice.BranchRequest{Session: other, Entry: said[0]}))
	for _, r := range []coppice.MergeRequest{
		{Session: id, Other: other, From: "nope", Summary: "x"},
		{Session: id, Other: other, Picks: []string{"nope"}},
		{Session: id, Other: "nope", Summary: "x"},
		{Session: id, Other: id, From: coppice.Leaf, Summary: "x"},
	} {
		_, err := h.Entries.Merge(t.Context(), r)
		if !errors.Is(err, session.ErrNotExist) && !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	entries := must[*coppice.ContextResult](t)(h.Entries.Context(t.Context(), coppice.ContextRequest{Session: id}))
	if len(entries.Entries) != 1 {
		t.Errorf("%+v", entries)
	}
}
