package file

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coppice-dev/coppice/store"
)

// Copy is a file that has bytes of a log and is not the log: what was removed,
// what was replaced, what was torn off. It is there so that nothing is lost, and
// must be thought of when something has to be.
type Copy struct {
	Name string // the log's
	Kind string // trash, quarantine, backup, or archive (left over beside a plain file)
	Path string
}

// Copies returns the copies of the log of that name, which need not exist any
// more; of all logs if the name is empty.
func (s *Store) Copies(ctx context.Context, name string) ([]Copy, error) {
	if err := s.check(ctx, "list", ""); err != nil {
		return nil, err
	}
	var all []Copy
	for _, place := range []struct {
		kind, dir string
		nameOf    func(file string) (string, bool)
	}{
		{"backup", s.dir, func(file string) (string, bool) { return strings.CutSuffix(file, logSuffix+".bak") }},
		{"archive", s.room("archive"), s.leftover},
		{"trash", s.room("trash"), func(file string) (string, bool) { t, ok := parseTrashed(file); return t.Name, ok }},
		{"quarantine", s.room("quarantine"), func(file string) (string, bool) { q, ok := parseQuarantined(file); return q.Name, ok }},
	} {
		entries, err := s.fs.ReadDir(place.dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, s.fail("list copies", "", err)
		}
		for _, entry := range entries {
			of, ok := place.nameOf(entry.Name())
			if ok && (name == "" || of == name) && entry.Type().IsRegular() && store.CheckName(of) == nil {
				all = append(all, Copy{Name: of, Kind: place.kind, Path: filepath.Join(place.dir, entry.Name())})
			}
		}
	}
	return all, nil
}

// leftover returns the log whose archive a file is, if its plain file counts.
func (s *Store) leftover(file string) (string, bool) {
	name, ok := strings.CutSuffix(file, archiveSuffix)
	if !ok {
		return "", false
	}
	_, err := s.fs.Lstat(s.Path(name))
	return name, err == nil
}

// ReadCopy calls each with the lines of a copy, without their line ends. A last
// line without a line end is one, too.
func (s *Store) ReadCopy(ctx context.Context, c Copy, each func(line []byte) error) error {
	if err := s.check(ctx, "read copy", c.Name); err != nil {
		return err
	}
	return s.failCopy("read copy", c, s.eachCopyLine(ctx, c, func(line []byte, _ bool) error { return each(line) }))
}

// EditCopy replaces the lines of a copy by the results of edit. A crash leaves the old
// content or the new; the old content is not kept.
func (s *Store) EditCopy(ctx context.Context, c Copy, edit func(line []byte) ([]byte, error)) error {
	if err := s.check(ctx, "edit copy", c.Name); err != nil {
		return err
	}
	lock, err := s.lockName(ctx, c.Name)
	if err != nil {
		return s.fail("edit copy", c.Name, err)
	}
	defer lock.release()
	return s.failCopy("edit copy", c, s.publish(c.Path, func(w io.Writer) error {
		write := func(w io.Writer) error {
			return s.eachCopyLine(ctx, c, func(line []byte, whole bool) error {
				line, err := edit(line)
				if err == nil {
					_, err = w.Write(line)
				}
				if err == nil && whole {
					_, err = w.Write(newline)
				}
				return err
			})
		}
		if !strings.HasSuffix(c.Path, ".zst") {
			return write(w)
		}
		return compressWhatIsWritten(w, write)
	}))
}

// compressWhatIsWritten makes an archive of what write writes.
func compressWhatIsWritten(w io.Writer, write func(io.Writer) error) error {
	r, plain := io.Pipe()
	go func() {
		buf := bufio.NewWriter(plain)
		err := write(buf)
		plain.CloseWithError(errors.Join(err, buf.Flush()))
	}()
	err := compressSeekable(w, r)
	r.CloseWithError(errors.New("nobody reads any more")) // so that the writer ends
	return err
}

func (s *Store) eachCopyLine(ctx context.Context, c Copy, each func(line []byte, whole bool) error) (err error) {
	f, err := s.fs.OpenFile(c.Path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return err
	}
	var content io.Reader = io.NewSectionReader(f, 0, stat.Size)
	if strings.HasSuffix(c.Path, ".zst") {
		z, openErr := openSeekable(f, stat.Size)
		if openErr != nil {
			return openErr
		}
		defer z.Close()
		content = io.NewSectionReader(z, 0, z.size)
		defer func() {
			if err == nil && z.isDamaged() {
				err = fmt.Errorf("a part of the archive cannot be read: %w", store.ErrCorrupt)
			}
		}()
	}
	lines := bufio.NewReaderSize(content, wholeChunk)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		last := err != nil
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if last && len(line) == 0 {
			return nil
		}
		if err := each(bytes.TrimSuffix(line, newline), !last); err != nil || last {
			return err
		}
	}
}

func (s *Store) failCopy(op string, c Copy, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return s.fail(op, c.Name, fmt.Errorf("%s: %w", c.Path, err))
}
