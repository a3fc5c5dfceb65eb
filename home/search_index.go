package home

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/internal/budget"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// The index is beside the sessions if possible, so that all programs that read them share it.
// If we may not write there (a read-only mount, another user's directory, a backup), or the
// disk is full, it is in the user's cache, or in a temporary directory if they have none.
// Reading a home must never fail because of an index.
//
// Locks: opening is held while an index is opened, moved or deleted. That can take long,
// because another process may hold the index's own lock, so waiting for opening can be
// cancelled. mu is taken inside opening, for as long as it takes to copy a pointer.

// index returns the index, brought up to date. It stays open until the home is closed.
func (h *Home) index(ctx context.Context) (*index.Index, error) {
	held, _ := ctx.Value(caughtUp{h}).(*atomic.Pointer[index.Index])
	if held == nil {
		return h.caughtUpIndex(ctx)
	}
	if ix := held.Load(); ix != nil {
		return ix, nil
	}
	ix, err := h.caughtUpIndex(ctx)
	if err == nil {
		held.Store(ix)
	}
	return ix, err
}

// catchUpOnce returns a context for an operation that needs the index in several places,
// and brings it up to date in the first of them only.
func (h *Home) catchUpOnce(ctx context.Context) context.Context {
	return context.WithValue(ctx, caughtUp{h}, new(atomic.Pointer[index.Index]))
}

type caughtUp struct{ home *Home }

func (h *Home) caughtUpIndex(ctx context.Context) (*index.Index, error) {
	ix, err := h.indexBy(ctx, (*index.Index).CatchUp)
	if ix != nil && errors.Is(err, store.ErrLocked) && ix.IsComplete(ctx) {
		h.notify(ctx, Notice{Kind: IndexBehind, Error: described(err)})
		return ix, nil
	}
	return ix, err
}

// builtIndex returns the index, brought up to date, or nil if there is none or it is still
// empty. Use it for something that only adds to an answer: building an index reads every
// session.
func (h *Home) builtIndex(ctx context.Context) *index.Index {
	ix, _, err := h.currentIndex()
	if err == nil && ix == nil && (h.kind.Room != nil || slices.ContainsFunc(h.indexPaths(), exists)) {
		ix, err = h.openedIndex(ctx)
	}
	if err != nil || ix == nil || ix.IsEmpty(ctx) {
		return nil
	}
	if ix, err = h.index(ctx); err != nil {
		return nil
	}
	return ix
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// indexing is a way to bring an index up to date: CatchUp or Rebuild.
type indexing func(ix *index.Index, ctx context.Context, progress func(done, total int64)) (index.Report, error)

func (h *Home) indexBy(ctx context.Context, how indexing) (*index.Index, error) {
	ctx = budget.Without(ctx)
	ix, err := h.openedIndex(ctx)
	if err != nil {
		return nil, err
	}
	err = h.catchUpIndex(ctx, ix, how)
	if err == nil || !cannotWrite(err) || ix.Where() != h.indexPath() && ix.Where() != h.store.Where() {
		return ix, err
	}
	// There was room to open it but not to update it. On a full disk, people must still be
	// able to see what they could remove.
	if ix, err = h.movedIndex(ctx, ix, err); err != nil {
		return nil, err
	}
	return ix, h.catchUpIndex(ctx, ix, how)
}

// openedIndex returns the index, and opens it if necessary.
func (h *Home) openedIndex(ctx context.Context) (*index.Index, error) {
	if ix, unused, err := h.currentIndex(); ix != nil && !unused || err != nil {
		return ix, err
	}
	if err := h.opening.LockContext(ctx); err != nil {
		return nil, err
	}
	defer h.opening.Unlock()
	ix, unused, err := h.currentIndex()
	if err != nil || ix != nil && !unused {
		return ix, err // another goroutine has opened it
	}
	used := h.isUsed(ctx)
	if ix != nil && !used {
		return ix, nil
	}
	// An index that is open now was made in a temporary place, before anything was
	// written to the home. Open the real one.
	if ix, err = h.openIndex(ctx, !used); err != nil {
		return nil, err
	}
	h.setIndex(ix, !used)
	return ix, nil
}

// movedIndex returns an index in another place, to replace one that cannot be written.
func (h *Home) movedIndex(ctx context.Context, from *index.Index, why error) (*index.Index, error) {
	if err := h.opening.LockContext(ctx); err != nil {
		return nil, err
	}
	defer h.opening.Unlock()
	if ix, _, err := h.currentIndex(); err != nil || ix != from {
		return ix, err // another goroutine has opened it
	}
	ix, err := h.openElsewhere(ctx, why)
	if err != nil {
		return nil, err
	}
	h.setIndex(ix, false)
	return ix, nil
}

// currentIndex returns the open index, or nil, and whether it was opened before anything
// was written to the home.
func (h *Home) currentIndex() (ix *index.Index, unused bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, false, &session.Error{Op: "open index", Path: h.store.Where(), Kind: store.ErrClosed}
	}
	return h.ix, h.ixUnused, nil
}

