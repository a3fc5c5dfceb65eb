package cli

import "testing"

// TestGarbageFor: a small program may have twice as much garbage as it uses, and a
// large one a quarter.
func TestGarbageFor(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{0: 200, 4 << 20: 200, 12 << 20: 200, 24 << 20: 100, 48 << 20: 50, 96 << 20: 25, 1 << 32: 25} {
		if got := garbageFor(live); got != want {
			t.Errorf("with %d MiB in use: %d percent, not %d", live>>20, got, want)
		}
	}
}
