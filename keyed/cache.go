package keyed

import (
	"context"
	"time"
)

const (
	// grace is how long a conversation that was just used is not closed only
	// because there are many: in a burst of more chats than MaxOpen each message
	// would otherwise open and close files.
	grace = time.Second
	// graceFactor times MaxOpen is the end of that: files are limited.
	graceFactor = 8
)

// acquire returns the chat of a key, which stays in memory until it is released.
func (sm *SessionManager) acquire(key string) (*chat, error) {
	sm.mu.Lock()
	defer sm.mu.Unlock()
	if sm.closed {
		return nil, errClosed()
	}
	element := sm.chats[key]
	if element == nil {
		id, err := SessionID(key)
		if err != nil {
			return nil, err
		}
		element = sm.recent.PushFront(&chat{manager: sm.core, key: key, id: id})
		sm.chats[key] = element
	}
	c := element.Value.(*chat)
	c.users++
	sm.recent.MoveToFront(element)
	sm.busy.Add(1) // under mu, so that Close waits for it or we see closed
	return c, nil
}

// release gives a chat back, and closes those that are too many.
func (sm *SessionManager) release(c *chat) {
	defer sm.busy.Done()
	now := sm.opts.Now()
	sm.mu.Lock()
	c.users--
	c.used = now
	sm.count(c)
	if c.users == 0 && c.isNothing() {
		sm.drop(c)
	}
	victims := sm.victims(now)
	sm.mu.Unlock()
	for _, victim := range victims {
		sm.evict(victim)
	}
}

// inMemory returns the keys of the chats in memory that a condition holds for,
// the one used last first.
func (sm *SessionManager) inMemory(condition func(*chat) bool) []string {
	sm.mu.Lock()
	defer sm.mu.Unlock()
	keys := make([]string, 0, sm.recent.Len())
	for e := sm.recent.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*chat); condition(c) {
			keys = append(keys, c.key)
		}
	}
	return keys
}

// count takes a chat's present size into account.
func (sm *SessionManager) count(c *chat) {
	size := c.size.Load()
	sm.bytes += size - c.counted
	c.counted = size
}

// victims returns the chats that are to be closed, acquired. It is called with
// mu held.
func (sm *SessionManager) victims(now time.Time) []*chat {
	var victims []*chat
	open, bytes := sm.recent.Len(), sm.bytes
	for e := sm.recent.Back(); e != nil; e = e.Prev() {
		if open <= sm.opts.MaxOpen && bytes <= sm.opts.MaxBytes {
			break
		}
		c := e.Value.(*chat)
		fresh := now.Sub(c.used) < grace && open <= graceFactor*sm.opts.MaxOpen
		if c.users > 0 || fresh && bytes <= sm.opts.MaxBytes {
			continue
		}
		c.users++
		open--
		bytes -= c.counted
		victims = append(victims, c)
	}
	return victims
}

// evict writes what a chat has not written yet, and forgets it. If that cannot
// be done, or there is an error that nobody was told, it stays.
func (sm *SessionManager) evict(c *chat) {
	gone := c.forget()
	sm.mu.Lock()
	defer sm.mu.Unlock()
	c.users--
	c.used = sm.opts.Now() // if it stays, it is not tried again at once
	sm.count(c)
	if gone && c.users == 0 {
		sm.drop(c)
	}
}

// drop takes a chat that has no users out of memory.
func (sm *SessionManager) drop(c *chat) {
	sm.recent.Remove(sm.chats[c.key])
	delete(sm.chats, c.key)
	sm.bytes -= c.counted
}

// isNothing reports whether there is no such session and nothing to tell of it.
// It is called when the chat has no users, who would change what it reads.
func (c *chat) isNothing() bool {
	return !c.exists && len(c.pending) == 0 && len(c.refused) == 0
}

// forget closes the chat's session if nothing is lost by that. Whoever comes
// later opens it again.
func (c *chat) forget() bool {
	c.lockFor(context.Background())
	defer c.unlock()
	err := c.flush(nil)
	if err == nil {
		err = c.barrier() // what is closed now no later Save could wait for
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
