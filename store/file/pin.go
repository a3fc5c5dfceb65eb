package file

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"syscall"

	"github.com/coppice-dev/coppice/store"
)

var (
	_ store.Pinner    = (*Log)(nil)
	_ store.Publisher = (*Store)(nil)
	_ store.Remover   = (*Store)(nil)
)

// Current implements store.Pinner.
func (l *Log) Current() error {
	if err := l.follow(); err != nil {
		return l.failRead("read", 0, err)
	}
	return nil
}

// Pin implements store.Pinner. It holds the log's lock, which rewriting, removing and
// archiving take too. In a read-only store there is no lock, and Pin only checks.
func (l *Log) Pin(ctx context.Context) (release func(), err error) {
	if _, err := l.store.exists(l.name); err != nil {
		return nil, l.explain("copy", 0, err) // and make no lock file for it
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

// mustHaveName makes sure that the file which has the log's name has every line of
// the open one.
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

// CreateWhen implements store.Publisher.
func (s *Store) CreateWhen(ctx context.Context, name string, lines iter.Seq2[[]byte, error], ready func() (release func(), err error)) (store.Log, error) {
	release := func() {}
	defer func() { release() }()
	return s.createWhen(ctx, name, lines, func() (err error) {
		unpin, err := ready()
		if err == nil {
			release = unpin
		}
		return err
	})
}
