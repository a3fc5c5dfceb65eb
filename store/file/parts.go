package file

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// parts is every regular file of a store. The place of a part is the path of its file.
type parts struct{ *Store }

// Parts implements store.Store.
func (s *Store) Parts() store.Parts { return parts{s} }

// Where implements store.Parts.
func (s parts) Where(kind store.PartKind, name string) string {
	switch digits, isRef := store.Ref(name).Hex(); {
	case kind == store.PartLog:
		return s.Path(name)
	case kind == store.PartNote:
		return s.housePath(filepath.FromSlash(name))
	case kind == store.PartBlob && isRef:
		return blobs{s.Store}.path(digits)
	}
	return ""
}

// at returns what a file is, by its path.
func (s parts) at(path string) store.Part {
	below := s.below(path)
	room, name := areaOf(below)
	p := store.Part{Kind: store.PartOther, Name: name, Place: path}
	switch room {
	case AreaLog, AreaArchive:
		if p.Kind = store.PartLog; name == "" {
			p.Kind = store.PartOther // it is only beside them
		} else if strings.HasSuffix(below, ".bak") {
			p.Kind = store.PartCopy
		}
	case AreaTrash, AreaQuarantine:
		p.Kind = store.PartCopy
	case AreaBlob:
		p.Kind = store.PartBlob
		if ref := store.Ref("sha256:" + filepath.Base(path)); s.Where(store.PartBlob, string(ref)) == path {
			p.Name = string(ref)
		}
	case AreaNote:
		p.Kind, p.Name = store.PartNote, strings.TrimPrefix(below, house+"/")
	case AreaTemp:
		p.Kind = store.PartTemp
	case AreaIndex:
		p.Kind = store.PartIndex
	}
	return p
}

// All implements store.Parts.
func (s parts) All(ctx context.Context) iter.Seq2[store.Part, error] {
	return func(yield func(store.Part, error) bool) {
		if err := s.check(ctx, "list", ""); err != nil {
			yield(store.Part{}, err)
			return
		}
		s.in(ctx, s.dir, func(string) bool { return true }, yield)
	}
}

// in yields the parts in a directory and in those below it that into wants, and reports whether
// to go on.
func (s parts) in(ctx context.Context, dir string, into func(dir string) bool, yield func(store.Part, error) bool) bool {
	entries, err := s.fs.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		yield(store.Part{}, s.fail("list", "", err))
		return false
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if into(path) && !s.in(ctx, path, into, yield) {
				return false
			}
		case e.Type().IsRegular():
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			p := s.at(path)
			if err == nil {
				p.Size, p.Modified = info.Size(), info.ModTime()
			}
			if !yield(p, err) {
				return false
			}
		}
	}
	return true
}

// Copies implements store.Parts.
func (s parts) Copies(ctx context.Context, name string) ([]store.Part, error) {
	if err := s.check(ctx, "list", ""); err != nil {
		return nil, err
	}
	var all []store.Part
	for _, place := range []struct {
		dir    string
		nameOf func(file string) (string, bool)
	}{
		{s.dir, func(file string) (string, bool) { return strings.CutSuffix(file, logSuffix+".bak") }},
		{s.housePath("archive"), s.leftover},
		{s.housePath("trash"), func(file string) (string, bool) { t, ok := parseTrashed(file); return t.Name, ok }},
		{s.housePath("quarantine"), func(file string) (string, bool) { q, ok := parseQuarantined(file); return q.Name, ok }},
	} {
		entries, err := s.fs.ReadDir(place.dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, s.fail("list copies", "", err)
		}
		for _, entry := range entries {
			of, ok := place.nameOf(entry.Name())
			if ok && (name == "" || of == name) && entry.Type().IsRegular() && store.CheckName(of) == nil {
				all = append(all, store.Part{Kind: store.PartCopy, Name: of, Place: filepath.Join(place.dir, entry.Name())})
			}
		}
	}
	return all, nil
}

// leftover returns the log of an archive that does not count because the log has a plain
// file.
func (s parts) leftover(file string) (string, bool) {
	name, ok := strings.CutSuffix(file, archiveSuffix)
	if !ok {
		return "", false
	}
	_, err := s.fs.Lstat(s.Path(name))
	return name, err == nil
}

// Open implements store.Parts.
func (s parts) Open(ctx context.Context, p store.Part) (io.ReadCloser, error) {
	if err := s.check(ctx, "list", ""); err != nil {
		return nil, err
	}
	file, err := s.fs.OpenFile(p.Place, os.O_RDONLY, 0)
	if err != nil {
		return nil, s.failPart("read", p, err)
	}
	stat, err := file.Stat()
	if err != nil {
		return nil, errors.Join(s.failPart("read", p, err), file.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(file, 0, stat.Size), file}, nil
}

// Lines implements store.Parts.
func (s parts) Lines(ctx context.Context, p store.Part) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		if p.Kind != store.PartLog {
			s.copyLines(ctx, p, yield)
			return
		}
		log, err := s.OpenRaw(ctx, p.Name)
		if err != nil {
			yield(store.Line{}, err)
			return
		}
		defer log.Close()
		for line, err := range log.Lines(ctx) {
			if !yield(line.Line, err) {
				return
			}
		}
		if r, ok := log.(*raw); ok {
			if z, packed := r.src.(*archived); packed && z.hasLost() { // a search that misses something must say so
				yield(store.Line{}, s.failPart("read", p, errPartOfArchive))
			}
		}
	}
}

var (
	errEnough        = errors.New("no more is wanted")
	errPartOfArchive = fmt.Errorf("a part of the archive cannot be read: %w", store.ErrCorrupt)
)

