package backup

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/store/vfs"
)

// homePrefix is where the files of the home are in an archive. Unpacked with any other
// program, that directory is a home.
const homePrefix = "home/"

// tarTarget is a backup in a file. It is written beside the file and renamed.
type tarTarget struct {
	fs       vfs.FS
	path     string
	had      bool
	temp     string
	file     vfs.File
	closed   bool
	packed   *packer
	lastPut  map[string]int // the number of the last entry of each path
	putCount int
}

func openTar(fsys vfs.FS, path string) (*tarTarget, error) {
	t := &tarTarget{fs: fsys, path: path, lastPut: make(map[string]int)}
	t.temp = filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".incoming")
	if _, err := fsys.Lstat(path); err == nil {
		t.had = true
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := vfs.Mkdir(fsys, filepath.Dir(path), dirPerm); err != nil {
		return nil, err
	}
	if err := t.takeOver(); err != nil {
		return nil, err
	}
	var err error
	// O_EXCL: no other process may have opened the file before we made it.
	if t.file, err = fsys.OpenFile(t.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, filePerm); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = locked(path)
		}
		return nil, err
	}
	if ok, err := t.file.TryLock(); !ok || err != nil {
		return nil, errors.Join(locked(path), err, t.file.Close())
	}
	if t.packed, err = newPacker(t.file); err != nil {
		return nil, errors.Join(err, t.abort())
	}
	return t, nil
}

// takeOver removes what a killed backup left. A running backup has it locked.
func (t *tarTarget) takeOver() error {
	f, err := t.fs.OpenFile(t.temp, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if ok, err := f.TryLock(); !ok || err != nil {
		return errors.Join(locked(t.path), err)
	}
	if err := t.fs.Remove(t.second()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return t.fs.Remove(t.temp)
}

// second is the name of an archive that is written again.
func (t *tarTarget) second() string { return t.temp + "2" }

func (t *tarTarget) older() bool { return t.had }

func (t *tarTarget) has(context.Context, string) (int64, bool) { return 0, false }

func (t *tarTarget) damaged() int { return 0 }

func (t *tarTarget) put(below string, modified time.Time, c *content) error {
	delete(t.lastPut, below)
	number := t.putCount
	t.putCount++
	err := t.packed.add(homePrefix+below, c.size, modified, c.copyTo)
	if err == nil {
		t.lastPut[below] = number
	}
	return err
}

// publish completes the archive. If it has entries that the manifest lacks, because
// files changed or moved during the backup, it is written again without them: they may
// hold content that was redacted in that moment.
func (t *tarTarget) publish(m *manifest) error {
	if t.putCount > len(m.files) {
		return t.publishFiltered(m)
	}
	if err := t.packed.finish(m); err != nil {
		return err
	}
	if err := t.file.Sync(); err != nil {
		return err
	}
	t.closed = true // some systems do not rename open files
	if err := t.file.Close(); err != nil {
		return err
	}
	if err := t.fs.Rename(t.temp, t.path); err != nil {
		return err
	}
	if err := t.fs.SyncDir(filepath.Dir(t.path)); err != nil {
		return fmt.Errorf("%s was replaced, but %w: %w", t.path, vfs.ErrNotDurable, err)
	}
	return nil
}

func (t *tarTarget) publishFiltered(m *manifest) error {
	if err := t.packed.finish(m); err != nil {
		return err
	}
	r, err := whole(t.file)
	if err != nil {
		return err
	}
	unpacked, err := zstd.NewReader(r)
	if err != nil {
		return err
	}
	defer unpacked.Close()
	return vfs.Replace(t.fs, t.path, vfs.Replacement{Temp: t.second()}, func(w io.Writer) error {
		packed, err := newPacker(w)
		if err != nil {
			return err
		}
		entries := tar.NewReader(unpacked)
		for number := 0; ; number++ {
			h, err := entries.Next()
			if errors.Is(err, io.EOF) {
				return packed.finish(m)
			}
			if err != nil {
				return errors.Join(err, packed.close())
			}
			last, wanted := t.lastPut[strings.TrimPrefix(h.Name, homePrefix)]
			if !wanted || last != number || !m.has(strings.TrimPrefix(h.Name, homePrefix)) {
				continue
			}
			err = packed.add(h.Name, h.Size, h.ModTime, func(w io.Writer) error { _, err := io.Copy(w, entries); return err })
			if err != nil {
				return errors.Join(err, packed.close())
			}
		}
	})
}

// abort removes the temporary files, which are gone if they were published.
func (t *tarTarget) abort() error {
	if t.packed != nil {
		_ = t.packed.close()
	}
	var err error
	if !t.closed {
		err = t.file.Close()
	}
	for _, temp := range []string{t.temp, t.second()} {
		if gone := t.fs.Remove(temp); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// packer writes an archive.
type packer struct {
	buf    *bufio.Writer
	zstd   *zstd.Encoder
	tar    *tar.Writer
	closed bool
}

func newPacker(w io.Writer) (*packer, error) {
	buf := bufio.NewWriterSize(w, 256<<10)
	z, err := zstd.NewWriter(buf, zstd.WithEncoderConcurrency(2))
	if err != nil {
		return nil, err
	}
	return &packer{buf: buf, zstd: z, tar: tar.NewWriter(z)}, nil
}

// add writes an entry. If the content is shorter than its size, the rest is filled, so
// that others can follow.
func (p *packer) add(name string, size int64, modified time.Time, write func(io.Writer) error) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: int64(filePerm), ModTime: modified, Format: tar.FormatPAX}
	if err := p.tar.WriteHeader(h); err != nil {
		return err
	}
	counted := &counter{w: p.tar}
	err := write(counted)
	if counted.err != nil {
		return counted.err
	}
	if counted.n < size {
		_, fillErr := io.CopyN(p.tar, zeros{}, size-counted.n)
		err = errors.Join(err, fillErr)
	}
	return err
}

// finish adds the manifest and completes the archive.
func (p *packer) finish(m *manifest) error {
	var size counter
	size.w = io.Discard
	if err := m.write(&size); err != nil {
		return err
	}
	if err := p.add(manifestName, size.n, m.created, m.write); err != nil {
		return err
	}
	p.closed = true
	return errors.Join(p.tar.Close(), p.zstd.Close(), p.buf.Flush())
}

// close gives up an archive that is not finished.
func (p *packer) close() error {
	if p.closed {
		return nil
	}
	p.closed = true
	p.zstd.Reset(io.Discard)
	return p.zstd.Close()
}

type counter struct {
	w   io.Writer
	n   int64
	err error
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	c.err = err
	return n, err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// whole returns a reader of everything in a file.
func whole(f vfs.File) (io.Reader, error) {
	stat, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(f, 0, stat.Size), nil
}
