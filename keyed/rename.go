package keyed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// Delete removes the session of a key. From a directory it goes to the trash, from which it
// can be restored. Old files of picoclaw stay where they are and do not bring the session
// back. What could not be written yet is dropped. If there is no such session, Delete
// returns session.ErrNotExist. The next use of the key starts a new session.
func (sm *SessionManager) Delete(key string) error {
	return sm.tryChange(key, (*chat).remove)
}

func (c *chat) remove() error {
	st, err := c.manager.store()
	if err != nil {
		return err
	}
	// Retire the old files before the session is gone. Otherwise a crash in between would
	// leave a file that brings it back.
	hadOld, err := c.manager.old.retire(c.key, c.id)
	if err != nil {
		return err
	}
	hadPending := len(c.pending) > 0
	c.close()
	err = st.Remove(c.ctx, c.id)
	if err != nil && !errors.Is(err, session.ErrNotExist) {
		return err
	}
	c.reset()
	if err != nil && (hadOld || hadPending) {
		return nil // there was something, and it is gone now
	}
	return err
}

// reset forgets everything known about the session.
func (c *chat) reset() {
	c.pending, c.refused, c.wanted = nil, nil, false
	c.showing.Lock()
	c.created = time.Time{}
	c.showing.Unlock()
	c.show()
}

// Rename gives the session of a key another key, under which you then find everything
// that was ever said. It returns session.ErrNotExist if the old key has no session, and
// session.ErrExist if the new one has. A crash in between leaves the session under both
// keys; call Rename again to finish.
//
// The session gets another id (see SessionID). Sessions that were forked from it
// still name the old one.
func (sm *SessionManager) Rename(oldKey, newKey string) error {
	from, err := sm.acquire(sm.context(), oldKey)
	if err != nil {
		return err
	}
	defer sm.release(from)
	if oldKey == newKey {
		return from.mustExist(sm.context())
	}
	to, err := sm.acquire(sm.context(), newKey)
	if err != nil {
		return err
	}
	defer sm.release(to)
	first, second := from, to
	if newKey < oldKey { // always in the same order, so that two Renames cannot wait for each other
		first, second = to, from
	}
	for _, c := range []*chat{first, second} {
		if err := c.lock(sm.context()); err != nil {
			return err
		}
		defer c.unlock()
	}
	if err := from.moveTo(to); err != nil {
		return fmt.Errorf("rename session %.80q to %.80q: %w", oldKey, newKey, err)
	}
	return nil
}

func (c *chat) mustExist(ctx context.Context) error {
	if err := c.lock(ctx); err != nil {
		return err
	}
	defer c.unlock()
	return c.mustBeOpen()
}

// mustBeOpen writes what is pending and opens the session. It returns ErrNotExist if there is
// none.
func (c *chat) mustBeOpen() error {
	err := c.flush(nil)
	if err == nil && c.session == nil {
		err = &session.Error{Op: "open", Name: c.id, Kind: session.ErrNotExist}
	}
	return err
}

// moveTo moves the session to another key, which must have none. An interruption loses
// nothing: the old session is removed last, when the new one has all of its entries, and
// only if there was no append to it since (see session.Session.Remove).
func (c *chat) moveTo(to *chat) error {
	if err := c.mustBeOpen(); err != nil {
		return err
	}
	if _, err := c.session.Refresh(); err != nil {
		return err
	}
	if err := c.copyTo(to); err != nil {
		return err
	}
	if _, err := c.manager.old.retire(c.key, c.id); err != nil {
		return err
	}
	err := session.Retry(func() error { // other processes may append in the meantime
		if err := c.copyMissing(to); err != nil {
			return err
		}
		return c.session.Remove(c.ctx)
	}, func() error {
		_, err := c.session.Refresh()
		return err
	})
	if err != nil {
		return err
	}
	to.refused = append(to.refused, c.refused...)
	c.close()
	c.reset()
	to.close() // its view is out of date
	if err := to.open(); err != nil {
		return err
	}
	to.show()
	return nil
}

// copyTo creates the session of the other key, unless an interrupted attempt has already
// done so.
func (c *chat) copyTo(to *chat) error {
	err := to.open()
	if err == nil {
		return c.mustBeCopy(to)
	} else if !errors.Is(err, session.ErrNotExist) {
		return err
	}
	header := c.session.Header()
	header.ID, header.Key = to.id, to.key
	to.session, err = c.session.Fork(c.ctx, c.session.Store(), &session.ForkOptions{Header: &header, Options: to.options()})
	return err
}

// mustBeCopy returns ErrExist unless the other session is a copy of this one. Ids are unique,
// so looking at the first entry is enough.
func (c *chat) mustBeCopy(to *chat) error {
	for e, err := range c.session.Entries() {
		if err != nil {
			return err
		}
		if has, err := to.session.Has(e.ID); err != nil || has {
			return err
		}
		break
	}
	return &session.Error{Op: "rename", Name: to.id, Kind: session.ErrExist, Err: fmt.Errorf("%.80q has a session", to.key)}
}

// copyMissing adds the entries that the other session does not have yet.
func (c *chat) copyMissing(to *chat) error {
	var missing []session.Entry
	for e, err := range c.session.Entries() {
		if err != nil {
			return err
		}
		has, err := to.session.Has(e.ID)
		if err != nil {
			return err
		}
		if !has {
			missing = append(missing, e)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return to.session.Graft(missing...)
}
