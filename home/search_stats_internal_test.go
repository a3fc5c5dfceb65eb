package home

import (
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// A session that is removed between counting and naming is no reason to fail.
func TestStatsPassOverASessionThatVanished(t *testing.T) {
	t.Parallel()
	settings, err := LoadSettings(func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	h, err := Open(t.Context(), filepath.Join(t.TempDir(), "s"), &Options{Settings: settings, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	s, err := session.Create(t.Context(), h.Store(), session.Header{ID: "there"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("hello")}); err != nil {
		t.Fatal(err)
	}
	ix, err := h.index(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := counting{ix: ix, result: &StatsResult{Sessions: []Usage{{Key: "gone", Output: 9}, {Key: "there"}}}}
	if err := c.nameSessions(t.Context()); err != nil || len(c.result.Titles) != 1 || c.result.Titles["there"] != "hello" || len(c.result.Sessions) != 2 {
		t.Errorf("%+v, %v", c.result, err)
	}
}

// What is known of a cost is a lower bound, unless it is nothing.
func TestCostInWords(t *testing.T) {
	t.Parallel()
	for want, u := range map[string]Usage{
		"$1.20":          {Responses: 2, CostMicroUSD: 1_200_000},
		"at least $1.20": {Responses: 2, CostMicroUSD: 1_200_000, Unpriced: 1},
		"cost unknown":   {Responses: 2, Unpriced: 1},
		"$0":             {Responses: 2},
	} {
		if got := CostOf(&u); got != want {
			t.Errorf("%+v: %q, want %q", u, got, want)
		}
	}
}

// A share is rounded, and 100 only if it is all.
func TestTheShareOfTheCache(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		cached, input int64
		want          int
	}{{0, 10, 0}, {749, 1000, 75}, {744, 1000, 74}, {985, 1000, 99}, {999_999, 1_000_000, 99}, {5, 5, 100}, {500, 1600, 31}} {
		if got := cachedPercent(test.cached, test.input); got == nil || *got != test.want {
			t.Errorf("%d of %d: %v, want %d", test.cached, test.input, got, test.want)
		}
	}
	if got := cachedPercent(0, 0); got != nil {
		t.Errorf("of nothing: %d", *got)
	}
}
