package memory

import (
	"context"
	"iter"
	"sync"

	"github.com/coppice-dev/coppice/store"
)

// news tells those who watch the whole store of changes.
type news struct {
	mu   sync.Mutex // guards ears; taken after all others
	ears map[*ear]bool
}

// ear is somebody who watches. Nothing can keep the news from it.
type ear struct{ *store.Inbox }

// Err implements store.Notices.
func (ear) Err() error { return nil }

// tell says that a log has changed.
func (n *news) tell(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for e := range n.ears {
		e.Tell(name)
	}
}

// end has everybody look once more: the store is closed.
func (n *news) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for e := range n.ears {
		e.TellAll()
	}
}

// Watch implements store.Watcher.
func (s *Store) Watch(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		e := &ear{store.NewInbox()}
		s.news.mu.Lock()
		s.news.ears[e] = true
		s.news.mu.Unlock()
		defer func() {
			s.news.mu.Lock()
			defer s.news.mu.Unlock()
			delete(s.news.ears, e)
		}()
		store.Look(ctx, s, e)(yield)
	}
}
