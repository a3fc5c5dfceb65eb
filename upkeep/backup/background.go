package backup

import (
	"errors"
	"sync"
)

// background makes files durable while the next ones are written. Syncs in quick succession
// share the work of the disk, and in a home of small files nearly all the time goes
// into them.
type background struct {
	work  sync.WaitGroup
	slots chan struct{}
	mu    sync.Mutex
	err   error
}

const syncsAtOnce = 16

func newBackground() *background { return &background{slots: make(chan struct{}, syncsAtOnce)} }

// do calls work soon, and returns an error that an earlier one returned.
func (l *background) do(work func() error) error {
	l.slots <- struct{}{}
	l.work.Go(func() {
		defer func() { <-l.slots }()
		if err := work(); err != nil {
			l.mu.Lock()
			l.err = errors.Join(l.err, err)
			l.mu.Unlock()
		}
	})
	return l.failed()
}

func (l *background) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// wait returns when everything is done, with the errors of all of it.
func (l *background) wait() error {
	l.work.Wait()
	return l.failed()
}
