package store

import (
	"context"
	"iter"
)

// Batcher is an optional interface of a Store that can create many logs for less
// than each of them costs alone.
type Batcher interface {
	// Batch returns an empty batch. The caller ends it with Commit or Discard.
	Batch() Batch
}

// Batch collects logs that are created together. It belongs to one goroutine.
type Batch interface {
	// Add writes the lines of a log that is to be. Nobody sees it yet.
	Add(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) error
	// Len is how many logs were added.
	Len() int
	// Commit creates the logs and empties the batch. The logs that it returns no
	// error for are durable. One whose name is taken by then has ErrExist, and is
	// left as it is.
	Commit(ctx context.Context) map[string]error
	// Discard empties the batch. What was added is gone.
	Discard()
}
