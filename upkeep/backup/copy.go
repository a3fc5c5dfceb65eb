package backup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
)

// copier reads a store while others write to it. It takes no lock, so that no writer
// waits for a backup, and a read-only home can be backed up.
//
// A single file is no problem: it is read through one handle, and files are only
// appended to or replaced as a whole. Problems arise between files: a log that is
// archived, removed or restored while the directories are listed is seen twice or not
// at all, and a redacted log may be backed up together with one that is not redacted
// yet. So the store is listed again, until a listing shows every file that was read in
// its place, unchanged but for lines at its end. Files that are no longer in their
// place are dropped, and new files are read, for two rounds: a log that moved while the
// first listing was made is in its place in the second. Anything later is new, and left
// for the next backup, so that writers cannot keep a backup from ending.
//
// If a redaction is running when the last listing begins, the backup waits for it. One
// that begins later has not changed what was read.
//
// Of a log that is damaged in the store, the older backup may have a version of which more lines
// can be read. Then that version stays, and the damaged file goes into the quarantine of the
// backup, because it may have lines that came later. A log that grew by a damaged line is better
// than what it was, and so is one whose end is torn because it is being written to.
type copier struct {
	store    *file.Store
	to       *target
	have     map[string]copiedFile // by path below the store
	copied   int
	written  int64
	progress func(done, total int64)
	done     int64
	total    int64
	list     string // the path of the list of redacted secrets
	doubt    error  // what is wrong with it, if that decided anything
}

// copiedFile is a file that is in the backup.
type copiedFile struct {
	entry
	room  file.Area
	file  vfs.FileID
	seen  int64 // its size in the store
	torn  bool  // it does not end in a whole line
	stale bool  // it changed while it was read
	gone  bool  // it vanished before it was read
	err   error // why it could not be read
	// older is the file of the older backup that is better, and worse says what is wrong with
	// this one: see preferOlder. names are the blobs that older refers to.
	older *entry
	worse string
	names map[store.Ref]bool
}

const (
	maxRounds = 100
	// redactionWait is how long a backup waits for a redaction before it gives up.
	redactionWait = 10 * time.Second
)

func (t *copier) run(ctx context.Context) error {
	for k, err := range t.store.Keep(ctx) {
		if err != nil && k.Below == "" {
			return err
		}
		t.total += k.Size
	}
	if t.to.archive != "" {
		t.total *= 2 // what is read is packed after that
	}
	takeNew := true
	for round := 1; round <= maxRounds; round++ {
		if err := t.awaitRedaction(ctx); err != nil {
			return err
		}
		moved, added, err := t.round(ctx, takeNew)
		if err != nil {
			return err
		}
		if round > 1 && !moved && !added {
			return nil
		}
		takeNew = round == 1 || moved
	}
	return &store.Error{
		Op: "back up", Path: t.store.Where(), Kind: store.ErrLocked,
		Err: errors.New("sessions are archived, removed or rewritten faster than they can be read"), Hint: "try again later",
	}
}

