package app

import (
	"slices"
	"testing"
)

// Rows that arrive do not affect pages that were asked for later.
func TestAPageIsAskedForOnce(t *testing.T) {
	t.Parallel()
	p := newPages[int](10)
	p.total = 40
	want := func(first, last int, pages ...int) {
		t.Helper()
		if got := p.want(first, last); !slices.Equal(got, pages) {
			t.Errorf("of %d to %d it wants %d, not %d", first, last, got, pages)
		}
	}
	want(0, 9, 0, 1)
	p.put(0, make([]int, 10))
	want(0, 9)
	want(0, 10, 2)
	p.put(10, nil) // there were none, so it can be asked for again
	want(0, 9, 1)
}
