package store

import (
	"context"
	"iter"
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
