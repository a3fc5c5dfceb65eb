package keyed

import (
	"context"
	"time"

	"github.com/coppice-dev/coppice/internal/pool"
	"github.com/coppice-dev/coppice/session"
)

const (
	// grace is how long a conversation stays open after its last use even if too many are
	// open. Without it, a burst of more than MaxOpen chats would open and close files for
	// every message.
	grace = time.Second
	// burst times MaxOpen is where the grace ends, because open files are limited.
	burst = 8
)

// newPool returns the pool of open chats. A chat stays if what it has not written cannot be
// written, or if it has an error that no caller has seen.
func newPool(o Options) *pool.Pool[*chat] {
	return pool.New(pool.Limits{Count: o.MaxOpen, Bytes: o.MaxBytes}, pool.Options[*chat]{
		Close: (*chat).forget, IsEmpty: (*chat).isNothing,
		Size:  func(c *chat) int64 { return c.size.Load() },
		Grace: grace, Burst: burst, Now: o.Now,
	})
}

// acquire returns the chat of a key, which stays in memory until it is released. There is at
// most one chat per key at any time: two would each think that the other is another process.
// If the chat is being closed to make room, acquire waits until ctx ends.
func (sm *SessionManager) acquire(ctx context.Context, key string) (*chat, error) {
	sm.mu.Lock()
	closed := sm.closed
	if !closed {
		sm.busy.Add(1) // under mu: either Close waits for us, or we have seen that it was called
	}
	sm.mu.Unlock()
	if closed {
		return nil, errClosed()
	}
	c, err := sm.chats.Get(ctx, key, func() (*chat, error) {
		id, err := session.KeyID(key)
		return &chat{manager: sm.core, key: key, id: id}, err
	})
	if err != nil {
		sm.busy.Done()
	}
	return c, err
}

// release gives a chat back, and closes others if there are too many.
func (sm *SessionManager) release(c *chat) {
	sm.chats.Release(c.key, c)
	sm.busy.Done()
}

// isNothing reports whether there is no such session and nothing to report about it. It
// needs no lock, because it is called only when the chat has no users.
func (c *chat) isNothing() bool {
	return !c.exists && len(c.pending) == 0 && len(c.refused) == 0
}

// forget closes the chat's session, unless that would lose something. The next call opens it
// again.
func (c *chat) forget() bool {
	c.lockFor(context.Background())
	defer c.unlock()
	err := c.flush(nil)
	if err == nil {
		err = c.syncLog() // no later Save could wait for a session that is closed now
	}
	if err != nil || len(c.refused) > 0 {
		c.show()
		return false
	}
	c.close()
	c.wanted = false
	c.show()
	return true
}
