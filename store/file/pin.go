package file

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"syscall"

	"github.com/coppice-dev/coppice/store"
)

// Current implements store.Log.
func (l *Log) Current() error {
	if err := l.follow(); err != nil {
		return l.failRead("read", 0, err)
	}
	return nil
}

// Pin implements store.Log. It holds the log's lock, so no process rewrites, removes or
// archives the log. In a store that is read-only there is no lock to take, and Pin only
// checks that the log is current.
func (l *Log) Pin(ctx context.Context) (release func(), err error) {
	if _, err := l.store.exists(l.name); err != nil {
		return nil, l.explain("copy", 0, err) // without creating a lock file
	}
	lock, err := l.store.lockName(ctx, l.name)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		release = func() {}
	case err != nil:
		return nil, l.explain("copy", 0, err)
	default:
		release = lock.release
	}
	if err := l.mustHaveName(); err != nil {
		release()
		return nil, l.explain("copy", 0, err)
	}
	return release, nil
}

// mustHaveName makes sure that the file with the log's name has every line of the open one.
func (l *Log) mustHaveName() error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return store.ErrClosed
	}
	if _, current, err := l.store.isCurrent(l.name, l.source); current || err != nil {
		return err
	}
	now, err := l.store.openSource(l.name)
	if err != nil {
		return err
	}
	defer now.Close()
	return l.mustContinue(now)
}

// CreateCopy implements store.Store.
func (s *Store) CreateCopy(ctx context.Context, name string, lines iter.Seq2[[]byte, error], of store.Log) (store.Log, error) {
	release := func() {}
	defer func() { release() }()
	return s.createWhen(ctx, name, lines, func() (err error) {
		unpin, err := of.Pin(ctx)
		if err == nil {
			release = unpin
		}
		return err
	})
}
