package backup

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

// # Damaged logs
//
// A home may have a log that is damaged, of which the older backup has a version that was not, or
// less. Of these the backup keeps the one of which more lines can be read. If that is the older
// one, the damaged file goes into the quarantine of the backup, because it may have lines that came
// later. A log that grew by a damaged line is newer and better. So is a log whose end is torn while
// it is written to.

// better returns the version of a log that the older backup has, if the one that was just read is
// damaged and less of it can be read, and why. A version that has something that was redacted since
// is never kept.
func (t *taker) better(k file.Kept, c *content, sum string) (older *entry, why, err error) {
	older = t.to.logs[file.KeptLog(k.Below)]
	if older == nil || older.SHA256 == sum {
		return nil, nil, nil
	}
	now := textOf(k.Below, c.reader(), nil)
	if !now.isDamaged() || c.ctx.Err() != nil {
		return nil, nil, c.ctx.Err()
	}
	guard, err := clean.LoadGuard(c.ctx, t.store)
	if err != nil {
		return nil, nil, err
	}
	var was *text
	whole, err := t.to.readOld(c.ctx, older, func(r io.Reader) error {
		was = textOf(older.Path, r, guard)
		return nil
	})
	if err == nil && whole && !was.secret && was.good > now.good {
		whole, err = t.to.keep(c.ctx, older)
	} else {
		whole = false
	}
	if err != nil || !whole {
		return nil, nil, err
	}
	return older, &refusal{fmt.Errorf("%d of its lines can be read, and %d in the older backup", now.good, was.good), store.ErrCorrupt}, nil
}

// readOld calls use with a file of the older backup, and reports whether it is whole.
func (t *target) readOld(ctx context.Context, e *entry, use func(r io.Reader) error) (whole bool, err error) {
	old, err := t.openOld()
	if err != nil {
		return false, err
	}
	_, wrong, err := (&reading{src: old}).one(ctx, e, func(_ *entry, r io.Reader) error {
		err := use(r)
		if _, unread := errors.AsType[*readError](err); unread {
			return nil // that is what is wrong
		}
		return err
	})
	return wrong == nil, errors.Join(err, old.close())
}

// keep makes sure that the content of a file of the older backup is there, and reports whether it
// could.
func (t *target) keep(ctx context.Context, e *entry) (bool, error) {
	if _, ok := t.has(ctx, e.SHA256); ok {
		return true, nil
	}
	return t.readOld(ctx, e, func(r io.Reader) error { return t.put(&content{ctx: ctx, from: r, size: e.Size}) })
}
