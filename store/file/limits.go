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

// checkSize refuses to let the log have so many bytes.
func (l *Log) checkSize(size int64) error {
	err := store.MaxSession.Check("append", l.name, size, l.store.opts.MaxLog)
	if e, ok := errors.AsType[*store.Error](err); ok {
		e.Path = l.Path()
	}
	return err
}

// countLock is the name of the lock that is held from counting the logs until
// there is one more. No log can have it.
const countLock = ".count"

// reserve makes sure that there may be one log more, and makes room if it was
// told how. It returns the lock that has to be held while that log is created;
// nil if there is no limit, and creating costs nothing more then.
func (s *Store) reserve(ctx context.Context, name string) (*nameLock, error) {
	if s.opts.MaxLogs <= 0 {
		return nil, nil
	}
	if err := s.mustNotExist(name); err != nil {
		return nil, err // that is the better answer, and no reason to make room
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

// checkCount counts the logs and makes room if there are too many. The count's lock is
// held all the while: the room that was made would go to somebody else. To make room
// takes the locks of logs, and no holder of one of those waits for this one.
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