// setIndex makes an index the home's. The previous one stays open until the home is closed,
// because other goroutines may be using it. The caller holds opening.
func (h *Home) setIndex(ix *index.Index, unused bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ix != nil {
		h.retired = append(h.retired, h.ix)
	}
	h.ix, h.ixUnused = ix, unused
}

// indexPath returns where the file of the index belongs: beside the sessions, or in the cache of
// the user if they are in a database that has no index for us. It is "" if there is no place.
func (h *Home) indexPath() string {
	if dir, ok := store.As[store.Directory](h.store); ok {
		return dir.IndexPath()
	}
	if h.kind.Room != nil {
		return h.CachePath(cachedSuffix)
	}
	return ""
}

// openIndex opens an index wherever possible. The caller holds opening.
func (h *Home) openIndex(ctx context.Context, unused bool) (*index.Index, error) {
	if h.kind.Room != nil {
		r, err := h.kind.Room(ctx, h.store)
		if err != nil {
			return nil, err
		}
		if r != nil {
			return h.indexIn(r, false)
		}
	}
	if unused || h.indexPath() == "" {
		return h.openTemporary(ctx)
	}
	ix, err := h.openIndexAt(ctx, h.indexPath())
	if cannotWrite(err) {
		return h.openElsewhere(ctx, err)
	}
	return ix, err
}

// isUsed reports whether anything was ever written to the home. Looking into a directory
// that is not a home must not turn it into one.
func (h *Home) isUsed(ctx context.Context) bool {
	path := h.indexPath()
	if path == "" || h.kind.Room != nil {
		return true // there is no directory to look into
	}
	if _, err := os.Lstat(filepath.Dir(path)); err == nil {
		return true
	}
	for range h.store.List(ctx) {
		return true
	}
	return false
}

// openElsewhere opens an index in the cache or, if that fails, in a temporary directory. The
// caller holds opening.
func (h *Home) openElsewhere(ctx context.Context, why error) (ix *index.Index, err error) {
	err = why
	if path := h.CachePath(cachedSuffix); path != "" {
		ix, err = h.openIndexAt(ctx, path)
	}
	if cannotWrite(err) {
		ix, err = h.openTemporary(ctx)
	}
	if err == nil && vfs.NoSpace(why) { // a full disk is news; a read-only home is always like this
		h.notify(ctx, Notice{Kind: IndexElsewhere, Path: ix.Where(), Error: described(why)})
	}
	return ix, err
}

// openTemporary opens an index in a temporary directory. The caller holds opening.
func (h *Home) openTemporary(ctx context.Context) (_ *index.Index, err error) {
	if h.ixTemp == nil {
		sweepTemporary(h.store.Where())
		if h.ixTemp, err = newTemporary(h.store.Where()); err != nil {
			return nil, err
		}
	}
	return h.openIndexAt(ctx, filepath.Join(h.ixTemp.dir, "index.db"))
}

// cannotWrite reports whether an error means that an index cannot be written in a place. That
// includes a lock that cannot be taken.
func cannotWrite(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || vfs.NoSpace(err) || vfs.CannotLock(err)
}

func (h *Home) openIndexAt(ctx context.Context, path string) (*index.Index, error) {
	files, err := indexFiles()
	if err != nil {
		return nil, err
	}
	r, err := files.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return h.indexIn(r, h.kind.Room != nil || path != h.indexPath())
}

// indexIn returns the index in a room.
func (h *Home) indexIn(r room.Room, apart bool) (*index.Index, error) {
	prices, err := h.settings.prices()
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return index.New(h.store, r, &index.Options{Prices: prices, Apart: apart}), nil
}

// prices returns what models cost, the user's own prices included.
func (s *Settings) prices() (*index.Prices, error) {
	path := s.pricesPath()
	if path == "" {
		return index.DefaultPrices(), nil
	}
	prices, err := index.ReadPrices(path)
	if errors.Is(err, fs.ErrNotExist) {
		return index.DefaultPrices(), nil
	}
	return prices, err
}

