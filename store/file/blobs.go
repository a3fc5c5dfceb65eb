package file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// Blobs implements store.Store.
func (s *Store) Blobs() store.Blobs {
	if s.opts.Sync == Never {
		return lazyBlobs{blobs{s}}
	}
	return blobs{s}
}

// blobs keeps each blob in a file named by its hash, in one of 256 directories.
type blobs struct{ store *Store }

func (b blobs) path(digits string) string { return b.store.housePath("blobs", digits[:2], digits) }

// Put implements store.Blobs.
func (b blobs) Put(ctx context.Context, data []byte) (store.Ref, error) {
	if err := b.check(ctx); err != nil {
		return "", err
	}
	ref := store.RefOf(data)
	digits, _ := ref.Hex()
	path := b.path(digits)
	if there, err := b.ensureDurable(path, digits, data); there || err != nil {
		return ref, err
	}
	err := b.store.publish(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		return "", &store.Error{Op: "put blob", Path: path, Err: err}
	}
	if info, err := b.store.fs.Lstat(path); err == nil {
		b.store.syncedBlobs.add(digits, info.ModTime())
	}
	return ref, nil
}

// ensureDurable makes the file of a blob durable if it exists and has the content, and reports whether
// it does. None of that can be assumed:
//
//   - A file of the right size may be full of zeros: a power cut leaves such files of
//     programs that do not sync, and disks decay. A file with other content is replaced and
//     not kept: no session needs its bytes, and we have the right ones.
//   - The writer that published the file may not have synced its name yet, or may not
//     sync at all (Never).
//
// Comparing costs less than the hash that gave the blob its name. Syncing costs more, so a
// blob that this Store has synced before is not synced again as long as its file has the same
// time.
func (b blobs) ensureDurable(path, digits string, data []byte) (bool, error) {
	s := b.store
	info, err := s.fs.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false, nil // publishing will report what is wrong
	}
	f, err := s.fs.OpenFile(path, os.O_RDWR, 0) // Windows syncs only what may be written
	if err != nil {
		return false, nil
	}
	defer f.Close()
	if info.Size() != int64(len(data)) || !hasContent(f, data) {
		s.opts.Logger.Warn("replaced a blob that had other content", "path", path, "bytes", info.Size(), "want", len(data))
		return false, nil
	}
	if s.opts.Sync == Never || s.syncedBlobs.has(digits, info.ModTime()) {
		return true, nil
	}
	if f.Sync() != nil {
		return false, nil // a second sync would prove nothing, so write another file
	}
	if err := s.syncDir(filepath.Dir(path)); err != nil {
		return false, err
	}
	s.syncedBlobs.add(digits, info.ModTime())
	return true, nil
}

// hasContent compares a part at a time: blobs may be large.
func hasContent(f io.ReaderAt, data []byte) bool {
	buf := make([]byte, min(len(data), 256<<10))
	for at := 0; at < len(data); {
		part := data[at:min(len(data), at+len(buf))]
		if n, _ := f.ReadAt(buf[:len(part)], int64(at)); n < len(part) || !bytes.Equal(buf[:n], part) {
			return false
		}
		at += len(part)
	}
	return true
}

// durableBlobs are the blobs that are known to be durable, with the times of their
// files.
type durableBlobs struct {
	mu    sync.Mutex
	times map[string]time.Time
}

// maxDurable bounds the memory. Forgetting costs a sync.
const maxDurable = 4096

func (b *durableBlobs) has(digits string, modified time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was, ok := b.times[digits]
	return ok && was.Equal(modified)
}

func (b *durableBlobs) add(digits string, modified time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.times == nil || len(b.times) >= maxDurable {
		b.times = make(map[string]time.Time)
	}
	b.times[digits] = modified
}

