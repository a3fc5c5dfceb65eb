package transcript

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
)

// The custom entries that an import leaves in a session. They are not part of the
// conversation.
const (
	// CustomImport says where a piece of the source is kept: see Raw.
	CustomImport = session.CustomImport
	// CustomFidelity says what the source's records became.
	CustomFidelity = session.CustomFidelity
)

// Importer brings the conversations of files into a store.
type Importer struct {
	Store store.Store
	// Options are those of the sessions.
	Options session.Options
	// Ledger remembers the files. Default: none, and every file is read whole.
	Ledger *Ledger
	// DryRun looks at what would be added, and writes nothing.
	DryRun bool
	// Again reads every file from its beginning, even if it did not change.
	Again bool
	// Clean, if it is set, removes what must not be kept, such as secrets. It gets
	// lines of the source, whole documents, and entries as JSON, and must return valid
	// JSON for JSON. Files are then always read from the beginning.
	Clean func(raw []byte) []byte
	// DropDerived is clean.Options.DropDerived. It is called if something was redacted
	// during an import that had brought it in again: an index may have it by then.
	DropDerived func(ctx context.Context) error
	// Elsewhere is clean.Options.Elsewhere, for a Store on another machine.
	Elsewhere func(ctx context.Context, sessions []string) error
	// Now returns the time. Default: time.Now.
	Now func() time.Time
	// Progress, if it is set, is called with how many more bytes were read.
	Progress func(n int64)
}

func (im *Importer) now() time.Time {
	if im.Now != nil {
		return im.Now()
	}
	return time.Now()
}

// SessionID returns the id of the session that a conversation of a format
// becomes; native is the conversation's own id, or its family.
func SessionID(format, native string) string { return HashID("session", format, native) }

// Import imports a file of a format. What was imported before is not imported again: if
// a file grew, its new records are added; if it was rewritten, the changed records are
// added as further branches. If it fails half-way, what was imported so far stays, and
// importing again adds the rest. A nil format, which all.Detect returns for an unknown
// file, is ErrInvalid.
func (im *Importer) Import(ctx context.Context, format *Format, f *File) (report *Report, err error) {
	if im == nil || im.Store == nil || f == nil {
		return &Report{}, errMissing("import", "an importer with a store, and a file")
	}
	b := im.Batch()
	defer b.Discard()
	b.Import(ctx, format, f, func(r *Report, failed error) { report, err = r, failed })
	b.Commit(ctx)
	return report, errors.Join(err, im.Ledger.Flush(context.WithoutCancel(ctx)))
}

// begin prepares the import of a file. If there is nothing to import, it returns a nil
// run.
func (im *Importer) begin(ctx context.Context, format *Format, f *File) (*run, *Report, error) {
	report := &Report{Path: f.Path}
	if err := format.check("import", f.Path, canRead); err != nil {
		return nil, report, err
	}
	report.Format = format.Name
	before := im.Ledger.Get(ctx, f.Path)
	if im.isUnchanged(ctx, before, format, f) {
		report.Unchanged = true
		return nil, report, nil
	}
	return &run{im: im, format: format, file: f, before: before, report: report}, report, nil
}

// direct imports into sessions of the store as it goes.
func (r *run) direct(ctx context.Context) (*Report, error) {
	release, err := r.im.hold(ctx)
	if err != nil {
		return r.report, err
	}
	defer release()
	// A secret that was redacted once never comes back, even if the source still has it. The
	// list is read for each file: with watched files, a redaction may have happened since the
	// last.
	if r.guard, err = clean.LoadGuard(ctx, r.im.Store); err != nil {
		return r.report, err
	}
	// The ledger names blobs of earlier imports. It is read under the hold, because
	// blobs that it named earlier may have been deleted.
	r.before = r.im.Ledger.Get(ctx, r.file.Path)
	err = r.do(ctx)
	release() // the sessions name them now; and recheck may have to delete some
	if err != nil || r.im.DryRun {
		return r.report, err
	}
	if err := r.recheck(ctx); err != nil || r.file.dir == "" {
		return r.report, err
	}
	return r.report, r.im.Ledger.Put(ctx, r.src)
}

// recheck cleans the sessions again if something was redacted while they were filled:
// we may have written it again, unseen by the redaction.
func (r *run) recheck(ctx context.Context) error {
	if len(r.src.Sessions) == 0 {
		return nil
	}
	return r.guard.Recheck(ctx, r.im.Store, clean.Options{Sessions: r.src.Sessions, DropDerived: r.im.DropDerived, Elsewhere: r.im.Elsewhere})
}

// isUnchanged reports whether the file is as the ledger describes it.
func (im *Importer) isUnchanged(ctx context.Context, known *Source, format *Format, f *File) bool {
	if known == nil || known.Format != format.Name || im.Again {
		return false
	}
	info, err := f.stat()
	if err != nil || known.unchanged(info) {
		return err == nil
	}
	// A file that was written just before it was imported may have changed without
	// showing it. If it did not, a session that was removed since stays removed.
	if !known.Modified.IsZero() || known.Size != info.Size() || !f.has(known.Chunks, known.Size) {
		return false
	}
	if known.stamp(info, im.now()); !known.Modified.IsZero() && !im.DryRun {
		_ = im.Ledger.Put(ctx, known) // so that the next import need not read the file; if this fails, it will
	}
	return true
}

