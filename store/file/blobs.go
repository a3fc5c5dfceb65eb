package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

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

func (b blobs) path(digits string) string { return b.store.room("blobs", digits[:2], digits) }

// Put implements store.Blobs. A blob that is there was published whole; but
// whoever did so may not have come to sync its name, so that is done here.
func (b blobs) Put(ctx context.Context, data []byte) (store.Ref, error) {
	if err := b.check(ctx); err != nil {
		return "", err
	}
	ref := store.RefOf(data)
	digits, _ := ref.Hex()
	path := b.path(digits)
	if info, err := b.store.fs.Lstat(path); err == nil && info.Size() == int64(len(data)) {
		return ref, b.store.syncDir(filepath.Dir(path))
	}
	err := b.store.publish(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		return "", &store.Error{Op: "put blob", Path: path, Err: err}
	}
	return ref, nil
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
	data, err := readFile(b.store.fs, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &store.Error{Op: "get blob", Path: path, Kind: store.ErrNotExist, Err: err}
	case err != nil:
		return nil, &store.Error{Op: "get blob", Path: path, Err: err}
	case store.RefOf(data) != ref:
		return nil, &store.Error{
			Op: "get blob", Path: path, Kind: store.ErrCorrupt,
			Err: errors.New("the content does not match its name"),
		}
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
		shelves, err := b.store.fs.ReadDir(b.store.room("blobs"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield("", &store.Error{Op: "list blobs", Path: b.store.room("blobs"), Err: err})
			return
		}
		for _, shelf := range shelves {
			if !shelf.IsDir() {
				continue // not ours
			}
			dir := b.store.room("blobs", shelf.Name())
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
				if _, ok := ref.Hex(); ok && !yield(ref, nil) {
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

func readFile(fsys vfs.FS, path string) ([]byte, error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data := make([]byte, stat.Size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, stat.Size), data); err != nil {
		return nil, err
	}
	return data, nil
}
