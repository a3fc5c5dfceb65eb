package file

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-dev/coppice/store"
)

// Limits implements store.Store.
func (s *Store) Limits() store.Limits {
	return store.Limits{Entry: s.opts.MaxLine, Log: s.opts.MaxLog, Logs: s.opts.MaxLogs}
}

// checkSize returns an error if the log may not have that many bytes.
func (l *Log) checkSize(size int64) error {
	err := store.MaxSession.Check("append", l.name, size, l.store.opts.MaxLog)
	if e, ok := errors.AsType[*store.Error](err); ok {
		e.Path = l.Path()
	}
	return err
}

// countLock is the name of the lock that is held from counting the logs until the new one
// exists. No log can have this name.
const countLock = ".count"

// reserve makes sure that the store may have one more log, and makes room if Options.MakeRoom
// is set. It returns the lock to hold while that log is created. Without a limit the lock is
// nil, and nothing is counted.
func (s *Store) reserve(ctx context.Context, name string) (*nameLock, error) {
	if s.opts.MaxLogs <= 0 {
		return nil, nil
	}
	if err := s.mustNotExist(name); err != nil {
		return nil, err // report this; it is no reason to make room
	}
	lock, err := s.lockName(ctx, countLock)
	if err != nil {
		return nil, err
	}
	if err := s.checkCount(ctx, name); err != nil {
		lock.release()
		return nil, err
	}
	return lock, nil
}

// checkCount counts the logs and makes room if there are too many. The caller holds countLock
// throughout: otherwise another process would take the room. Making room takes the locks of
// logs, and no holder of those waits for countLock.
func (s *Store) checkCount(ctx context.Context, name string) error {
	n, err := s.count(ctx)
	if err == nil && n >= s.opts.MaxLogs && s.opts.MakeRoom != nil {
		if err := s.opts.MakeRoom(ctx, s, n-s.opts.MaxLogs+1); err != nil {
			return fmt.Errorf("making room for another session: %w", err)
		}
		n, err = s.count(ctx)
	}
	if err != nil {
		return err
	}
	return store.MaxSessions.Check("create", name, int64(n)+1, int64(s.opts.MaxLogs))
}

func (s *Store) count(ctx context.Context) (n int, err error) {
	for _, err := range s.List(ctx) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}
