package cli

import "testing"

// TestGarbageFor: a small program may have twice as much garbage as it uses, a larger one half
// as much, and a very large one a quarter.
func TestGarbageFor(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{0: 200, 4 << 20: 200, 24 << 20: 200, 48 << 20: 100, 96 << 20: 50, 256 << 20: 50, 512 << 20: 25, 1 << 32: 25} {
		if got := garbageFor(live); got != want {
			t.Errorf("with %d MiB in use: %d percent, not %d", live>>20, got, want)
		}
	}
}
