package home_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// Without a limit everything is on the first page. A second one must not be
// everything once more: whoever turns pages would never come to the end.
func TestListWithoutALimitHasOnePage(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	keep(t, dir, "one", 1, "hello")
	if list, err := h.Sessions.List(t.Context(), home.ListRequest{Limit: -1, Page: 1}); err != nil || len(list.Sessions) != 1 {
		t.Errorf("page 1: %+v, %v", list, err)
	}
	if list, err := h.Sessions.List(t.Context(), home.ListRequest{Limit: -1, Page: 2}); home.KindOf(err) != home.KindInvalid {
		t.Errorf("page 2: %+v, %v", list, err)
	}
}

// The filters of a list are written as in a search.
func TestListIsNarrowedAsASearchIs(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	r := home.ListRequest{Tags: []string{"a"}}
	for _, filter := range []string{"agent:codex", "project:my project", "tag:b", "file:main.go", "cwd:/src", "since:2d12h", "until:2026-03"} {
		if err := r.Narrow(filter, now); err != nil {
			t.Errorf("%s: %v", filter, err)
		}
	}
	if r.Agent != "codex" || r.Project != "my project" || !slices.Equal(r.Tags, []string{"a", "b"}) || r.File != "main.go" || r.CWD != "/src" ||
		!r.Since.Equal(now.Add(-60*time.Hour)) || !r.Until.Equal(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v", r)
	}
	for _, bad := range []string{"", "codex", "agent:", "kind:output", "since:soon"} {
		if err := r.Narrow(bad, now); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestAgesAreReadInOneWay(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"30d": 720 * time.Hour, "2w": 336 * time.Hour, "12h": 12 * time.Hour, "1d12h": 36 * time.Hour, "1w1d": 192 * time.Hour, "90min": 90 * time.Minute, "1h30min": 90 * time.Minute, "1w2h3min4.5s": 170*time.Hour + 3*time.Minute + 4500*time.Millisecond, "10s": 10 * time.Second, "0d": 0,
	} {
		var asked home.RetainRequest
		if err := json.Unmarshal([]byte(`{"older_than":"`+text+`"}`), &asked); err != nil || time.Duration(asked.OlderThan) != want {
			t.Errorf("a request has %q as %v: %v", text, asked.OlderThan, err)
		}
		var back home.RetainRequest
		if sent, err := json.Marshal(asked); err != nil || json.Unmarshal(sent, &back) != nil || back != asked {
			t.Errorf("%q was sent as %s, %v", text, sent, err)
		}
		if got, err := home.ParseAge(text); got != want || err != nil {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "d", "7", "-1d", "+1d", "1d-2h", "7x", "1000000d", "99999999999999999999d", "9999999h", "6m", "90m", "1h30m", "1d5m", "6mo", "6months", "5ms", "minmin"} {
		if got, err := home.ParseAge(bad); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s is %v, %v", bad, got, err)
		}
	}
}

// A client can leave it to the floor to read filters.
func TestListTakesFiltersAsText(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	keep(t, dir, "one", 1, "hello")
	for filter, want := range map[string]int{"": 1, "agent:nobody": 0, `since:9999d until:"2001-01"`: 0, "since:2001-01": 1} {
		list, err := h.Sessions.List(t.Context(), home.ListRequest{Filter: filter})
		if err != nil || len(list.Sessions) != want {
			t.Errorf("%s: %+v, %v", filter, list, err)
		}
	}
	if _, err := h.Sessions.List(t.Context(), home.ListRequest{Filter: "agent:codex hello"}); home.KindOf(err) != home.KindInvalid {
		t.Errorf("words: %v", err)
	}
}

// What is still being typed finds what it may become, and is not taken for an error before it is
// complete.
func TestFindWhileTyping(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	keep(t, dir, "one", 1, "the tokenizer smells")
	for query, want := range map[string]int{"token": 1, "tokenizer smells ": 1, `"tokenizer smells`: 1, "smells agent:": 1, "tokenx": 0} {
		found, err := h.Search.Find(t.Context(), home.FindRequest{Query: query, Typing: true})
		if err != nil || len(found.Hits) != want {
			t.Errorf("%s: %+v, %v", query, found, err)
		}
	}
	found, err := h.Search.Find(t.Context(), home.FindRequest{Query: "tokenizre", Typing: true})
	if err != nil || !slices.Equal(found.DidYouMean, []string{"tokenizer"}) {
		t.Errorf("a misspelt word: %+v, %v", found, err)
	}
}
