package home_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

func withTag(t *testing.T, h *home.Home, tag string) (ids []string) {
	t.Helper()
	list := must[*home.ListResult](t)(h.Sessions.List(t.Context(), home.ListRequest{Tags: []string{tag}}))
	for i := range list.Sessions {
		ids = append(ids, list.Sessions[i].ID)
	}
	return ids
}

// A rating is a tag: the last one counts, and lists know it.
func TestRatingsReplaceEachOther(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	ctx := t.Context()
	id, said := begin(t, h, "one", "two")
	must[*home.TagResult](t)(h.Sessions.Tag(ctx, home.TagRequest{Session: id, Add: []string{"work"}}))
	for _, rating := range []string{home.Bad, home.Good} {
		rated := must[*home.RateResult](t)(h.Sessions.Rate(ctx, home.RateRequest{Session: id, Rating: rating, Note: "because", Entry: said[0]}))
		if rated.Session != id || rated.Rating != rating || rated.Entry == "" {
			t.Errorf("%+v", rated)
		}
	}
	if bad, good := withTag(t, h, "rated/bad"), withTag(t, h, "rated/good"); len(bad) != 0 || !slices.Equal(good, []string{id}) {
		t.Errorf("bad %v, good %v", bad, good)
	}
	c := must[*home.Conversation](t)(h.Conversation(ctx, home.OpenRequest{Session: id}))
	defer c.Close()
	var notes, about int
	for e, err := range c.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Custom != nil && e.Custom.Data["note"] == "because" {
			notes++
		}
		if e.Custom != nil && e.Custom.Data["about"] == said[0] {
			about++
		}
	}
	if notes != 2 || about != 2 {
		t.Errorf("%d notes, %d about an entry", notes, about)
	}
	must[*home.RateResult](t)(h.Sessions.Rate(ctx, home.RateRequest{Session: id}))
	if now := must[*home.TagResult](t)(h.Sessions.Tag(ctx, home.TagRequest{Session: id})); !slices.Equal(now.Tags, []string{"work"}) {
		t.Errorf("%+v", now)
	}
	if again := must[*home.RateResult](t)(h.Sessions.Rate(ctx, home.RateRequest{Session: id})); again.Entry != "" {
		t.Errorf("it wrote %+v", again)
	}
	for _, r := range []home.RateRequest{{Session: id, Rating: "great"}, {Session: id, Rating: home.Good, Entry: "nope"}, {Session: "nope", Rating: home.Good}} {
		if _, err := h.Sessions.Rate(ctx, r); !errors.Is(err, session.ErrInvalid) && !errors.Is(err, session.ErrNotExist) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestTagsAreListedWithThoseBelow(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	for _, tag := range []string{"forge/parser", "forge", "forge-2", "forge/parser"} {
		id, _ := begin(t, h, "one")
		must[*home.TagResult](t)(h.Sessions.Tag(t.Context(), home.TagRequest{Session: id, Add: []string{tag}}))
	}
	got := must[*home.TagsResult](t)(h.Sessions.Tags(t.Context())).Tags
	if want := []home.TagCount{{Tag: "forge", Sessions: 1, WithBelow: 3}, {Tag: "forge/parser", Sessions: 2, WithBelow: 2}, {Tag: "forge-2", Sessions: 1, WithBelow: 1}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Tags that others have are preferred, and sessions that have tags are left alone.
func TestAutoTagAddsWhatFits(t *testing.T) {
	t.Parallel()
	h := newHouse(t).Home
	ctx := t.Context()
	tagged, _ := begin(t, h, "The gardener prunes the roses in spring, and the gardener waters them.")
	must[*home.TagResult](t)(h.Sessions.Tag(ctx, home.TagRequest{Session: tagged, Add: []string{"home/roses"}}))
	other, _ := begin(t, h, "Which roses grow in shade? Roses need sun, these roses do not.")
	for range 3 { // what is in every session sets none apart
		begin(t, h, "Something else entirely about compilers and parsers.")
	}
	r := home.AutoTagRequest{Sessions: []string{other}, DryRun: true}
	for _, dry := range []bool{true, false} {
		r.DryRun = dry
		got := must[*home.AutoTagResult](t)(h.Sessions.AutoTag(ctx, r)).Tagged
		if len(got) != 1 || got[0].Session != other || !slices.Equal(got[0].Added, []string{"home/roses"}) {
			t.Fatalf("%+v", got)
		}
		if has := slices.Contains(withTag(t, h, "home"), other); has == dry {
			t.Errorf("dry run %v, tagged %v", dry, has)
		}
	}
	all := must[*home.AutoTagResult](t)(h.Sessions.AutoTag(ctx, home.AutoTagRequest{All: true})).Tagged
	for _, s := range all {
		if s.Session == tagged || s.Session == other {
			t.Errorf("it had tags: %+v", s)
		}
	}
}
