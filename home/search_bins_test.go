package home_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
)

// spend appends a response of some tokens at a time.
func (h *house) spend(s *session.Session, at time.Time, model string, tokens int) {
	h.Helper()
	e := session.Message(session.RoleAssistant, session.Text("done"))
	e.Timestamp, e.Message.Model, e.Message.Usage = at, model, &session.Usage{Output: tokens}
	if _, err := s.AppendEntry(e); err != nil {
		h.Fatal(err)
	}
}

func (h *house) stats(r home.StatsRequest) *home.StatsResult {
	h.Helper()
	r.TimeZone = "UTC"
	s, err := h.Search.Stats(h.Context(), r)
	if err != nil {
		h.Fatal(err)
	}
	return s
}

// A bin is as long as it must be for all to fit, weeks begin on Monday, and days without usage
// have their place.
func TestBins(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.say(session.Header{CWD: "/home/ada/forge"})
	day := func(text string) time.Time {
		at, err := time.Parse(time.DateOnly, text)
		if err != nil {
			t.Fatal(err)
		}
		return at.Add(12 * time.Hour)
	}
	for i, model := range []string{"a", "b", "c", "d", "e", "f", "g", "a"} {
		h.spend(s, day("2026-03-02").AddDate(0, 0, i), model, 100-10*i)
	}
	h.spend(s, day("2026-05-20"), "a", 1)
	for _, test := range []struct {
		ask         home.StatsRequest
		bin         string
		first, last string
		n           int
	}{
		{home.StatsRequest{Columns: 80}, "day", "2026-03-02", "2026-05-20", 80},
		{home.StatsRequest{Columns: 79}, "week", "2026-03-02", "2026-05-18", 12},
		{home.StatsRequest{}, "week", "2026-03-02", "2026-05-18", 12},
		{home.StatsRequest{Columns: 11}, "month", "2026-03-01", "2026-05-01", 3},
		{home.StatsRequest{Columns: 1}, "month", "2026-03-01", "2026-05-01", 3},
		{home.StatsRequest{Columns: 80, Bin: "month"}, "month", "2026-03-01", "2026-05-01", 3},
		{home.StatsRequest{Since: day("2026-02-20"), Until: day("2026-03-05")}, "day", "2026-02-20", "2026-03-05", 14},
	} {
		r := h.stats(test.ask)
		if n := len(r.Bins); r.Bin != test.bin || n != test.n || r.Bins[0].Key != test.first || r.Bins[n-1].Key != test.last {
			t.Errorf("%+v: %d bins, %s: %s to %s", test.ask, n, r.Bin, r.Bins[0].Key, r.Bins[n-1].Key)
		}
	}
	r := h.stats(home.StatsRequest{Bin: "week"})
	var names []string
	for _, part := range r.Parts {
		names = append(names, fmt.Sprintf("%s %d", part.Key, part.Tokens()))
	}
	if diff := cmp.Diff([]string{"a 131", "b 90", "c 80", "d 70", "e 60", " 90"}, names); diff != "" || r.Rest != 2 {
		t.Errorf("parts, of which the last is %d others (-want +got):\n%s", r.Rest, diff)
	}
	if diff := cmp.Diff([]int64{100, 90, 80, 70, 60, 90}, r.Bins[0].Tokens); diff != "" {
		t.Errorf("the first week (-want +got):\n%s", diff)
	}
	if by := h.stats(home.StatsRequest{By: "project"}); len(by.Parts) != 1 || by.Parts[0].Key != "forge" {
		t.Errorf("by project: %+v", by.Parts)
	}
	if by := h.stats(home.StatsRequest{By: "agent"}); len(by.Parts) != 1 || by.Parts[0].Key != session.OwnAgent {
		t.Errorf("by agent: %+v", by.Parts)
	}
	ages := time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)
	if r := h.stats(home.StatsRequest{Since: ages, Columns: 1 << 40}); r.Bin != "month" {
		t.Errorf("since the year 1 there are %d bins, each a %s", len(r.Bins), r.Bin)
	}
	for _, wrong := range []home.StatsRequest{{By: "colour"}, {Bin: "hour"}, {Columns: -1}, {Bin: "day", Since: ages}, {Bin: "week", Since: ages}} {
		if _, err := h.Search.Stats(t.Context(), wrong); err == nil {
			t.Errorf("%+v is no error", wrong)
		}
	}
}

// Whatever was used, on whatever day: the bins and their parts add up to the total.
func TestBinsAddUp(t *testing.T) {
	t.Parallel()
	soak.Check(t, func(r *rapid.T) {
		h := newHouse(t)
		s := h.say(session.Header{})
		began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for range rapid.IntRange(0, 30).Draw(r, "responses") {
			h.spend(s, began.Add(time.Duration(rapid.IntRange(0, 400*24).Draw(r, "hours"))*time.Hour), rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e", "f", "g", "h"}).Draw(r, "model"), rapid.IntRange(1, 99).Draw(r, "tokens"))
		}
		ask := home.StatsRequest{Columns: rapid.IntRange(0, 400).Draw(r, "columns"), Bin: rapid.SampledFrom([]string{"", "day", "week", "month"}).Draw(r, "bin"), TimeZone: "UTC"}
		got := h.stats(ask)
		var bins, parts, inParts int64
		for i := range got.Bins {
			b := &got.Bins[i]
			bins += b.Usage.Tokens()
			for _, n := range b.Tokens {
				inParts += n
			}
			if i > 0 && got.Bins[i-1].Until != b.Key {
				r.Fatalf("%s does not follow %s", b.Key, got.Bins[i-1].Until)
			}
		}
		for _, p := range got.Parts {
			parts += p.Tokens()
		}
		if total := got.Total.Tokens(); bins != total || parts != total || inParts != total {
			r.Fatalf("%d in bins, %d in parts, %d in parts of bins, of %d", bins, parts, inParts, total)
		}
	})
}

// The busier half of a day's neighbours is darker, and a home in which all days are alike is pale.
func TestActiveDays(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.say(session.Header{})
	for i := range 8 {
		for range 1 + i {
			h.spend(s, time.Date(2026, 3, 1+i, 12, 0, 0, 0, time.UTC), "a", 1)
		}
	}
	var levels []int
	for _, day := range h.stats(home.StatsRequest{Until: time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)}).Active {
		levels = append(levels, day.Level)
	}
	if diff := cmp.Diff([]int{1, 1, 2, 2, 3, 3, 4, 4}, levels); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
}
