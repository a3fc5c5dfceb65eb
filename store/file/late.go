package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/coppice-dev/coppice/store"
)

// lateBlobs are the blobs that were put but not synced, because the store has Sync: Never.
// They stay here, at about a hundred bytes each, until a Flush has synced them.
type lateBlobs struct {
	// flushing is held during a sync. Another flush waits for it, and then checks what is
	// left: it must not return while another one is still syncing its blobs.
	flushing sync.Mutex

	mu    sync.Mutex         // guards what follows
	refs  map[store.Ref]bool // true if a sync has failed: the blob must be rewritten
	taken map[store.Ref]bool // being synced
}

func (b *lateBlobs) any() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.refs)+len(b.taken) > 0
}

func (b *lateBlobs) add(ref store.Ref, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refs == nil {
		b.refs = make(map[store.Ref]bool)
	}
	b.refs[ref] = b.refs[ref] || failed
}

// begin returns the blobs to sync. The caller holds flushing, and calls done.
func (b *lateBlobs) begin() map[store.Ref]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken, b.refs = b.refs, nil
	return b.taken
}

func (b *lateBlobs) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken = nil
}

// lazyBlobs are the blobs of a store that does not sync. It also remembers blobs that already
// exist: their writers may not have synced them.
type lazyBlobs struct{ blobs }

func (b lazyBlobs) Put(ctx context.Context, data []byte) (store.Ref, error) {
	ref, err := b.blobs.Put(ctx, data)
	if err == nil {
		b.store.late.add(ref, false)
	}
	return ref, err
}

// flushBlobs makes all blobs durable that were put before. If it fails, the others stay for
// the next flush.
func (s *Store) flushBlobs(ctx context.Context) error {
	if !s.late.any() {
		return nil
	}
	s.late.flushing.Lock()
	defer s.late.flushing.Unlock()
	refs := s.late.begin()
	defer s.late.done()
	dirs := make(map[string]error)
	var failed error
	for ref, damaged := range refs {
		digits, _ := ref.Hex()
		path := blobs{s}.path(digits)
		err := ctx.Err()
		if err == nil {
			err = s.flushBlob(ctx, ref, path, damaged)
			if errors.Is(err, fs.ErrNotExist) {
				continue // it was removed, so there is nothing to lose
			}
			damaged = damaged || err != nil
		}
		if dir := filepath.Dir(path); err == nil {
			err, damaged = s.syncOnce(dirs, dir), true
		}
		if err != nil {
			s.late.add(ref, damaged)
			failed = fmt.Errorf("blob %s: %w", ref, err)
		}
	}
	return failed
}

// syncOnce syncs a directory unless done has it already, and returns the error of that one
// sync.
func (s *Store) syncOnce(done map[string]error, dir string) error {
	err, ok := done[dir]
	if !ok {
		err = s.flushDir(dir)
		done[dir] = err
	}
	return err
}

// flushBlob syncs a blob. If an earlier sync of it failed, flushBlob reads the blob, while
// the kernel still has it, and writes it again.
func (s *Store) flushBlob(ctx context.Context, ref store.Ref, path string, damaged bool) error {
	if !damaged {
		return s.syncPath(path)
	}
	// The hold keeps a blob that is being deleted from coming back.
	release, err := blobs{s}.Hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	data, err := blobs{s}.Get(ctx, ref)
	if err != nil {
		return err
	}
	return s.eager().publish(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
