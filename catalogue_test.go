package coppice_test

import (
	"sync"
	"testing"

	"github.com/coppice-dev/coppice"
)

// A redaction deletes the index. Other goroutines are in the middle of a search
// then, and must not notice.
func TestRedactionDoesNotDisturbASearch(t *testing.T) {
	h, dir := keptHome(t)
	keep(t, dir, "plain", 1, "nothing of note")
	var searching sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		searching.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				found, err := h.Search.Find(t.Context(), coppice.FindRequest{Query: "note", Session: "plain"})
				if err != nil || len(found.Hits) != 1 {
					t.Errorf("%+v, %v", found, err)
					return
				}
			}
		})
	}
	for _, letter := range []string{"A", "B", "C", "D", "E"} {
		keep(t, dir, "secret"+letter, 1, "use gh"+"p_"+"fOurThB1tsT3stF1x8Kq7wZ2yLp5Vc9Jh3X"+letter)
		cleaned, err := h.Upkeep.Redact(t.Context(), coppice.RedactRequest{All: true, Apply: true})
		if err != nil || len(cleaned.Secrets) != 1 || cleaned.Index == "" {
			t.Errorf("%+v, %v", cleaned, err)
		}
	}
	close(done)
	searching.Wait()
}
