package home

import (
	"context"
	"sync"
	"sync/atomic"
)

// besideStep is how many bytes an import must have read since the index was last brought
// up to date beside it. The more there are, the fewer pieces the index consists of.
const besideStep = 8 << 20

// beside brings the index up to date while an import goes on, so that little is left to do
// when it ends. Nothing depends on it: whatever it did not do, or could not, the next one
// who asks the index does, and reports why not.
type beside struct {
	h     *Home
	done  atomic.Int64 // what the import has read
	begun atomic.Int64 // what it had read when the index was last brought up to date
	wake  chan struct{}
	quit  chan struct{}
	ended sync.WaitGroup
}

func (h *Home) indexBeside(ctx context.Context) *beside {
	b := &beside{h: h, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	b.ended.Go(func() {
		for {
			select {
			case <-b.quit:
				return
			case <-b.wake:
			}
			if b.catchUp(ctx) != nil {
				return
			}
			b.note(b.done.Load())
		}
	})
	return b
}

// note takes in how many bytes the import has read. It may be called concurrently.
func (b *beside) note(done int64) {
	b.done.Store(done) // that it may go back a little does no harm
	if done-b.begun.Load() < besideStep {
		return
	}
	select {
	case b.wake <- struct{}{}:
	default: // it is awake
	}
}

func (b *beside) catchUp(ctx context.Context) error {
	b.begun.Store(b.done.Load())
	if !b.h.isUsed(ctx) {
		return nil // nothing was written yet, and there is no place for an index
	}
	ix, err := b.h.openedIndex(ctx)
	if err == nil {
		_, err = ix.KeepUp(ctx)
	}
	return err
}

// end is called when the import has ended. It waits for the running work, because the next
// caller would have to do that again; if the context is done, that is not long.
func (b *beside) end() {
	close(b.quit)
	b.ended.Wait()
}
