package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// census finds the blobs that the files of a store name. Bringing it up to date costs only as
// much as what was written since.
type census struct {
	store *Store
	only  map[store.Ref]bool     // the blobs to look for; nil means all
	named map[store.Ref][]string // the files that name each blob
	seen  map[string]countedFile // by path
	seed  maphash.Seed
	buf   []byte
}

// listedFile is a file that is to be read.
type listedFile struct {
	path string
	info fs.FileInfo // as it was when it was listed
}

// countedFile is how far a file was read, and which file it was.
type countedFile struct {
	info       fs.FileInfo // from before it was read
	at         time.Time   // when it was read
	file       vfs.FileID
	size       int64
	end        int64  // of the last whole line; later bytes may still change
	head, tail uint64 // hashes of the first bytes and of those before end
}

// newCensus begins a census of some blobs, or of all if refs is nil.
func newCensus(s *Store, refs []store.Ref) *census {
	c := &census{
		store: s, named: make(map[store.Ref][]string), seen: make(map[string]countedFile),
		seed: maphash.MakeSeed(), buf: make([]byte, 0, store.RefOverlap+1<<20),
	}
	if refs != nil {
		c.only = make(map[store.Ref]bool)
		for _, ref := range refs {
			c.only[ref] = true
		}
	}
	return c
}

// readAll reads all files.
func (c *census) readAll(ctx context.Context) error {
	files, err := c.files(ctx)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := c.read(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// catchUp reads the files that were written since. While it lists one directory, a log may
// move from another into one that was listed before, by archiving or restoring. So it
// repeats until a listing shows nothing that was not read in this round. A file could
// still be missed only if it moved back and forth in step with two listings, and each
// move waits for the disk.
func (c *census) catchUp(ctx context.Context) error {
	done := make(map[string]bool)
	for range 100 {
		files, err := c.files(ctx)
		if err != nil {
			return err
		}
		fresh := false
		for _, f := range files {
			if done[f.path] {
				continue
			}
			done[f.path], fresh = true, true
			if err := c.read(ctx, f); err != nil {
				return err
			}
		}
		if !fresh {
			return nil
		}
	}
	return &store.Error{
		Op: "look for references", Path: c.store.dir, Kind: store.ErrLocked,
		Err: errors.New("sessions are added faster than they can be listed"), Hint: "try again later",
	}
}

// files returns every regular file that may name blobs: those in the store's own
// directory, including copies of logs that users made, and those below .coppice.
func (c *census) files(ctx context.Context) ([]listedFile, error) {
	files, err := c.filesIn(ctx, nil, c.store.dir, func(_ string, dir bool) bool { return dir })
	if err != nil {
		return nil, err
	}
	return c.filesIn(ctx, files, c.store.housePath(), namesNothing)
}

// namesNothing reports whether a file below .coppice need not be read:
//
//   - the blobs themselves and the locks;
//   - temporary files, which are copies of files in place, or are written under a hold;
//   - the index, which is made from the logs;
//   - the note of a redaction, which names the blobs to delete.
func namesNothing(name string, dir bool) bool {
	if dir {
		return name == "blobs" || name == "locks" || name == "tmp"
	}
	return strings.HasPrefix(name, indexFile) || strings.HasSuffix(name, lockSuffix) || name == "redact.pending"
}

func (c *census) filesIn(ctx context.Context, files []listedFile, dir string, skip func(name string, dir bool) bool) ([]listedFile, error) {
	entries, err := c.store.fs.ReadDir(dir)
	if err == nil {
		err = ctx.Err()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return files, nil
	}
	if err != nil {
		return nil, c.fail(dir, err)
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch {
		case skip(entry.Name(), entry.IsDir()):
		case entry.IsDir():
			if files, err = c.filesIn(ctx, files, path, func(string, bool) bool { return false }); err != nil {
				return nil, err
			}
		case entry.Type().IsRegular():
			info, err := entry.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue // moved or removed in the meantime
			}
			if err != nil {
				return nil, c.fail(path, err)
			}
			files = append(files, listedFile{path, info})
		}
	}
	return files, nil
}

func (c *census) fail(path string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &store.Error{
		Op: "look for references", Path: path, Err: err,
		Hint: "a file that cannot be read may refer to any blob, so none was deleted",
	}
}

// read reads a file, or the part of it that was written since it was read last.
func (c *census) read(ctx context.Context, file listedFile) error {
	path := file.path
	if was, ok := c.seen[path]; ok && was.isStill(file.info) {
		return nil
	}
	f, err := c.store.fs.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, vfs.ErrSymlink) {
		return nil // moved or removed in the meantime
	}
	if err != nil {
		return c.fail(path, err)
	}
	defer f.Close()
	at := time.Now()
	now, err := c.readOpen(ctx, path, f)
	if err != nil {
		return c.fail(path, err)
	}
	now.info, now.at = file.info, at
	c.seen[path] = now
	return nil
}

