package file

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// news reports changes to those who watch a store, as long as there are any. It has them from the file
// system, if that reports them.
//
//	Notify(dir) ── fileChanged ──┬── watcher of Store.Watch: collects names
//	                             └── watcher of Log.Watch: one name
type news struct {
	store *Store

	mu       sync.Mutex // guards what follows
	watchers map[*watcher]bool
	stop     func()    // of Notify; nil without notices
	err      error     // why not
	when     time.Time // when that was tried last
}

// watcher is a watch of a log or of the store.
type watcher struct {
	*store.Inbox
	news *news
	only string // the file that it is about; "" means all
}

// listen returns a watcher, which the caller must close. only is the name of a log, or "" for all.
func (n *news) listen(only string) *watcher {
	e := &watcher{Inbox: store.NewInbox(), news: n}
	if only != "" {
		e.only = only + logSuffix
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ask()
	if n.watchers == nil {
		n.watchers = make(map[*watcher]bool)
	}
	n.watchers[e] = true
	return e
}

// ask asks the file system to report changes, unless it does. The watchers may have missed earlier
// ones. The caller holds the mutex.
func (n *news) ask() {
	const askAgain = time.Second
	if n.stop != nil || time.Since(n.when) < askAgain {
		return
	}
	before := n.err
	n.when = time.Now()
	n.stop, n.err = nil, errors.ErrUnsupported
	if teller, ok := n.store.fs.(vfs.Notifier); ok {
		n.stop, n.err = teller.Notify(n.store.dir, n.fileChanged)
	}
	if n.err != nil && before == nil && !errors.Is(n.err, errors.ErrUnsupported) && !errors.Is(n.err, fs.ErrNotExist) {
		n.store.opts.Logger.Warn("changes are looked for from time to time", "dir", n.store.dir, "why", n.err)
	}
	if n.err == nil {
		for e := range n.watchers {
			e.TellAll()
		}
	}
}

// close ends a watch. After the last one, the file system need not report changes any more.
func (e *watcher) close() {
	n := e.news
	n.mu.Lock()
	defer n.mu.Unlock()
	if delete(n.watchers, e); len(n.watchers) == 0 && n.stop != nil {
		n.stop()
		n.stop, n.when = nil, time.Time{}
	}
}

// fileChanged notifies the watchers of a file in the store's directory that has changed. An empty name
// means that any file may have.
func (n *news) fileChanged(file string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if file == "" && n.stop != nil { // its reports end here: ask again
		stop := n.stop
		go stop() // not now: it waits for the caller of this function
		n.stop, n.when = nil, time.Time{}
	}
	for e := range n.watchers {
		switch {
		case file == "":
			e.TellAll()
		case e.only == file:
			e.Tell()
		case e.only == "" && strings.HasSuffix(file, logSuffix):
			e.Tell(strings.TrimSuffix(file, logSuffix))
		}
	}
}

// wake wakes those who watch a log because its handle was closed.
func (n *news) wake(log string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for e := range n.watchers {
		if e.only == log+logSuffix {
			e.Tell()
		}
	}
}

// Take implements store.Notices.
func (e *watcher) Take() (names []string, all bool) {
	_ = e.Err() // which asks again
	return e.Inbox.Take()
}

// Err implements store.Notices.
func (e *watcher) Err() error {
	e.news.mu.Lock()
	defer e.news.mu.Unlock()
	e.news.ask()
	return e.news.err
}

// Watch implements store.Watcher. A log that is archived or brought back moves out of the directory
// or into it, so that is noticed, too.
func (s *Store) Watch(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := s.check(ctx, "list", ""); err != nil {
			yield("", err)
			return
		}
		e := s.news.listen("")
		defer e.close()
		store.Look(ctx, s, e)(yield)
	}
}

const (
	watchPause    = time.Millisecond
	watchPauseMax = 50 * time.Millisecond
	// watchSeldom is how often a log is looked at if changes are reported.
	watchSeldom = 10 * time.Second
)

// Watch implements store.Log. If changes are not reported, it looks at the file's size, which costs a
// microsecond and works on every file system.
func (l *Log) Watch(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		e := l.store.news.listen(l.name)
		defer e.close()
		pause := watchPause
		for ctx.Err() == nil {
			next, more := l.forward(ctx, from, func(line store.Line, err error) bool {
				if err != nil && ctx.Err() != nil {
					return false // the end of watching is not an error
				}
				return yield(line, err)
			})
			if !more {
				return
			}
			if next > from {
				from, pause = next, watchPause
				continue
			}
			if err := l.stillThere(from); err != nil {
				yield(store.Line{}, err)
				return
			}
			wait := pause
			if e.Err() == nil {
				wait = watchSeldom
			}
			late := time.NewTimer(wait)
			select {
			case <-ctx.Done():
			case <-e.Told():
			case <-late.C:
			}
			late.Stop()
			pause = min(2*pause, watchPauseMax)
		}
	}
}
