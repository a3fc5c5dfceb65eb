package keyed

import (
	"context"
	"time"
)

const (
	// grace is how long a conversation stays open after its last use even if too many are
	// open. Without it, a burst of more than MaxOpen chats would open and close files for
	// every message.
	grace = time.Second
	// graceFactor times MaxOpen is where the grace ends, because open files are limited.
	graceFactor = 8
)

// acquire returns the chat of a key, which stays in memory until it is released. There is at
// most one chat per key at any time: two would each think that the other is another process.
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
	sm.busy.Add(1) // under mu: either Close waits for us, or we have seen that it was called
	return c, nil
}

// release gives a chat back, and closes others if there are too many.
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

// inMemory returns the keys of the chats in memory that satisfy a condition, most recently
// used first.
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

// count updates the manager's total with a chat's present size.
func (sm *SessionManager) count(c *chat) {
	size := c.size.Load()
	sm.bytes += size - c.counted
	c.counted = size
}

// victims returns the chats to be closed. They are acquired, so that nobody else closes or
// drops them while evict does its I/O without mu. It is called with mu held.
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

// evict writes what a chat has not written yet, and removes it from memory. It stays if
// that fails, or if it has an error that nobody has seen. If somebody acquired it in the
// meantime, it stays too, with its session closed, and the next call opens that again.
func (sm *SessionManager) evict(c *chat) {
	gone := c.forget()
	sm.mu.Lock()
	defer sm.mu.Unlock()
	c.users--
	c.used = sm.opts.Now() // if it stays, do not try again right away
	sm.count(c)
	if gone && c.users == 0 {
		sm.drop(c)
	}
}

// drop removes a chat without users from memory.
func (sm *SessionManager) drop(c *chat) {
	sm.recent.Remove(sm.chats[c.key])
	delete(sm.chats, c.key)
	sm.bytes -= c.counted
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
		err = c.barrier() // no later Save could wait for a session that is closed now
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
