package upkeep

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// # Removals
//
// A removal is known by its ID, which it keeps in every store. A store knows the removals of its
// own logs, those that it was told of by a copy, and no less once a log was restored or deleted for
// good (store.RemovalsOf). So two stores can be compared:
//
//   - A removal of which only the store that is copied from knows is news. If that store has no
//     log of the name, the log is removed from the other one, too.
//   - A removal of which only the store that is written to knows happened there after the stores
//     last had the same. The other one is old: its log, or its removed log, stays away.
//   - A log that is there although its store knows of all removals came later than they, because
//     it was restored or made again. It is copied.

// copyRemovals repeats the removals that are news to the store that is written to, copies the
// trash, and then makes it know of them.
func (c *copier) copyRemovals(ctx context.Context) (err error) {
	if c.removals.from, err = store.RemovalsOf(ctx, c.from); err != nil {
		return err
	}
	if c.removals.to, err = store.RemovalsOf(ctx, c.to); err != nil {
		return err
	}
	trash, err := c.from.Trash().Read()
	if err != nil {
		return err
	}
	defer trash.Close()
	var told []string
	for name := range c.removals.from.Known {
		news := c.removals.from.News(name, c.removals.to)
		if len(news) == 0 {
			continue
		}
		removed, err := c.removeGone(ctx, trash, name, news[0])
		if err != nil || removed {
			if err := c.recordOutcome(ctx, pair{from: c.from, to: c.to}, name, err, changesMade{removed: true}); err != nil {
				return err
			}
		}
		if !c.bad[name] {
			told = append(told, news...)
		}
	}
	if err := c.copyTrash(ctx, trash); err != nil {
		return err
	}
	now, err := store.RemovalsOf(ctx, c.to)
	if err != nil {
		return err
	}
	told = slices.DeleteFunc(told, func(id string) bool {
		name, _, _ := store.ParseRemoval(id)
		return slices.Contains(now.Known[name], id)
	})
	return store.NoteRemovals(ctx, c.to, told...)
}

// removeGone moves a log to the trash that was removed from the other store, under the ID of that
// removal, unless it has something that was not in it when it was removed.
func (c *copier) removeGone(ctx context.Context, trash store.Store, name, id string) (removed bool, err error) {
	if _, err := c.from.Stat(ctx, name); !errors.Is(err, store.ErrNotExist) {
		return false, err
	}
	if _, err := c.to.Stat(ctx, name); err != nil {
		return false, ignoreNotExist(err)
	}
	held, err := c.holdBlobs(ctx)
	if err != nil {
		return false, err
	}
	defer held.release()
	w := &logCopier{copier: c, blobs: held, pair: pair{from: trash, to: c.to, removed: true}}
	for try := 1; ; try++ {
		end, err := w.compareRemoved(ctx, name, id)
		if err == nil {
			err = c.to.Trash().Take(ctx, id, end)
		}
		switch {
		case err == nil:
			return true, nil
		case !isMoved(err) || try == maxTries:
			return false, ignoreNotExist(err)
		}
	}
}

// compareRemoved compares a log with the removed one, and returns where it ends. A secret redacted
// before the removal is redacted in it first: then the error is ErrReplaced.
func (w *logCopier) compareRemoved(ctx context.Context, name, id string) (end store.Pos, err error) {
	theirs, err := w.to.Open(ctx, name)
	if err != nil {
		return 0, err
	}
	defer theirs.Close()
	ours, err := w.pair.from.Open(ctx, id)
	if errors.Is(err, store.ErrNotExist) {
		return endBefore(ctx, theirs, id)
	}
	if err != nil {
		return 0, err
	}
	defer ours.Close()
	s, err := w.compare(ctx, ours, theirs)
	switch {
	case err != nil:
		return 0, err
	case s.differ && w.isRedacted(s):
		if err := w.replace(ctx, name, ours); err != nil {
			return 0, err
		}
		return 0, store.ErrReplaced
	case s.differ || s.ahead:
		return 0, differs("it was removed from the original, and has changed in the copy after line %d", s.same)
	}
	return s.to, nil
}

// endBefore returns where a log ends that was deleted for good from the other store. What it had
// there is not known any more, but when it was removed is. The time of the last entry counts: that
// of the file changes with every redaction.
func endBefore(ctx context.Context, log store.Log, id string) (end store.Pos, err error) {
	_, removed, _ := store.ParseRemoval(id)
	if end, err = log.End(ctx); err != nil {
		return 0, err
	}
	for line, err := range log.Backward(ctx, end) {
		if err != nil {
			return 0, err
		}
		var e session.Entry
		if json.Unmarshal(line.Data, &e) == nil && e.Timestamp.After(removed) {
			return 0, differs("it was deleted from the original for good, and has changed in the copy since")
		}
		break
	}
	return end, nil
}

// notRemoved returns the sessions that no removal keeps out of the copy.
func (c *copier) notRemoved(ctx context.Context, names []string) (standing []string, err error) {
	for _, name := range names {
		_, err := c.to.Stat(ctx, name)
		switch {
		case err != nil && !errors.Is(err, store.ErrNotExist):
			return nil, err
		case err != nil && len(c.removals.to.News(name, c.removals.from)) > 0:
			c.result.StayRemoved = append(c.result.StayRemoved, name)
		default:
			standing = append(standing, name)
		}
	}
	slices.Sort(c.result.StayRemoved)
	return standing, nil
}

// copyTrash copies the removed logs, each under the ID of its removal.
func (c *copier) copyTrash(ctx context.Context, trash store.Store) (err error) {
	p := pair{from: trash, trash: true}
	if p.to, err = c.to.Trash().Read(); err != nil {
		return err
	}
	defer p.to.Close()
	there := store.RemovalIDs(c.removals.to.Trash)
	var ids []string
	for _, item := range c.removals.from.Trash {
		gone := slices.Contains(c.removals.to.Known[item.Name], item.ID) || len(c.removals.to.News(item.Name, c.removals.from)) > 0
		if slices.Contains(there, item.ID) || !gone && !c.bad[item.Name] {
			ids = append(ids, item.ID)
		}
	}
	return c.copyLogs(ctx, p, ids)
}

// moveToTrash puts a removed log into the trash.
func (w *logCopier) moveToTrash(ctx context.Context, id string, ours store.Log) error {
	n, size := 0, 0
	err := w.to.Trash().Add(ctx, id, func(yield func([]byte, error) bool) {
		for line, err := range ours.Forward(ctx, 0) {
			if err == nil {
				err = checkWhole(line)
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
	return w.checkTrashed(ctx, id, ours)
}

// checkTrashed reads back a removed log. What the trash had when it was opened may not include
// it.
func (w *logCopier) checkTrashed(ctx context.Context, id string, ours store.Log) error {
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
