package postgres

import (
	"context"
	"iter"

	"github.com/coppice-dev/coppice/store"
)

// Batch implements store.Store. What is added waits here; a commit sends all of it at once.
func (s *Store) Batch() store.Batch { return &batch{store: s} }

type batch struct {
	store  *Store
	drafts []*draft
	bytes  int
}

// batchSize is how many bytes a batch keeps in memory.
const batchSize = 32 << 20

func (b *batch) Len() int { return len(b.drafts) }

// Add implements store.Batch.
func (b *batch) Add(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) error {
	if err := b.store.admitWrite(ctx, "create", name); err != nil {
		return err
	}
	d, err := b.store.writeDraft(ctx, "create", name, b.store.keyOf(name), lines)
	if err != nil {
		return err
	}
	b.drafts, b.bytes = append(b.drafts, d), b.bytes+d.pending.bytes
	if b.bytes < batchSize {
		return nil
	}
	b.bytes = 0
	for _, d := range b.drafts {
		if err := d.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Commit implements store.Batch.
func (b *batch) Commit(ctx context.Context) map[string]error {
	defer b.Discard()
	errs := make(map[string]error)
	s, drafts := b.store, b.drafts
	if len(drafts) == 0 {
		return errs
	}
	if s.limits.Logs > 0 { // each of them may have to make room
		for _, d := range drafts {
			release, err := s.reserve(ctx, d.name)
			if err == nil {
				err = publish(ctx, "create", d)[0]
				release()
			}
			b.record(errs, d, err)
		}
		return errs
	}
	for i, err := range publish(ctx, "create", drafts...) {
		b.record(errs, drafts[i], err)
	}
	return errs
}

// record notes whether a draft was published.
func (b *batch) record(errs map[string]error, d *draft, err error) {
	if err != nil {
		errs[d.name] = err
		return
	}
	d.begun = false // nothing is left to discard
}

// Discard implements store.Batch.
func (b *batch) Discard() {
	for _, d := range b.drafts {
		d.discard(context.Background())
	}
	b.drafts, b.bytes = nil, 0
}
