// Package gate has a mutex that a caller need not wait for longer than it wants to.
package gate

import (
	"context"
	"sync"
)

// Mutex is a sync.Mutex whose holder may be waiting for something slow (another
// process's lock, a disk, a model), so that those who wait for it must be able to
// give up. The zero value is unlocked. It must not be copied.
type Mutex struct {
	once sync.Once
	held chan struct{} // holds one value while the mutex is locked
}

func (m *Mutex) channel() chan struct{} {
	m.once.Do(func() { m.held = make(chan struct{}, 1) })
	return m.held
}

// Lock locks the mutex, however long that takes.
func (m *Mutex) Lock() { m.channel() <- struct{}{} }

// LockContext locks the mutex, or returns why ctx is done.
func (m *Mutex) LockContext(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case m.channel() <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TryLock locks the mutex if it is free, and reports whether it did.
func (m *Mutex) TryLock() bool {
	select {
	case m.channel() <- struct{}{}:
		return true
	default:
		return false
	}
}

// Unlock unlocks the mutex, which must be locked.
func (m *Mutex) Unlock() {
	select {
	case <-m.channel():
	default:
		panic("gate: unlock of an unlocked mutex")
	}
}

// Await returns what f returns or, if ctx is done first, why it is. What f returns
// later is dropped. A panic of f is the caller's, as if it had called f itself.
func Await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	if ctx.Done() == nil {
		return f()
	}
	type outcome struct {
		value    T
		err      error
		panicked any
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			o.panicked = recover()
			done <- o
		}()
		o.value, o.err = f()
	}()
	select {
	case o := <-done:
		if o.panicked != nil {
			panic(o.panicked)
		}
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
