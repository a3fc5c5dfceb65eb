package cli

import "testing"

// TestGarbageFor: a small program may have twice as much garbage as it uses, a larger one half
// as much, and a very large one a quarter. One that is open all day has 16 MiB, or a tenth.
func TestGarbageFor(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{0: 200, 4 << 20: 200, 24 << 20: 200, 48 << 20: 100, 96 << 20: 50, 256 << 20: 50, 512 << 20: 25, 1 << 32: 25} {
		if got := garbageFor(live, false); got != want {
			t.Errorf("with %d MiB in use: %d percent, not %d", live>>20, got, want)
		}
	}
	for live, want := range map[uint64]int{0: 200, 8 << 20: 200, 32 << 20: 50, 100 << 20: 16, 1 << 30: 10} {
		if got := garbageFor(live, true); got != want {
			t.Errorf("open all day, with %d MiB in use: %d percent, not %d", live>>20, got, want)
		}
	}
}