func (t *copier) awaitRedaction(ctx context.Context) error {
	for end := time.Now().Add(redactionWait); ; {
		unfinished, err := clean.Unfinished(ctx, t.store)
		if err != nil || !unfinished {
			return err
		}
		if time.Now().After(end) {
			return &store.Error{
				Op: "back up", Path: t.store.Where(), Kind: store.ErrLocked, Err: errors.New("a redaction is not finished"),
				Hint: "try again when it is; any command that writes finishes one that was interrupted",
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// round lists the store and reads the files that have changed. moved means that a file that was
// read has left its place or has been replaced; added, that something new was read.
func (t *copier) round(ctx context.Context, takeNew bool) (moved, added bool, err error) {
	seen := make(map[string]bool)
	for k, err := range t.store.Keep(ctx) {
		if err != nil && k.Below == "" {
			return false, false, err
		}
		seen[k.Below] = true
		was, known := t.have[k.Below]
		switch {
		case known && t.isStill(k, was):
			continue
		case !known && !takeNew && k.Room != file.AreaBlob:
			continue // a blob may be named by a log that was just read
		}
		now, err := t.copyFile(ctx, k, err)
		if err != nil {
			return false, false, err
		}
		if k.Kind == store.PartNote && k.Name == store.RedactedNote {
			t.list = k.Below
			moved = t.rereadOlder() || moved
		}
		// A note cannot have come from another place.
		moved = moved || known && k.Room != file.AreaNote || now.stale
		added = added || !known && k.Room != file.AreaBlob
	}
	for below, was := range t.have {
		if !seen[below] || was.gone {
			delete(t.have, below)
			moved = moved || was.room != file.AreaNote
		}
	}
	return moved, added, nil
}

// rereadOlder has the logs read again of which the older version is kept, and reports whether there
// are any: a secret was redacted, which the older version may contain.
func (t *copier) rereadOlder() (any bool) {
	for below, was := range t.have {
		if was.older != nil {
			was.stale, any = true, true
			t.have[below] = was
		}
	}
	return any
}

// isStill reports whether a file is what was read, with more lines at most.
func (t *copier) isStill(k file.Kept, was copiedFile) bool {
	if was.err != nil {
		return true // reading it again would not help
	}
	now, err := t.store.StatKept(k)
	if err != nil || was.stale || now.File != was.file {
		return false
	}
	if now.Size == was.seen {
		return k.Modified.Equal(was.Modified)
	}
	return was.room == file.AreaLog && now.Size > was.seen && !was.torn
}

// copyFile reads a file into the backup, or notes why it could not be read.
func (t *copier) copyFile(ctx context.Context, k file.Kept, err error) (now copiedFile, _ error) {
	if err != nil {
		err = &readError{err}
	} else {
		now, err = t.read(ctx, k)
	}
	var unread *readError
	switch {
	case errors.Is(err, store.ErrNotExist):
		now.gone = true // it was there a moment ago: the next round will find it
	case errors.As(err, &unread) && ctx.Err() == nil:
		if now.err = unread.err; !errors.As(unread.err, new(*store.Error)) {
			now.err = &store.Error{Op: "read", Path: k.Place, Err: unread.err}
		}
	case err != nil:
		return now, err
	}
	now.room = k.Room
	t.have[k.Below] = now
	t.done += k.Size
	t.progress(min(t.done, t.total), t.total)
	return now, nil
}

func (t *copier) read(ctx context.Context, k file.Kept) (copiedFile, error) {
	f, err := t.store.OpenKept(k)
	if errors.Is(err, store.ErrNotExist) {
		return copiedFile{}, err
	}
	if err != nil {
		return copiedFile{}, &readError{err}
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return copiedFile{}, &readError{err}
	}
	now := copiedFile{
		entry: entry{Path: k.Below, Size: stat.Size, Modified: k.Modified},
		file:  stat.File,
		seen:  stat.Size,
	}
	if k.Room == file.AreaBlob {
		// Its name is its hash. The backup's content of that hash is right; the store's
		// may be damaged by now.
		if size, ok := t.to.has(ctx, path.Base(k.Below)); ok {
			now.SHA256, now.Size = path.Base(k.Below), size
			return now, nil
		}
	}
	content := &content{ctx: ctx, file: f, size: stat.Size, path: k.Place}
	if err := t.put(k, content, &now); err != nil {
		return copiedFile{}, err
	}
	now.torn = content.torn
	return now, nil
}

// put writes a file into the backup, unless its content is there.
func (t *copier) put(k file.Kept, content *content, now *copiedFile) error {
	sum, err := content.hash()
	if errors.Is(err, io.ErrUnexpectedEOF) { // a torn end was cut off, or the file is being edited
		now.stale, now.SHA256 = true, sum
		return nil
	}
	if err != nil {
		return err
	}
	if err := t.preferOlder(k, content, sum, now); err != nil {
		return err
	}
	if _, ok := t.to.has(content.ctx, sum); ok {
		now.SHA256 = sum
		return nil
	}
	err = t.to.put(content)
	now.SHA256, now.stale = content.sum, errors.Is(err, io.ErrUnexpectedEOF) || content.sum != sum
	if err == nil {
		t.copied++
		t.written += content.size
	}
	if now.stale {
		return nil
	}
	return err
}

// preferOlder notes the version of a log that the older backup has, if the one that was just read
// is damaged and less of it can be read, and why. A version that may have something that was
// redacted since is never kept.
func (t *copier) preferOlder(k file.Kept, c *content, sum string, now *copiedFile) error {
	older := t.to.logs[file.KeptLog(k.Below)]
	if older == nil || older.SHA256 == sum {
		return nil
	}
	is := textOf(k.Below, c.reader(), nil)
	if is.unseen || !is.isDamaged() || c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	guard, err := clean.LoadGuard(c.ctx, t.store)
	if errors.Is(err, store.ErrCorrupt) {
		t.doubt = err
		return nil
	}
	if err != nil {
		return err
	}
	var was *text
	whole, err := t.to.readOld(c.ctx, []entry{*older}, func(e *entry, r io.Reader) error {
		was = textOf(e.Path, r, guard)
		return nil
	})
	if err != nil || len(whole) == 0 || was.secret || was.unseen || was.good <= is.good {
		return err
	}
	if is.head != "" && is.head != was.head {
		return nil // another session had the name
	}
	if whole, err = t.to.keep(c.ctx, nil, *older); err != nil || len(whole) == 0 {
		return err
	}
	now.older, now.names = older, was.names
	now.worse = fmt.Sprintf("%d of its lines can be read, and %d in the older backup", is.good, was.good)
	return nil
}

// keepBlobs keeps the blobs of the older backup that are damaged in the store, and those that the
// store has lost although a log names them.
func (t *copier) keepBlobs(ctx context.Context) error {
	var lack, gone []entry
	for hex, e := range t.to.blobs {
		switch was, ok := t.have[e.Path]; {
		case !ok:
			gone = append(gone, e)
		case was.err != nil || was.SHA256 != hex:
			lack = append(lack, e)
		}
	}
	if len(gone) > 0 {
		named, err := t.named(ctx)
		if err != nil {
			return err
		}
		for _, e := range gone {
			if named[store.Ref("sha256:"+e.SHA256)] {
				lack = append(lack, e)
			}
		}
	}
	if len(lack) == 0 {
		return nil
	}
	guard, err := clean.LoadGuard(ctx, t.store)
	if errors.Is(err, store.ErrCorrupt) {
		t.doubt = err
		return nil
	}
	if err != nil {
		return err
	}
	slices.SortFunc(lack, func(a, b entry) int { return strings.Compare(a.Path, b.Path) })
	kept, err := t.to.keep(ctx, guard, lack...)
	for _, e := range kept {
		t.have[e.Path] = copiedFile{entry: e, room: file.AreaBlob}
	}
	return err
}

// named returns the blobs that the logs in the backup name. It reads all of them.
func (t *copier) named(ctx context.Context) (map[store.Ref]bool, error) {
	if err := t.to.later.wait(); err != nil {
		return nil, err
	}
	names := make(map[store.Ref]bool)
	src := &dirSource{fs: t.to.fs, dir: t.to.dir}
	for below, was := range t.have {
		maps.Copy(names, was.names)
		if was.err != nil || was.room == file.AreaBlob {
			continue
		}
		r, err := src.open(&was.entry)
		if err != nil {
			return nil, errors.Join(err, src.close())
		}
		from := &reader{ctx: ctx, at: r, sum: io.Discard}
		_ = file.KeptLines(below, from, func(line []byte, _ bool) error { // what cannot be unpacked names nothing
			eachBlob(line, func(ref store.Ref) { names[ref] = true })
			return nil
		})
		if err := cmp.Or(from.failed, ctx.Err()); err != nil {
			return nil, errors.Join(err, src.close())
		}
	}
	return names, src.close()
}

func (t *copier) manifest() *manifest {
	m := &manifest{created: time.Now().UTC().Truncate(time.Millisecond)}
	for _, was := range t.have {
		e := was.entry
		if was.older != nil {
			m.files = append(m.files, *was.older)
			e.Path = file.KeptAside(e.Path, e.Modified)
		}
		if was.err == nil {
			m.files = append(m.files, e)
		}
	}
	m.sort()
	return m
}

func (t *copier) result(m *manifest) *Result {
	r := &Result{Created: m.created, Files: len(m.files), Size: m.size(), Copied: t.copied, Written: t.written, Mended: len(t.to.rotten), Unread: []Fault{}}
	for i := range m.files {
		if file.KeptLog(m.files[i].Path) != "" {
			r.Sessions++
		}
	}
	for below, was := range t.have {
		switch fault := (Fault{Path: below, Session: file.KeptLog(below)}); {
		case was.err != nil:
			fault.Why = was.err.Error()
			r.Unread = append(r.Unread, fault)
		case was.older != nil:
			fault.Why = was.worse
			r.Older = append(r.Older, fault)
		}
	}
	if t.doubt != nil {
		r.Damaged = append(r.Damaged, Fault{Path: t.list, Why: t.doubt.Error()})
	}
	for _, faults := range [][]Fault{r.Unread, r.Older} {
		slices.SortFunc(faults, func(a, b Fault) int { return strings.Compare(a.Path, b.Path) })
	}
	return r
}

// readError says that a file of the store could not be read: the others can.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// content is the bytes of a file as they were at one moment.
type content struct {
	ctx  context.Context
	file vfs.File
	from io.Reader // instead of the file, for once
	size int64
	path string
	sum  string // of what was read last
	torn bool
}

// hash reads the content and returns its hash.
func (c *content) hash() (string, error) {
	err := c.copyTo(io.Discard)
	return c.sum, err
}

// reader returns a reader of the content.
func (c *content) reader() io.Reader {
	if c.from != nil {
		return c.from
	}
	return io.NewSectionReader(c.file, 0, c.size)
}

// copyTo writes the content. An error of the store is a readError.
func (c *content) copyTo(w io.Writer) error {
	sum := sha256.New()
	from := &reader{ctx: c.ctx, at: c.reader(), sum: sum}
	n, err := io.Copy(w, from)
	c.sum, c.torn = hex.EncodeToString(sum.Sum(nil)), n > 0 && from.last != '\n'
	if err == nil && n < c.size {
		err = fmt.Errorf("%s: %w", c.path, io.ErrUnexpectedEOF)
	}
	return err
}

// reader reads a file of the store.
type reader struct {
	ctx  context.Context
	at   io.Reader
	sum  io.Writer
	n    int64
	last byte
	// failed is why it could not be read.
	failed error
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.at.Read(p)
	if n > 0 {
		r.sum.Write(p[:n])
		r.n += int64(n)
		r.last = p[n-1]
	}
	if err != nil && !errors.Is(err, io.EOF) {
		r.failed = err
		err = &readError{err}
	}
	return n, err
}