// Get implements store.Blobs.
func (b blobs) Get(ctx context.Context, ref store.Ref) ([]byte, error) {
	if err := b.check(ctx); err != nil {
		return nil, err
	}
	digits, ok := ref.Hex()
	if !ok {
		return nil, &store.Error{Op: "get blob", Kind: store.ErrInvalid, Err: fmt.Errorf("%.90q is not a blob's name", string(ref))}
	}
	path := b.path(digits)
	data, err := b.read(ctx, path, ref)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		for _, dir := range []string{b.store.housePath("blobs"), filepath.Dir(path)} {
			if err := b.outOfReach("get blob", dir); err != nil {
				return nil, err
			}
		}
		return nil, &store.Error{Op: "get blob", Path: path, Kind: store.ErrNotExist, Err: err}
	case errors.Is(err, vfs.ErrNotRegular):
		return nil, &store.Error{Op: "get blob", Path: path, Kind: store.ErrCorrupt, Err: err}
	case errors.Is(err, errOtherContent):
		return nil, &store.Error{Op: "get blob", Path: path, Kind: store.ErrCorrupt, Err: err}
	case err != nil:
		return nil, &store.Error{Op: "get blob", Path: path, Err: err}
	}
	return data, nil
}

// outOfReach returns an error if a directory is a symbolic link to a place that is not there: what
// it has is not gone.
func (b blobs) outOfReach(op, dir string) error {
	if _, err := b.store.fs.ReadDir(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := b.store.fs.Stat(dir); err != nil {
		return nil // there is no link either
	}
	return &store.Error{
		Op: op, Path: dir, Err: errors.New("it is a symbolic link to a place that is not there"),
		Hint: "mount the disk that it leads to, or mend the link",
	}
}

var errOtherContent = errors.New("the content does not match its name")

// largeBlob is the size from which a blob is hashed before memory is allocated for it: a
// sparse file can claim any size.
const largeBlob = 64 << 20

func (b blobs) read(ctx context.Context, path string, ref store.Ref) ([]byte, error) {
	f, err := b.store.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if stat.Size > largeBlob {
		hash := sha256.New()
		if _, err := io.Copy(hash, section(ctx, f, stat.Size)); err != nil {
			return nil, err
		}
		if digits, _ := ref.Hex(); hex.EncodeToString(hash.Sum(nil)) != digits {
			return nil, errOtherContent
		}
	}
	data := make([]byte, stat.Size)
	if _, err := io.ReadFull(section(ctx, f, stat.Size), data); err != nil {
		return nil, err
	}
	if store.RefOf(data) != ref {
		return nil, errOtherContent
	}
	return data, nil
}

// All implements store.Blobs.
func (b blobs) All(ctx context.Context) iter.Seq2[store.Ref, error] {
	return func(yield func(store.Ref, error) bool) {
		if err := b.check(ctx); err != nil {
			yield("", err)
			return
		}
		shelves, err := b.store.fs.ReadDir(b.store.housePath("blobs"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield("", &store.Error{Op: "list blobs", Path: b.store.housePath("blobs"), Err: err})
			return
		}
		if err != nil {
			if err := b.outOfReach("list blobs", b.store.housePath("blobs")); err != nil {
				yield("", err)
				return
			}
		}
		for _, shelf := range shelves {
			if !shelf.IsDir() {
				continue // not ours
			}
			dir := b.store.housePath("blobs", shelf.Name())
			files, err := b.store.fs.ReadDir(dir)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield("", &store.Error{Op: "list blobs", Path: dir, Err: err})
				return
			}
			for _, file := range files {
				ref := store.Ref("sha256:" + filepath.Base(file.Name()))
				if _, ok := ref.Hex(); ok && file.Type().IsRegular() && !yield(ref, nil) {
					return
				}
			}
		}
	}
}

func (b blobs) check(ctx context.Context) error {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	if b.store.closed {
		return &store.Error{Op: "blobs", Path: b.store.dir, Kind: store.ErrClosed}
	}
	return ctx.Err()
}
