package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// raw implements store.Raw: a log with its damaged lines.
type raw struct {
	store *Store
	name  string
	src   source
	stat  vfs.Stat
}

// OpenRaw opens the log of that name, whether it is a plain file or archived.
func (s *Store) OpenRaw(ctx context.Context, name string) (store.Raw, error) {
	r, err := s.openRaw(ctx, name)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (s *Store) openRaw(ctx context.Context, name string) (*raw, error) {
	if err := s.check(ctx, "open", name); err != nil {
		return nil, err
	}
	src, err := s.openSource(name)
	if err != nil {
		return nil, s.fail("open", name, err)
	}
	stat, err := src.Stat()
	if err != nil {
		return nil, errors.Join(s.fail("open", name, err), src.Close())
	}
	return &raw{store: s, name: name, src: src, stat: stat}, nil
}

// Size is how many bytes there are, archived or not.
func (r *raw) Size() int64 { return r.stat.Size }

// ReadAt implements io.ReaderAt.
func (r *raw) ReadAt(p []byte, off int64) (int, error) { return r.src.ReadAt(p, off) }

// Close releases the file.
func (r *raw) Close() error { return r.src.Close() }

// Lines yields the lines. As for a Log, the data of a line is valid until the next one, and a
// line over the limit has only its beginning.
func (r *raw) Lines(ctx context.Context) iter.Seq2[store.RawLine, error] {
	return func(yield func(store.RawLine, error) bool) {
		log := newLog(r.store, r.name, r.src)
		end := store.Pos(r.stat.Size)
		at, more := store.Pos(0), true
		log.forward(ctx, 0, func(line store.Line, err error) bool {
			if err == nil && line.Next > end {
				more = line.Next == end+1 // it has, or had, no line end; otherwise it was appended since
				return false
			}
			at, more = line.Next, yield(store.RawLine{Line: line}, err) && err == nil
			return more
		})
		if more && at < end {
			yield(r.torn(at, end))
		}
	}
}

func (r *raw) torn(at, end store.Pos) (store.RawLine, error) {
	line := store.RawLine{Line: store.Line{Pos: at, Next: end}, Torn: true}
	n := int64(end - at)
	if limit := r.store.opts.MaxLine; n > limit {
		n, line.Cut = min(cutLine, limit), true
	}
	line.Data = make([]byte, n)
	_, err := io.ReadFull(io.NewSectionReader(r.src, int64(at), n), line.Data)
	if err != nil {
		return store.RawLine{}, r.store.fail("read", r.name, err)
	}
	return line, nil
}

// Rewrite replaces the content of the log by the given pieces, if the log is still as it was
// when r was opened; if not, nothing changes and the error matches store.ErrConflict. Rewrite
// keeps the old content in quarantine/ and returns where. A crash leaves the old content or
// the new. An archived log becomes a plain file; an archive that an interrupted archiving
// left beside the plain file goes to quarantine/ too.
//
// Rewriting is for repair. Other handles of the log know positions in the old content. They
// continue in the new content if it begins with every line of the old one; otherwise they get
// store.ErrReplaced from then on.
func (r *raw) Rewrite(ctx context.Context, pieces iter.Seq2[store.Piece, error]) (kept string, err error) {
	err = r.underLock(ctx, func() error {
		kept, err = r.rewriteLocked(ctx, pieces)
		return err
	})
	return kept, err
}

// Replace is Rewrite, but keeps nothing of the old content, in quarantine/ or elsewhere: it
// is for content that must not be kept.
func (r *raw) Replace(ctx context.Context, pieces iter.Seq2[store.Piece, error]) error {
	return r.underLock(ctx, func() error {
		return r.publishPieces(ctx, pieces, func() error { return r.store.discard(r.store.archivePath(r.name)) })
	})
}

// underLock calls change while no other process changes the log, if it is still what
// was read.
func (r *raw) underLock(ctx context.Context, change func() error) error {
	s := r.store
	if err := s.check(ctx, "rewrite", r.name); err != nil {
		return err
	}
	lock, err := s.lockName(ctx, r.name)
	if err != nil {
		return s.fail("rewrite", r.name, err)
	}
	defer lock.release()
	if err = r.mustBeCurrent(); err == nil {
		err = change()
	}
	if err != nil {
		return s.fail("rewrite", r.name, err)
	}
	if s.opts.Sync == Never {
		return nil
	}
	// All of it is on the disk now, even if an earlier sync failed.
	return lock.clearUnsynced()
}

// publishPieces replaces the log's file, and calls then while it cannot be archived.
func (r *raw) publishPieces(ctx context.Context, pieces iter.Seq2[store.Piece, error], then func() error) error {
	_, packed := r.src.(*archived)
	write := func(w io.Writer) error { return r.writePieces(ctx, w, pieces) }
	locked, err := r.store.publishLog(ctx, r.name, packed, write, r.mustBeCurrent)
	if errors.Is(err, fs.ErrExist) {
		return r.errChanged("it was brought back from its archive in the meantime")
	}
	if err != nil {
		return err
	}
	defer closeIf(locked)
	return then()
}

func (r *raw) rewriteLocked(ctx context.Context, pieces iter.Seq2[store.Piece, error]) (string, error) {
	s := r.store
	kept := s.housePath("quarantine", fmt.Sprintf("%s.0.%d.replaced", r.name, time.Now().UnixNano()))
	if err := s.publish(kept, func(w io.Writer) error { return r.copyTo(w, 0, store.Pos(r.stat.Size)) }); err != nil {
		return "", fmt.Errorf("keeping a copy: %w", err)
	}
	return kept, r.publishPieces(ctx, pieces, func() error {
		// From here on the plain file counts, and what may be in archive/ does not.
		if a, packed := r.src.(*archived); packed && !a.isDamaged() {
			return s.discardArchive(r.name, r.stat.File)
		}
		err := s.move(s.archivePath(r.name), kept+".zst")
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	})
}

// mustBeCurrent makes sure, under the lock, that the log has not changed since it was read.
func (r *raw) mustBeCurrent() error {
	now, err := r.store.openSourceLocked(r.name)
	if err != nil {
		return err
	}
	defer now.Close()
	stat, err := now.Stat()
	if err != nil {
		return err
	}
	if stat.File != r.stat.File || stat.Size != r.stat.Size {
		return r.errChanged(fmt.Sprintf("it had %d bytes when it was read and has %d now", r.stat.Size, stat.Size))
	}
	return nil
}

func (r *raw) errChanged(why string) error {
	return &store.Error{Op: "rewrite", Name: r.name, Path: r.store.Path(r.name), Kind: store.ErrConflict, Err: errors.New(why)}
}

func (r *raw) writePieces(ctx context.Context, w io.Writer, pieces iter.Seq2[store.Piece, error]) error {
	for p, err := range pieces {
		if err == nil {
			err = ctx.Err()
		}
		switch {
		case err != nil:
			return err
		case p.Line == nil:
			err = r.copyTo(w, p.From, p.To)
		default:
			err = r.writeLine(w, p.Line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *raw) writeLine(w io.Writer, line []byte) error {
	if err := r.store.checkLine(r.name, line); err != nil {
		return err
	}
	if _, err := w.Write(line); err != nil {
		return err
	}
	_, err := w.Write(newline)
	return err
}

func (r *raw) copyTo(w io.Writer, from, to store.Pos) error {
	if from < 0 || to < from || int64(to) > r.stat.Size {
		return fmt.Errorf("bytes %d to %d of %d: %w", from, to, r.stat.Size, store.ErrInvalid)
	}
	n, err := io.Copy(w, io.NewSectionReader(r.src, int64(from), int64(to-from)))
	if err == nil && n < int64(to-from) {
		err = io.ErrUnexpectedEOF
	}
	return err
}
