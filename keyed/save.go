package keyed

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// SaveInterval is how often SaveEvery saves by default.
const SaveInterval = 30 * time.Second

// Save is a barrier. It makes sure that everything done to a key's session so far is on the
// disk, whatever the store's Sync is, and reports what is not. Messages that could not be
// written stay in memory, and the next Save tries again. A message that can never be written,
// for example because it is too large, is reported once, as a RefusedError.
//
// An error that matches os.ErrInvalid means that the key is invalid; no message
// ever causes one. Other errors are the store's.
//
// Without storage, or without such a session, there is nothing to save.
func (sm *SessionManager) Save(key string) error {
	return sm.try(key, func(c *chat) error { return c.save(sm.context()) })
}

func (c *chat) save(ctx context.Context) error {
	if err := c.lock(ctx); err != nil {
		return err
	}
	defer c.unlock()
	err := c.flush(nil)
	if err == nil {
		err = c.syncLog()
	}
	c.show()
	if errors.Is(err, os.ErrInvalid) {
		err = &RefusedError{c.key, err} // the key itself is valid
	}
	err = errors.Join(append(c.refused, err)...)
	c.refused = nil
	return err
}

// syncLog waits until what is in the log is on the disk. If the session cannot tell any more,
// it is opened again; the new handle rewrites the log if it has to.
func (c *chat) syncLog() error {
	if c.session == nil {
		return nil
	}
	err := c.session.Flush(c.ctx)
	if !errors.Is(err, session.ErrUnknown) && !errors.Is(err, session.ErrClosed) {
		return err
	}
	leaf := c.session.LeafID()
	c.close()
	if openErr := c.open(); openErr != nil {
		return errors.Join(err, openErr)
	}
	if leaf != "" {
		if _, goneErr := c.session.Entry(leaf); goneErr != nil {
			return errors.Join(err, goneErr)
		}
	}
	return c.session.Flush(c.ctx)
}

// SaveAsync saves a key's session without blocking, and then calls report with
// the result of Save. If report is nil, an error goes to the Logger.
func (sm *SessionManager) SaveAsync(key string, report func(error)) {
	c, err := sm.acquire(context.Background(), key) // here, not in the goroutine, so that Close waits for it
	tell := func(err error) {
		if report != nil {
			report(err)
		} else if err != nil {
			sm.opts.Logger.Error("save session", "key", key, "error", err)
		}
	}
	if err != nil {
		go tell(err)
		return
	}
	go func() {
		err := c.save(sm.context())
		sm.release(c) // before report, which may call Close
		tell(err)
	}()
}

// SaveEvery saves all active sessions periodically, until stop is called or the manager is
// closed. report must not call stop. It gets the errors; if it is nil, they go to the Logger.
// An interval of 0 means SaveInterval.
func (sm *SessionManager) SaveEvery(interval time.Duration, report func(key string, err error)) (stop func()) {
	if interval <= 0 {
		interval = SaveInterval
	}
	if report == nil {
		report = func(key string, err error) { sm.opts.Logger.Error("save session", "key", key, "error", err) }
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				return
			case <-sm.done:
				return
			case <-ticker.C:
				sm.saveActive(report)
			}
		}
	}()
	end := sync.OnceFunc(func() { close(quit) })
	return func() {
		end()
		<-ended
	}
}

func (sm *SessionManager) saveActive(report func(key string, err error)) {
	keys, _ := sm.chats.Contents()
	for _, key := range keys { // even those that only have an error to report
		if err := sm.Save(key); err != nil {
			report(key, err)
		}
	}
}

// Close saves everything and releases the files. Later calls do nothing, and Save returns an
// error that matches session.ErrClosed.
func (sm *SessionManager) Close() error {
	sm.mu.Lock()
	if sm.closed {
		sm.mu.Unlock()
		return nil
	}
	sm.closed = true
	close(sm.done)
	sm.mu.Unlock()
	sm.busy.Wait()
	var errs []error
	sm.chats.Each(func(c *chat) {
		errs = append(errs, c.save(sm.context()))
		c.writing.Lock()
		c.close()
		c.writing.Unlock()
	})
	if sm.owned {
		errs = append(errs, sm.logs.Close())
	}
	return errors.Join(errs...)
}