func (s parts) copyLines(ctx context.Context, p store.Part, yield func(store.Line, error) bool) {
	err := s.checkEdit(ctx, "read", p)
	at := store.Pos(0)
	if err == nil {
		err = s.eachLine(ctx, p, func(data []byte, whole bool) error {
			line := store.Line{Data: data, Pos: at, Next: at + store.Pos(len(data)) + 1}
			if at = line.Next; !yield(line, nil) {
				return errEnough
			}
			return nil
		})
	}
	if err != nil && err != errEnough {
		yield(store.Line{}, s.failPart("read", p, err))
	}
}

// checkEdit refuses a part without lines that can be edited.
func (s parts) checkEdit(ctx context.Context, op string, p store.Part) error {
	switch p.Kind {
	case store.PartLog, store.PartCopy, store.PartNote:
		return s.check(ctx, "list", "")
	}
	return &store.Error{Op: op, Path: p.Place, Kind: store.ErrInvalid, Err: fmt.Errorf("a part of the kind %q has no lines to edit", p.Kind)}
}

// Edit implements store.Parts.
func (s parts) Edit(ctx context.Context, p store.Part, edit func(line []byte) ([]byte, error)) error {
	if err := s.checkEdit(ctx, "edit", p); err != nil {
		return err
	}
	name := p.Name
	switch p.Kind {
	case store.PartLog:
		return s.editLog(ctx, name, edit)
	case store.PartNote:
		name = notesLock
	}
	lock, err := s.lockName(ctx, name)
	if err != nil {
		return s.fail("edit", p.Name, err)
	}
	defer lock.release()
	return s.failPart("edit", p, s.publish(p.Place, func(w io.Writer) error {
		write := func(w io.Writer) error {
			return s.eachLine(ctx, p, func(line []byte, whole bool) error {
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
		if !strings.HasSuffix(p.Place, ".zst") {
			return write(w)
		}
		return compressWhatIsWritten(w, write)
	}))
}

// editLog is Edit of a log, which stays archived if it is.
func (s parts) editLog(ctx context.Context, name string, edit func(line []byte) ([]byte, error)) (err error) {
	raw, err := s.openRaw(ctx, name)
	if err != nil {
		return err
	}
	err = errors.Join(raw.Replace(ctx, edited(raw.Lines(ctx), edit)), raw.Close())
	if _, packed := raw.src.(*archived); packed && err == nil {
		err = s.Archive(ctx, name)
	}
	return err
}

// edited yields the new content of a log. Unchanged lines come in large pieces.
func edited(lines iter.Seq2[store.RawLine, error], edit func(line []byte) ([]byte, error)) iter.Seq2[store.Piece, error] {
	return func(yield func(store.Piece, error) bool) {
		var same store.Piece // what is copied unchanged
		for line, err := range lines {
			var data []byte
			if err == nil && !line.Cut {
				data, err = edit(line.Data)
			}
			switch {
			case err != nil:
				yield(store.Piece{}, err)
				return
			case line.Cut || bytes.Equal(data, line.Data):
				same.To = line.Next
				continue
			case same.To > same.From && !yield(same, nil), !yield(store.Piece{Line: append([]byte{}, data...)}, nil):
				return
			}
			same = store.Piece{From: line.Next, To: line.Next}
		}
		if same.To > same.From {
			yield(same, nil)
		}
	}
}

// Remove implements store.Parts.
func (s parts) Remove(ctx context.Context, p store.Part) error {
	if err := s.check(ctx, "list", ""); err != nil {
		return err
	}
	info, err := s.fs.Lstat(p.Place)
	switch {
	case p.Kind != store.PartTemp:
		err = store.ErrInvalid
	case err == nil && time.Since(info.ModTime()) < store.StaleAfter:
		err = store.ErrLocked
	case err == nil:
		err = s.discard(p.Place)
	}
	return s.failPart("remove", p, err)
}

// compressWhatIsWritten compresses what write writes into an archive.
func compressWhatIsWritten(w io.Writer, write func(io.Writer) error) error {
	r, plain := io.Pipe()
	go func() {
		buf := bufio.NewWriter(plain)
		err := write(buf)
		plain.CloseWithError(errors.Join(err, buf.Flush()))
	}()
	err := compressSeekable(w, r)
	r.CloseWithError(errors.New("the reader has ended")) // so that the writer ends
	return err
}

func (s parts) eachLine(ctx context.Context, p store.Part, each func(line []byte, whole bool) error) (err error) {
	f, err := s.fs.OpenFile(p.Place, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return err
	}
	var content io.Reader = io.NewSectionReader(f, 0, stat.Size)
	if strings.HasSuffix(p.Place, ".zst") {
		z, openErr := openSeekable(f, stat.Size)
		if openErr != nil {
			return openErr
		}
		defer z.Close()
		content = io.NewSectionReader(z, 0, z.size)
		defer func() {
			if err == nil && z.hasLost() {
				err = errPartOfArchive
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

func (s parts) failPart(op string, p store.Part, err error) error {
	var done *store.Error
	if err == nil || errors.Is(err, context.Canceled) || errors.As(err, &done) {
		return err
	}
	e := &store.Error{Op: op, Name: p.Name, Path: p.Place, Err: err}
	for _, kind := range []error{store.ErrNotExist, store.ErrInvalid, store.ErrLocked, store.ErrCorrupt} {
		if errors.Is(err, kind) || kind == store.ErrNotExist && errors.Is(err, fs.ErrNotExist) {
			e.Kind = kind
		}
	}
	return e
}
