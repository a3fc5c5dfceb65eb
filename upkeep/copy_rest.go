package upkeep

import (
	"context"
	"errors"
	"strings"

	"github.com/coppice-dev/coppice/store"
)

// held is a hold on the blobs of the store that is written to, and which of them are known to be
// as they should. Without the hold, that would not last.
type held struct {
	*copier
	end   func()
	known map[store.Ref]bool
}

func (c *copier) hold(ctx context.Context) (*held, error) {
	end, err := c.to.Blobs().Hold(ctx)
	return &held{c, end, make(map[store.Ref]bool)}, err
}

func (h *held) release() { h.end() }

// bring copies the blobs that a text names, if they are not there.
func (h *held) bring(ctx context.Context, text []byte) (err error) {
	store.EachRef(text, func(ref store.Ref) {
		if err != nil || h.known[ref] {
			return
		}
		if err = h.bringOne(ctx, ref); err == nil {
			h.known[ref] = true
		}
	})
	return err
}

func (h *held) bringOne(ctx context.Context, ref store.Ref) error {
	_, err := h.to.Blobs().Get(ctx, ref) // which checks the content
	if err == nil || !errors.Is(err, store.ErrNotExist) && !errors.Is(err, store.ErrCorrupt) {
		return err
	}
	data, err := h.from.Blobs().Get(ctx, ref)
	if errors.Is(err, store.ErrNotExist) {
		return nil // it is lost, or only looks like a reference
	}
	if err != nil {
		return err
	}
	has, err := h.guard.Has(data)
	if err != nil {
		return err
	}
	if has {
		return errRedactedThere
	}
	if _, err := h.to.Blobs().Put(ctx, data); err != nil {
		return err
	}
	if _, err := h.to.Blobs().Get(ctx, ref); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.result.Blobs++
	h.result.Size += int64(len(data))
	return nil
}

// logOf returns the name of the log that a removal is of.
func logOf(id string) string {
	at := strings.LastIndexByte(id, '.')
	if at > 0 {
		at = strings.LastIndexByte(id[:at], '.')
	}
	if at < 0 {
		return id
	}
	return id[:at]
}

// copyTrash copies the removed logs, each under the ID of its removal.
func (c *copier) copyTrash(ctx context.Context) (err error) {
	items, err := c.from.Trash().List(ctx)
	if err != nil || len(items) == 0 {
		return err
	}
	p := pair{trash: true}
	if p.from, err = c.from.Trash().Read(); err != nil {
		return err
	}
	defer p.from.Close()
	if p.to, err = c.to.Trash().Read(); err != nil {
		return err
	}
	defer p.to.Close()
	var ids []string
	for _, item := range items {
		ids = append(ids, item.ID)
	}
	return c.copyLogs(ctx, p, ids)
}

// throw puts a removed log into the trash.
func (w *porter) throw(ctx context.Context, id string, ours store.Log) error {
	n, size := 0, 0
	err := w.to.Trash().Add(ctx, id, func(yield func([]byte, error) bool) {
		for line, err := range ours.Forward(ctx, 0) {
			if err == nil {
				err = whole(line)
			}
			if err == nil {
				err = w.admit(ctx, [][]byte{line.Data})
			}
			n, size = n+1, size+len(line.Data)+1
			if !yield(line.Data, err) {
				return
			}
		}
	})
	if errors.Is(err, store.ErrExist) {
		return nil // another program has done the same: they are compared next
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.result.Entries += n
	w.result.Size += int64(size)
	w.mu.Unlock()
	return w.checkThrown(ctx, id, ours)
}

// checkThrown reads back a removed log. What the trash had when it was opened may not include
// it.
func (w *porter) checkThrown(ctx context.Context, id string, ours store.Log) error {
	trash, err := w.to.Trash().Read()
	if err != nil {
		return err
	}
	defer trash.Close()
	theirs, err := trash.Open(ctx, id)
	if err != nil {
		return err
	}
	defer theirs.Close()
	s, err := w.compare(ctx, ours, theirs)
	if err == nil && (s.differ || s.ahead || s.behind) {
		err = unlike("copy", id, w.to)
	}
	return err
}

// removeGone moves to the trash what was removed from the other store since it was copied.
func (c *copier) removeGone(ctx context.Context) error {
	items, err := c.from.Trash().List(ctx)
	if err != nil || len(items) == 0 {
		return err
	}
	trash, err := c.from.Trash().Read()
	if err != nil {
		return err
	}
	defer trash.Close()
	seen := make(map[string]bool)
	for _, item := range items { // the latest first
		if seen[item.Name] {
			continue
		}
		seen[item.Name] = true
		removed, err := c.removeOne(ctx, trash, item)
		if err != nil || removed {
			if err := c.settled(ctx, pair{c.from, c.to, false}, item.Name, err, deeds{removed: true}); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeOne moves a log to the trash if it is only in the trash of the other store, and has
// nothing that was not in it when it was removed.
func (c *copier) removeOne(ctx context.Context, trash store.Store, item store.Trashed) (removed bool, err error) {
	if _, err := c.from.Stat(ctx, item.Name); !errors.Is(err, store.ErrNotExist) {
		return false, err
	}
	theirs, err := c.to.Open(ctx, item.Name)
	if err != nil {
		return false, absentIsFine(err)
	}
	defer theirs.Close()
	ours, err := trash.Open(ctx, item.ID)
	if err != nil {
		return false, absentIsFine(err)
	}
	defer ours.Close()
	held, err := c.hold(ctx)
	if err != nil {
		return false, err
	}
	defer held.release()
	w := &porter{copier: c, held: held}
	s, err := w.compare(ctx, ours, theirs)
	switch {
	case err != nil:
		return false, err
	case s.differ || s.ahead:
		return false, differs("it was removed from the original, and has changed in the copy after line %d", s.same)
	}
	return true, c.to.RemoveAt(ctx, item.Name, s.to)
}
