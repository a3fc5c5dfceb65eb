// Package budget bounds the memory that an operation uses for the data that it reads.
//
// Who starts the operation, such as a server, says in the context whom to ask for memory. Who reads
// says how much it is about to hold:
//
//	if err := budget.Hold(ctx, size); err != nil {
//		return err // there is no room, now
//	}
//
// and one who reads one part after the other says when a part is over:
//
//	done := budget.Part(ctx)
//	… // read, and use the data
//	done()
//
// Nothing is given back before the operation ends: what is held again after a part was over needs
// no new memory, so an operation that has begun is not kept waiting later, unless a part is larger
// than all before it.
package budget

import (
	"context"
	"sync"
)

// key is where a context has its *spending.
type key struct{}

// spending is the memory that one operation uses.
type spending struct {
	take func(n int64) error

	mu    sync.Mutex // guards what follows, and is held while take waits
	used  int64      // by what the operation holds now
	taken int64      // the most that it has held
}

// With returns a context for one operation. It calls take, from one goroutine at a time, with the
// bytes by which it needs more than ever before; take may wait. Its error ends the operation.
func With(ctx context.Context, take func(n int64) error) context.Context {
	return context.WithValue(ctx, key{}, &spending{take: take})
}

// Without returns a context for what is read for others, too: it stays in memory when the operation
// has ended, and no operation may have to wait for the memory of another.
func Without(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, (*spending)(nil))
}

// Hold counts n more bytes. Without a bound it does nothing.
func Hold(ctx context.Context, n int64) error {
	r, _ := ctx.Value(key{}).(*spending)
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if more := r.used + n - r.taken; more > 0 {
		if err := r.take(more); err != nil {
			return err
		}
		r.taken += more
	}
	r.used += n
	return nil
}

// Part begins a part. What is held from now on is let go when the caller calls done.
func Part(ctx context.Context) (done func()) {
	r, _ := ctx.Value(key{}).(*spending)
	if r == nil {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.used
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.used = before
	}
}
