package file

import (
	"runtime"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// syncSlots bounds the syncs in flight in this process. A goroutine blocked in
// fdatasync keeps a scheduler slot until the runtime notices; sixty-four of them at
// once make all goroutines wait for tens of milliseconds, while a few keep the disk
// just as busy. Of 4, 8, 16, 32 and 64 on two busy cores, 16 did the most.
var syncSlots = make(chan struct{}, max(8, 8*runtime.NumCPU()))

// syncer makes a log's writes durable. Writers that come while a sync is under
// way wait for the next one, which serves all of them: group commit.
type syncer struct {
	log *Log

	mu      sync.Mutex
	done    sync.Cond // of mu: a sync has ended
	running bool
	written int64     // how many bytes were written through this handle
	synced  int64     // how many of them are durable; not a position, because a log can become shorter
	end     store.Pos // where the last write ended, for messages
	err     error     // set once and never cleared: see poison
	timer   *time.Timer
	named   source // the file whose name Flush knows to be durable
	closed  bool   // no sync begins any more: the file is about to be closed
}

func (s *syncer) init(l *Log) {
	s.log = l
	s.done.L = &s.mu
}

// wrote records that n more bytes were written, up to end.
func (s *syncer) wrote(n int, end store.Pos) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written += int64(n)
	s.end = end
}

// failed returns the error that poisoned the log, or nil.
func (s *syncer) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// poison makes every further append fail. A failed sync is never tried again:
// the kernel would answer the second one with success although the data is gone.
func (s *syncer) poison(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setError(err)
}

func (s *syncer) setError(err error) {
	if s.err == nil {
		s.err = err
	}
}

var committed = func() error { return nil }

// commit returns the function that waits until everything written so far is
// durable.
func (s *syncer) commit() func() error {
	switch level := s.log.store.opts.Sync; {
	case level == Never:
		return committed
	case level > 0:
		s.later(time.Duration(level))
		return committed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	written := s.written
	return func() error { return s.wait(written) }
}

// later schedules a sync within d.
func (s *syncer) later(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		s.timer = time.AfterFunc(d, func() {
			s.mu.Lock()
			s.timer = nil
			written := s.written
			s.mu.Unlock()
			_ = s.wait(written) // the next append returns the error from s.err
		})
	}
}

// wait returns when that many bytes are durable, or cannot be made durable.
func (s *syncer) wait(written int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.synced < written {
		switch {
		case s.err != nil:
			return s.log.fail("sync", s.end, store.ErrUnknown, s.err)
		case s.closed:
			return s.log.fail("sync", s.end, store.ErrClosed, nil)
		case s.running:
			s.done.Wait()
		default:
			s.run()
		}
	}
	return nil
}

// run does one sync for all writes before its beginning. It is called with mu held and
// releases it during the sync.
func (s *syncer) run() {
	s.running = true
	s.mu.Unlock()
	syncSlots <- struct{}{}
	s.mu.Lock()
	written := s.written
	s.mu.Unlock()
	err := s.log.syncFile()
	<-syncSlots
	if err != nil {
		s.log.noteUnsynced(err)
	} else {
		err = s.log.stillNamed()
	}
	s.mu.Lock()
	s.running = false
	if err != nil {
		s.setError(err)
	} else {
		s.synced = written
	}
	s.done.Broadcast()
}

// close makes the rest durable, stops the timer, and waits for a sync that an earlier
// flush gave up on.
func (s *syncer) close() error {
	defer s.stop()
	s.mu.Lock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	written := s.written
	err := s.err
	s.mu.Unlock()
	level := s.log.store.opts.Sync
	if level == Never || level == Always && err != nil {
		return nil // the writers concerned already got the error
	}
	return s.wait(written)
}

func (s *syncer) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for s.running {
		s.done.Wait()
	}
}

// syncFile syncs the file that the log is in now.
func (l *Log) syncFile() error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	file, ok := l.source.(*plain)
	if !ok {
		return nil // an archive is synced when it is made
	}
	return file.Sync()
}

// noteUnsynced leaves a note for other writers that a sync failed.
func (l *Log) noteUnsynced(cause error) {
	note := nameLock{store: l.store, name: l.name}
	err := note.open()
	if err == nil {
		err = note.markUnsynced()
		note.close()
	}
	l.store.opts.Logger.Error("sync failed; the log accepts no appends until it is opened again",
		"log", l.name, "cause", cause, "note", err)
}
