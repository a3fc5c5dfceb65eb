package memory

import (
	"context"
	"iter"
	"sync"

	"github.com/coppice-dev/coppice/store"
)

// news reports changes to those who watch the whole store.
type news struct {
	mu       sync.Mutex // guards watchers; taken after all others
	watchers map[*watcher]bool
}

// watcher is a watch of the store. It misses no change.
type watcher struct{ *store.Inbox }

// Err implements store.Notices.
func (watcher) Err() error { return nil }

// logChanged notifies the watchers of a log that has changed.
func (n *news) logChanged(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for e := range n.watchers {
		e.Tell(name)
	}
}

// end has all watchers look once more: the store is closed.
func (n *news) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for e := range n.watchers {
		e.TellAll()
	}
}

// Watch implements store.Watcher.
func (s *Store) Watch(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		e := &watcher{store.NewInbox()}
		s.news.mu.Lock()
		s.news.watchers[e] = true
		s.news.mu.Unlock()
		defer func() {
			s.news.mu.Lock()
			defer s.news.mu.Unlock()
			delete(s.news.watchers, e)
		}()
		store.Look(ctx, s, e)(yield)
	}
}
