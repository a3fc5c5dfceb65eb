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

var _ store.Collector = blobs{}

// Unreferenced is a blob that nothing refers to.
type Unreferenced = store.Unreferenced

var _ store.Auditor = (*Store)(nil)

// Unreferenced returns the blobs that nothing in the store refers to: no log, plain
// or archived, no copy in trash, quarantine or backup, and nothing else that the
// store keeps but the index. Some of them may be named while it looks, or be about
// to: only RemoveBlobs can tell. What cannot be read may refer to anything, and is
// an error.
func (s *Store) Unreferenced(ctx context.Context) ([]Unreferenced, error) {
	c := newCensus(s, nil)
	if err := c.take(ctx); err != nil {
		return nil, err
	}
	var all []Unreferenced
	for ref, err := range s.Blobs().All(ctx) {
		if err != nil {
			return nil, err
		}
		if len(c.named[ref]) > 0 {
			continue
		}
		digits, _ := ref.Hex()
		u := Unreferenced{Ref: ref, Path: blobs{s}.path(digits)}
		if info, err := s.fs.Lstat(u.Path); err == nil {
			u.Size = info.Size()
		}
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b Unreferenced) int { return strings.Compare(string(a.Ref), string(b.Ref)) })
	return all, nil
}

// Removal is what became of blobs that were to be deleted.
type Removal struct {
	Deleted []store.Ref
	// Named are those that stay, and the files that name them.
	Named map[store.Ref][]Found
}

// maxExclusive is how long blobs are deleted before the holders get a turn.
const maxExclusive = 500 * time.Millisecond

// RemoveBlobs deletes those of the given blobs that nothing refers to. It is safe
// beside writers in this and in other processes that take holds: a blob that one of
// them names, or is about to name, stays.
//
// Reading the whole store takes a while, and no writer should wait for that. So it is
// done first, and then, while there is no hold, once more for what was written in
// between. A blob that is not named then cannot be named later without being put again.
// If the program or the machine stops at any moment, only blobs that nothing refers to
// are missing, which does not matter. If the holds do not end, the error is
// store.ErrLocked.
func (s *Store) RemoveBlobs(ctx context.Context, refs ...store.Ref) (*Removal, error) {
	r := &Removal{Named: make(map[store.Ref][]Found)}
	if err := (blobs{s}).check(ctx); err != nil {
		return r, err
	}
	c := newCensus(s, refs)
	if err := c.take(ctx); err != nil {
		return r, err
	}
	todo := slices.DeleteFunc(slices.Sorted(maps.Keys(c.only)), func(ref store.Ref) bool {
		return len(c.named[ref]) > 0 || !s.hasBlob(ref)
	})
	shelves := make(map[string]bool)
	var failed error
	for len(todo) > 0 && failed == nil {
		// What others wrote while we read, or while we waited for our turn, would
		// be read while they wait for theirs.
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
			f := Found{Path: path}
			f.Room, f.Name = s.placeOf(path)
			r.Named[ref] = append(r.Named[ref], f)
		}
	}
	// The others need not wait for this: who puts one of them again syncs the same
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

// deleteSome deletes until the time is over, and returns what is left to do. There must
// be no hold.
func (s *Store) deleteSome(ctx context.Context, todo []store.Ref, c *census, r *Removal, shelves map[string]bool) ([]store.Ref, error) {
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

// Collect implements store.Collector.
func (b blobs) Collect(ctx context.Context, refs ...store.Ref) ([]store.Ref, error) {
	r, err := b.store.RemoveBlobs(ctx, refs...)
	return r.Deleted, err
}
