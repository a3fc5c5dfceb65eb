package gate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/gate"
)

func TestMutexExcludes(t *testing.T) {
	t.Parallel()
	var m gate.Mutex
	var wg sync.WaitGroup
	n := 0
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				if err := m.LockContext(t.Context()); err != nil {
					t.Error(err)
					return
				}
				n++
				m.Unlock()
			}
		})
	}
	wg.Wait()
	if n != 8000 {
		t.Errorf("%d of 8000", n)
	}
}

func TestWaitingForAMutexEndsWithTheContext(t *testing.T) {
	t.Parallel()
	var m gate.Mutex
	m.Lock()
	if m.TryLock() {
		t.Error("locked twice")
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if err := m.LockContext(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want Canceled", err)
	}
	m.Unlock()
	if err := m.LockContext(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want Canceled although it is free", err)
	}
	if !m.TryLock() {
		t.Error("who gave up holds it")
	}
	m.Unlock()
	defer func() {
		if recover() == nil {
			t.Error("unlocked twice")
		}
	}()
	m.Unlock()
}

func TestAwaitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	if n, err := gate.Await(ctx, func() (int, error) { return 7, nil }); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	func() {
		defer func() {
			if recover() != "no" {
				t.Error("the panic was lost")
			}
		}()
		_, _ = gate.Await(ctx, func() (int, error) { panic("no") })
	}()
	never := make(chan int)
	defer close(never)
	time.AfterFunc(10*time.Millisecond, cancel)
	if n, err := gate.Await(ctx, func() (int, error) { return <-never, nil }); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d, %v", n, err)
	}
}
