package powerloss

import (
	"testing"
)

// TestCheck shows, without a power cut, that the checker passes what the worker
// leaves, and notices when more was acknowledged than is there.
func TestCheck(t *testing.T) {
	for _, mode := range []string{"session", "nosync", "nodirsync", "renamenosync"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dir, steps := t.TempDir(), 0
			err := Work(dir, mode, func(_ string, step int) {
				steps++
				if step%10 != 9 {
					return
				}
				// The work must not meet what a check appends.
				if _, _, err := expected(step); err != nil {
					t.Errorf("step %d: %v", step, err)
				}
			})
			if err != nil || steps != Steps {
				t.Fatalf("%d steps: %v", steps, err)
			}
			if err := Check(dir, Steps-1); err != nil {
				t.Errorf("all steps were done: %v", err)
			}
		})
	}
	if err := Check(t.TempDir(), -1); err != nil {
		t.Errorf("nothing acknowledged, nothing there: %v", err)
	}
	if err := Check(t.TempDir(), 3); err == nil {
		t.Error("acknowledged sessions are missing, and the checker says nothing")
	}
	if err := Work(t.TempDir(), "other", nil); err == nil {
		t.Error("an unknown mode was accepted")
	}
}
