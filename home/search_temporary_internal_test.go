package home

import (
	"sync"
	"testing"
)

// TestTemporaryIndexesBesideASweep: what one process is about to lock must not be lost to
// another one that deletes what was left behind.
func TestTemporaryIndexesBesideASweep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	sessions := t.TempDir()
	done := make(chan struct{})
	var sweeping sync.WaitGroup
	for range 4 {
		sweeping.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					sweepTemporary(sessions)
				}
			}
		})
	}
	for range 300 {
		made, err := newTemporary(sessions)
		if err != nil {
			t.Fatal(err)
		}
		if !made.isOf(sessions) {
			t.Fatal("it is gone")
		}
		if err := made.remove(); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	sweeping.Wait()
}
