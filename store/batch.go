package store

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"sync"
)

// Batch collects logs that are created together. It belongs to one goroutine.
type Batch interface {
	// Add writes the lines of a future log. It is not visible yet.
	Add(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) error
	// Len returns how many logs were added.
	Len() int
	// Commit creates the logs and empties the batch. The logs without an error in the
	// result are durable. If a name has been taken, its error is ErrExist, and the log
	// with that name is left as it is.
	Commit(ctx context.Context) map[string]error
	// Discard empties the batch. What was added is gone.
	Discard()
}

// BatchOf returns a batch for a store that cannot create several logs for less than each costs
// alone. The lines are in memory until Commit.
func BatchOf(st Store) Batch { return &batch{store: st} }

type batch struct {
	store Store
	logs  []batched
}

type batched struct {
	name  string
	lines [][]byte
}

func (b *batch) Len() int { return len(b.logs) }

func (b *batch) Discard() { b.logs = nil }

func (b *batch) Add(_ context.Context, name string, lines iter.Seq2[[]byte, error]) error {
	if err := CheckName(name); err != nil {
		return err
	}
	l := batched{name: name}
	for line, err := range lines {
		if err != nil {
			return err
		}
		l.lines = append(l.lines, bytes.Clone(line))
	}
	b.logs = append(b.logs, l)
	return nil
}

// maxCreated is how many logs of a batch are created at the same time: while one waits for the
// network, the others go on.
const maxCreated = 8

func (b *batch) Commit(ctx context.Context) map[string]error {
	var mu sync.Mutex // guards errs
	errs := make(map[string]error)
	var all sync.WaitGroup
	turn := make(chan struct{}, maxCreated)
	for _, l := range b.logs {
		turn <- struct{}{}
		all.Go(func() {
			defer func() { <-turn }()
			log, err := b.store.Create(ctx, l.name, Lines(l.lines...))
			if err == nil {
				err = errors.Join(log.Flush(ctx), log.Close())
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs[l.name] = err
			}
		})
	}
	all.Wait()
	b.Discard()
	return errs
}