// isStill reports whether a file that was read completely need not be opened again. In a
// large store, that is what makes catching up fast. Times are coarse: if the file had just
// changed when it was read, a later write may have left the same time.
func (was *countedFile) isStill(now fs.FileInfo) bool {
	const coarse = 2 * time.Second
	return was.end == was.size && now.Size() == was.size && os.SameFile(was.info, now) &&
		now.ModTime().Equal(was.info.ModTime()) && was.at.Sub(now.ModTime()) > coarse
}

func (c *census) readOpen(ctx context.Context, path string, f vfs.File) (countedFile, error) {
	stat, err := f.Stat()
	if err != nil {
		return countedFile{}, err
	}
	was, known := c.seen[path]
	known = known && c.isSame(f, stat, was)
	if known && stat.Size == was.size && was.end == was.size {
		return was, nil
	}
	now := countedFile{file: stat.File, size: stat.Size, end: stat.Size}
	if packed := c.isPacked(path); packed {
		err = c.readPacked(ctx, path, f, stat.Size)
	} else {
		from := int64(0)
		if known {
			from = was.end
		}
		now.end, err = c.readFrom(ctx, path, f, from, stat.Size)
	}
	if err == nil {
		now.head, now.tail, err = c.sample(f, now.end)
	}
	return now, err
}

// isSame reports whether a file is the one that was read, except that it may have grown. A
// new file may get the number of a deleted one, so the bytes are compared too: rewriting a
// log changes its beginning.
func (c *census) isSame(f vfs.File, stat vfs.Stat, was countedFile) bool {
	if stat.File != was.file || stat.Size < was.end {
		return false
	}
	head, tail, err := c.sample(f, was.end)
	return err == nil && head == was.head && tail == was.tail
}

// sample returns hashes of the first bytes of a file and of those before end.
func (c *census) sample(f io.ReaderAt, end int64) (head, tail uint64, err error) {
	buf := make([]byte, min(end, 4<<10))
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, end), buf); err != nil {
		return 0, 0, err
	}
	head = maphash.Bytes(c.seed, buf)
	if _, err := io.ReadFull(io.NewSectionReader(f, end-int64(len(buf)), int64(len(buf))), buf); err != nil {
		return 0, 0, err
	}
	return head, maphash.Bytes(c.seed, buf), nil
}

// isPacked reports whether a file is an archive of ours.
func (c *census) isPacked(path string) bool {
	return strings.HasSuffix(path, ".zst") && filepath.Dir(path) != c.store.dir
}

// readPacked reads an archive. One that has lost content may refer to any blob and is an error, except in
// quarantine, where damage is expected.
func (c *census) readPacked(ctx context.Context, path string, f vfs.File, size int64) error {
	z, err := openSeekable(f, size)
	if err == nil {
		defer z.Close()
		_, err = c.readFrom(ctx, path, z, 0, z.size)
		if err == nil && z.hasLost() {
			err = fmt.Errorf("a part of the archive cannot be read: %w", store.ErrCorrupt)
		}
	}
	if ctx.Err() == nil && filepath.Dir(path) == c.store.housePath("quarantine") {
		return nil
	}
	return err
}

// readFrom records the references in a part of a file, and returns where the last whole line
// ends. A reference never crosses a line end, so a later part can begin there.
func (c *census) readFrom(ctx context.Context, path string, r io.ReaderAt, from, to int64) (end int64, err error) {
	end = from
	section := io.NewSectionReader(r, from, to-from)
	for buf, at := c.buf[:0], from; ; {
		n, err := io.ReadFull(section, buf[len(buf):cap(buf)])
		if newline := bytes.LastIndexByte(buf[len(buf):len(buf)+n], '\n'); newline >= 0 {
			end = at + int64(newline) + 1
		}
		at += int64(n)
		buf = buf[:len(buf)+n]
		store.EachRef(buf, func(ref store.Ref) { c.note(ref, path) })
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return end, nil
		case err != nil:
			return end, err
		case ctx.Err() != nil:
			return end, ctx.Err()
		}
		rest := copy(buf, buf[max(0, len(buf)-store.RefOverlap):])
		buf = buf[:rest]
	}
}

func (c *census) note(ref store.Ref, path string) {
	paths := c.named[ref]
	if c.only != nil && !c.only[ref] || len(paths) > 0 && paths[len(paths)-1] == path {
		return
	}
	c.named[ref] = append(paths, path)
}
