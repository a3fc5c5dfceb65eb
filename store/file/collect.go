package file

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// Unreferenced returns the blobs that nothing in the store refers to: no log, plain or
// archived, no copy in trash, quarantine or backup, and nothing else that the store keeps but
// the index. A line that names one of them may be added at any moment: only Collect can tell.
// A file that cannot be read may refer to any blob, so it is an error.
func (b blobs) Unreferenced(ctx context.Context) ([]store.Part, error) {
	s := b.store
	if err := b.check(ctx); err != nil {
		return nil, err
	}
	c := newCensus(s, nil)
	if err := c.readAll(ctx); err != nil {
		return nil, err
	}
	var all []store.Part
	for ref, err := range b.All(ctx) {
		if err != nil {
			return nil, err
		}
		if len(c.named[ref]) > 0 {
			continue
		}
		p := parts{s}.at(parts{s}.Where(store.PartBlob, string(ref)))
		if info, err := s.fs.Lstat(p.Place); err == nil {
			p.Size, p.Modified = info.Size(), info.ModTime()
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b store.Part) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// maxExclusive is how long a deletion runs before holders get a turn.
const maxExclusive = 500 * time.Millisecond

// Collect implements store.Blobs. It may run beside writers that take holds, in this and in
// other processes: a blob that one of them names, or is about to name, stays.
//
// Reading the whole store takes a while, and writers must not wait for that. So Collect first
// reads everything, and then, while there is no hold, only the lines that were written since. A blob
// that no line names at that point can be named later only after another Put, which writes it
// again. If the program or the machine stops at any moment, only blobs that nothing refers to
// are missing. If the holds do not end, the error is store.ErrLocked.
func (b blobs) Collect(ctx context.Context, refs ...store.Ref) (*store.Collected, error) {
	s, r := b.store, &store.Collected{Named: make(map[store.Ref][]store.Part)}
	if err := b.check(ctx); err != nil {
		return r, err
	}
	c := newCensus(s, refs)
	if err := c.readAll(ctx); err != nil {
		return r, err
	}
	todo := slices.DeleteFunc(slices.Sorted(maps.Keys(c.only)), func(ref store.Ref) bool {
		return len(c.named[ref]) > 0 || !s.hasBlob(ref)
	})
	shelves := make(map[string]bool)
	var failed error
	for len(todo) > 0 && failed == nil {
		// Read the lines that others wrote in the meantime now; under the lock, they would have to wait
		// for it.
		if failed = c.catchUp(ctx); failed != nil {
			break
		}
		failed = s.withoutHolds(ctx, func() error {
			if err := c.catchUp(ctx); err != nil {
				return err
			}
			var err error
			todo, err = s.deleteSome(ctx, todo, c, r, shelves)
			return err
		})
	}
	for ref, paths := range c.named {
		slices.Sort(paths)
		for _, path := range slices.Compact(paths) {
			r.Named[ref] = append(r.Named[ref], parts{s}.at(path))
		}
	}
	// Writers need not wait for this: putting one of the blobs again syncs the same
	// directory.
	for shelf := range shelves {
		failed = errors.Join(failed, s.syncDir(shelf))
	}
	return r, s.failHold("remove blobs", failed)
}

func (s *Store) hasBlob(ref store.Ref) bool {
	digits, ok := ref.Hex()
	if !ok {
		return false
	}
	_, err := s.fs.Lstat(blobs{s}.path(digits))
	return err == nil
}

// deleteSome deletes blobs until maxExclusive has passed, and returns the rest. The caller
// makes sure that there is no hold.
func (s *Store) deleteSome(ctx context.Context, todo []store.Ref, c *census, r *store.Collected, shelves map[string]bool) ([]store.Ref, error) {
	for end := time.Now().Add(maxExclusive); len(todo) > 0 && time.Now().Before(end); todo = todo[1:] {
		if err := ctx.Err(); err != nil {
			return todo, err
		}
		if len(c.named[todo[0]]) > 0 {
			continue
		}
		digits, _ := todo[0].Hex()
		path := blobs{s}.path(digits)
		err := s.fs.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return todo, &store.Error{Op: "remove blob", Path: path, Err: err}
		}
		shelves[filepath.Dir(path)] = true
		r.Deleted = append(r.Deleted, todo[0])
	}
	return todo, nil
}
