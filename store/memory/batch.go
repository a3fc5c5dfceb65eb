package memory

import (
	"bytes"
	"context"
	"iter"

	"github.com/coppice-dev/coppice/store"
)

// Batch implements store.Store.
func (s *Store) Batch() store.Batch { return &batch{store: s} }

type batch struct {
	store *Store
	logs  []batched
}

type batched struct {
	name  string
	lines [][]byte
}

func (b *batch) Len() int { return len(b.logs) }

func (b *batch) Discard() { b.logs = nil }

// Add implements store.Batch.
func (b *batch) Add(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) error {
	if err := b.store.admit(ctx, "create", name); err != nil {
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

// Commit implements store.Batch.
func (b *batch) Commit(ctx context.Context) map[string]error {
	errs := make(map[string]error)
	for _, l := range b.logs {
		log, err := b.store.Create(ctx, l.name, store.Lines(l.lines...))
		if err == nil {
			err = log.Close()
		}
		if err != nil {
			errs[l.name] = err
		}
	}
	b.logs = nil
	return errs
}