// has reports whether a file still has the bytes that were kept.
func (f *File) has(chunks []Kept, size int64) bool {
	at := int64(0)
	for i := range chunks {
		c := &chunks[i]
		if c.From >= keptSpace {
			continue // of another file beside it
		}
		if c.From != at {
			return false
		}
		if !f.still(c) {
			return false
		}
		at += c.Len
	}
	return at == size
}

// still reports whether the file has the same bytes where a chunk of it was.
func (f *File) still(c *Kept) bool {
	in, err := f.openAt(c.From)
	if err != nil {
		return false
	}
	raw := make([]byte, c.Len)
	_, err = io.ReadFull(in, raw)
	return errors.Join(err, in.Close()) == nil && sumOf(raw) == c.Sum
}

// hold keeps blobs from being deleted. It is taken before the ledger is read, which
// names blobs of earlier imports, and released when the sessions name all blobs.
func (im *Importer) hold(ctx context.Context) (release func(), err error) {
	if im.DryRun {
		return func() {}, nil
	}
	return im.Store.Blobs().Hold(ctx)
}

// stat describes the file, if it is one, as it was before it was read: anything written to it
// later must look like a change.
func (f *File) stat() (fs.FileInfo, error) {
	if f.info == nil {
		return nil, fs.ErrNotExist
	}
	return f.info, nil
}

// run is the import of one file.
type run struct {
	im     *Importer
	format *Format
	file   *File
	before *Source // the ledger's line about the file, or nil
	src    *Source // what the ledger will know
	report *Report
	guard  *clean.Guard // secrets that must not come back; nil if none
	batch  *Batch       // the batch for new sessions; nil: they are made at once
}

// do reads and writes, at the same time if the file is large.
func (r *run) do(ctx context.Context) error {
	r.src = &Source{Path: r.file.Path, Format: r.format.Name}
	if b := r.before; b != nil && (b.Format == r.format.Name || b.Exported != "") {
		r.src.Exported, r.src.Native, r.src.Wrote = b.Exported, b.Native, b.Wrote
	}
	if info, err := r.file.stat(); err == nil {
		r.src.stamp(info, r.im.now())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	from := r.resumable(ctx)
	var kept []Kept
	if r.before != nil {
		kept = r.before.Chunks
	}
	// The ledger only remembers: a blob that was lost or damaged since is kept again.
	intact := func(ref store.Ref) bool {
		_, err := r.im.Store.Blobs().Get(ctx, ref)
		return err == nil
	}
	s := &sink{
		ctx: ctx, keeper: newKeeper(from, kept, r.guard, intact), rows: newKeeper(keptSpace, kept, r.guard, intact),
		out: make(chan *parcel, 1), stopped: make(chan struct{}), tallies: make(map[string]*tally),
	}
	if from > 0 {
		s.saved.pos, s.saved.lines, s.saved.state = from, r.before.Line, r.before.State
		r.src.Chunks = r.before.keptUpTo(from)
	}
	r.file.tap, r.file.clean, s.clean = s.keeper, r.im.Clean, r.im.Clean
	w := &writer{run: r, ctx: ctx, targets: make(map[string]*target), families: make(map[string]*target)}
	if r.batch != nil { // another goroutine would cost more than it saves
		s.write = w.writeParcel
		close(s.stopped)
	} else {
		go func() {
			defer close(s.stopped)
			s.failed = w.work(s.out)
			if s.failed != nil {
				cancel() // also ends a reader that waits for something else
			}
		}()
	}
	err := r.format.Read(ctx, r.file, s)
	err = errors.Join(err, s.finish())
	close(s.out)
	<-s.stopped
	s.keeper.done.Wait()
	s.rows.done.Wait()
	r.file.tap, r.file.clean = nil, nil
	if s.failed != nil {
		err = s.failed // the reader's error is only its echo
	}
	r.report.Bytes = min(s.keeper.from, 1<<60) - from
	if s.save.state != nil && r.im.Clean == nil && bytes.Equal(r.guard.JSON(s.save.state), s.save.state) {
		r.src.At, r.src.Line, r.src.State = s.save.pos, s.save.lines, s.save.state
	}
	return errors.Join(err, w.finish(s.tallies, err == nil))
}

// resumable returns the position from which reading a grown file can continue, or 0.
// Its sessions must exist, and the end of the part that was read must be unchanged.
func (r *run) resumable(ctx context.Context) int64 {
	b := r.before
	if b == nil || r.im.Clean != nil || r.im.Again || b.Format != r.format.Name || b.State == nil || b.At == 0 || len(b.Sessions) == 0 {
		return 0
	}
	for _, id := range b.Sessions {
		log, err := r.im.Store.Open(ctx, id)
		if err != nil {
			return 0
		}
		if log.Close() != nil {
			return 0
		}
	}
	if !r.sameEnd(b) {
		return 0
	}
	return b.At
}

// sameEnd reports whether the last few megabytes before the reader's position are
// unchanged.
func (r *run) sameEnd(b *Source) bool {
	end := b.At
	for i := len(b.Chunks) - 1; i >= 0 && b.At-end < chunkSize; i-- {
		c := &b.Chunks[i]
		if c.From >= keptSpace || c.From+c.Len != end {
			continue
		}
		if !r.file.still(c) {
			return false
		}
		end = c.From
	}
	return end < b.At
}
