package home

import (
	"context"
	"sync"
	"sync/atomic"
)

// besideStep is how many bytes an import must have read since the index was last brought
// up to date beside it. The more there are, the fewer pieces the index consists of.
const besideStep = 8 << 20

// beside updates the index during an import, so that little is left to do at the end. Nothing
// depends on it: whatever it leaves undone, the next user of the index does, and reports
// errors.
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

// note records how many bytes the import has read. It may be called concurrently.
func (b *beside) note(done int64) {
	b.done.Store(done) // it may go back a little, which does no harm
	if done-b.begun.Load() < besideStep {
		return
	}
	select {
	case b.wake <- struct{}{}:
	default: // it is already woken
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

// end is called when the import has ended. It waits for the running update, because the next
// caller would have to repeat it; if the context has ended, that is quick.
func (b *beside) end() {
	close(b.quit)
	b.ended.Wait()
}
