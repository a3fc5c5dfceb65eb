package store

import (
	"context"
	"iter"
)

// Pinner is an optional interface of a Log that others may rewrite or remove while
// it is open.
type Pinner interface {
	// Current returns ErrReplaced if the log was rewritten since it was opened. It
	// costs little, and what it says may be out of date at once.
	Current() error
	// Pin makes sure that the log is still the one that was opened, and keeps it
	// so until release is called: nobody appends to it, rewrites it or removes it
	// meanwhile. It returns ErrReplaced if it was rewritten and ErrNotExist if it
	// was removed.
	Pin(ctx context.Context) (release func(), err error)
}

// Publisher is an optional interface of a Store that writes a log before it
// appears.
type Publisher interface {
	// CreateWhen is Create that calls ready when all lines are written and the log
	// is about to appear. If ready fails, it does not; else release is called once
	// it has.
	CreateWhen(ctx context.Context, name string, lines iter.Seq2[[]byte, error], ready func() (release func(), err error)) (Log, error)
}

// CreateCopy is Create of lines that come from another log. The copy appears only
// if that log is still what it was: something may have been taken out of it that
// must not come back through whoever still had it open. Asking before the copy is
// made would not do, because the log may be rewritten while it is copied; so the
// log is pinned from the question to the moment at which the copy has its name.
// Whoever rewrites the log later finds the copy there.
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
