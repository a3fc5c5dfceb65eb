package store

import (
	"context"
	"iter"
)

// Pinner is an optional interface of a Log that other processes may rewrite or remove
// while it is open.
type Pinner interface {
	// Current returns ErrReplaced if the log was rewritten since it was opened. It is
	// cheap, and its answer may be out of date at once.
	Current() error
	// Pin checks that the log is still the one that was opened, and keeps it unchanged
	// until release is called: until then no process appends to it, rewrites it or
	// removes it. It returns ErrReplaced if it was rewritten and ErrNotExist if it was
	// removed.
	Pin(ctx context.Context) (release func(), err error)
}

// Publisher is an optional interface of a Store that writes a log before it
// appears.
type Publisher interface {
	// CreateWhen is Create that calls ready when all lines are written and the log is
	// about to appear. If ready fails, the log does not appear; otherwise release is
	// called once it has.
	CreateWhen(ctx context.Context, name string, lines iter.Seq2[[]byte, error], ready func() (release func(), err error)) (Log, error)
}

// CreateCopy is Create of lines that come from another log. The copy appears only if
// that log was not rewritten: a redaction may have removed something that must not come
// back through an old handle. Checking before the copy is not enough, because the log
// may be rewritten while it is copied. So the log is pinned from the check until the
// copy has its name. A later rewrite of the log finds the copy.
func CreateCopy(ctx context.Context, st Store, name string, lines iter.Seq2[[]byte, error], of Log) (Log, error) {
	from, ok := of.(Pinner)
	if !ok {
		return st.Create(ctx, name, lines)
	}
	ready := func() (func(), error) { return from.Pin(ctx) }
	if p, ok := st.(Publisher); ok {
		return p.CreateWhen(ctx, name, lines, ready)
	}
	release := func() {}
	defer func() { release() }()
	return st.Create(ctx, name, func(yield func([]byte, error) bool) {
		for line, err := range lines {
			if !yield(line, err) {
				return
			}
		}
		unpin, err := ready()
		if err != nil {
			yield(nil, err)
			return
		}
		release = unpin
	})
}