// catchUpIndex brings an index up to date.
func (h *Home) catchUpIndex(ctx context.Context, ix *index.Index, how indexing) error {
	report, err := how(ix, ctx, h.progress(ctx, "indexing"))
	for _, unread := range report.Unread {
		h.notify(ctx, Notice{Kind: SessionUnread, Session: unread.Name, Error: described(unread.Err)})
	}
	return err
}

// CachePath returns where something about the home can be kept for this user that may be lost, in
// a file of its own with an ending; "" if the user has no place for that, or if the home is in
// memory: another one there is not the same. The directory need not
// exist.
func (h *Home) CachePath(ending string) string {
	if slices.Contains(h.kind.Schemes, inMemory) {
		return ""
	}
	sum := sha256.Sum256([]byte(h.store.Where()))
	return under(h.settings.cache, hex.EncodeToString(sum[:8])+ending)
}

// cachedSuffix is the ending of the index of a read-only directory.
const cachedSuffix = ".db"

// indexPaths returns where the home's index may be: beside the sessions, or in the cache.
func (h *Home) indexPaths() []string {
	beside := h.indexPath()
	if beside == "" {
		return nil
	}
	paths := []string{beside}
	if path := h.CachePath(cachedSuffix); path != "" && path != beside {
		paths = append(paths, path)
	}
	return paths
}

// cachedIndexes returns all indexes in the cache. They are named after a directory, and that
// of the home may have been opened under another name: through a link or a mount, or before
// it was moved. So each may belong to this home. They belong to read-only homes, and their
// next use rebuilds them.
func (h *Home) cachedIndexes() (paths []string, err error) {
	if h.settings.cache == "" {
		return nil, nil
	}
	files, err := os.ReadDir(h.settings.cache)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, f := range files {
		if filepath.Ext(f.Name()) == cachedSuffix {
			paths = append(paths, filepath.Join(h.settings.cache, f.Name()))
		}
	}
	return paths, err
}

// dropIndexes deletes the files. An open index is not closed, because other goroutines may be
// using it: it rebuilds itself on its next use.
func (h local) dropIndexes(ctx context.Context) (had []string, err error) {
	if err := h.opening.LockContext(ctx); err != nil {
		return nil, err
	}
	defer h.opening.Unlock()
	sweepTemporary(h.store.Where())
	paths := h.indexPaths()
	cached, err := h.cachedIndexes()
	if err != nil {
		return nil, err
	}
	if ix, _, err := h.currentIndex(); h.kind.Room != nil && ix == nil && err == nil {
		if ix, err = h.openIndex(ctx, false); err != nil { // others may be using the one in the database
			return nil, err
		}
		h.setIndex(ix, false)
	}
	for _, ix := range h.openIndexes() {
		if err := ix.Forget(ctx); err != nil {
			return nil, err
		}
		if ix.Where() == h.store.Where() || slices.Contains(paths, ix.Where()) {
			had = append(had, ix.Where())
		}
	}
	if beside := h.indexPath(); beside != "" {
		cached = append(cached, beside)
	}
	files, err := indexFiles()
	if err != nil {
		return had, err
	}
	for _, path := range cached {
		was, err := files.Delete(ctx, path)
		if err != nil {
			return had, err
		}
		if was && slices.Contains(paths, path) {
			had = append(had, path)
		}
	}
	return had, nil
}

// openIndexes returns all open indexes, including retired ones.
func (h *Home) openIndexes() []*index.Index {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Clone(h.retired)
	if h.ix != nil {
		all = append(all, h.ix)
	}
	return all
}

// closeIndex closes the index for good: afterwards there is none.
//
// Closing comes twice. The first round ends whatever the indexes are doing, so that a
// holder of opening soon releases it. The second, under opening, closes an index that was
// opened in between; closed keeps more from following.
func (h *Home) closeIndex() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	// Not under opening: its holder may be waiting for one of these.
	err := h.closeIndexes()
	h.opening.Lock()
	defer h.opening.Unlock()
	err = errors.Join(err, h.closeIndexes())
	if h.ixTemp != nil {
		err = errors.Join(err, h.ixTemp.remove())
		h.ixTemp = nil
	}
	return err
}

func (h *Home) closeIndexes() (err error) {
	for _, ix := range h.openIndexes() {
		err = errors.Join(err, ix.Close()) // does nothing the second time
	}
	return err
}
