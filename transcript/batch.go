package transcript

import (
	"context"
	"errors"
	"slices"

	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/store/vfs"
)

// Batch imports small files many at a time. The sessions that they become are
// built in memory and created together when the batch is committed, which costs a
// fraction of creating them one by one. Large files, and sessions that already exist,
// are handled at once, as by Importer.Import. A Batch belongs to one goroutine.
type Batch struct {
	im      *Importer
	logs    store.Batch // nil: nothing waits
	release func()      // releases the blobs that the waiting sessions name
	guard   *clean.Guard
	waiting []*waiting
	ids     map[string]bool // the sessions that wait
	bytes   int64           // of the files that wait
}

// waiting is a file whose sessions are built but not yet created.
type waiting struct {
	run  *run
	ids  []string // the sessions
	err  error    // of reading it
	done func(*Report, error)
}

// Batch returns an empty batch. It must be ended with Commit or Discard.
func (im *Importer) Batch() *Batch { return &Batch{im: im} }

const (
	// maxWaiting is how many files wait at most. Each has an open file.
	maxWaiting = 64
	// maxWaitingBytes bounds what a crash loses, and how long a hold lasts.
	maxWaitingBytes = 8 << 20
)

// IsFull reports whether the batch should be committed.
func (b *Batch) IsFull() bool {
	if b == nil {
		return false
	}
	return len(b.waiting) >= maxWaiting || b.bytes >= maxWaitingBytes || b.logs != nil && b.logs.Len() >= 2*maxWaiting
}

// Import is Importer.Import, except that the outcome may come later: done is called
// with it, now or by Commit. By then what it reports is durable.
func (b *Batch) Import(ctx context.Context, format *Format, f *File, done func(*Report, error)) {
	if done == nil {
		done = func(*Report, error) {}
	}
	if b == nil || b.im == nil || b.im.Store == nil || f == nil {
		done(&Report{}, errMissing("import", "a batch of an importer with a store, and a file"))
		return
	}
	run, report, err := b.im.begin(ctx, format, f)
	switch {
	case run == nil:
		done(report, err)
		return
	case !b.canWait(f):
		done(run.direct(ctx))
		return
	}
	if err := b.open(ctx); err != nil {
		done(report, err)
		return
	}
	run.batch, run.guard = b, b.guard
	w := &waiting{run: run, done: done}
	b.waiting = append(b.waiting, w)
	w.err = run.do(ctx)
	if errors.Is(w.err, errWaits) || ctx.Err() == nil && vfs.NoDescriptors(w.err) {
		// Another file of the batch has part of the same session, or there is no room
		// for more waiting files.
		b.waiting = b.waiting[:len(b.waiting)-1]
		b.Commit(ctx)
		done(run.again().direct(ctx))
		return
	}
	b.bytes += f.info.Size()
}

// canWait reports whether the sessions of a file can wait.
func (b *Batch) canWait(f *File) bool {
	return !b.im.DryRun && f.info != nil && f.info.Size() <= smallFile && b.im.Store.Limits().Logs == 0
}

// open takes a hold on the blobs and reads the list of secrets that must not come back.
func (b *Batch) open(ctx context.Context) (err error) {
	if b.logs != nil {
		return nil
	}
	if b.release, err = b.im.hold(ctx); err != nil {
		return err
	}
	if b.guard, err = clean.LoadGuard(ctx, b.im.Store); err != nil {
		b.release()
		return err
	}
	b.logs, b.ids = b.im.Store.Batch(), make(map[string]bool)
	return nil
}

// Commit creates the sessions that wait and calls done for each file.
func (b *Batch) Commit(ctx context.Context) {
	if b == nil || b.logs == nil {
		return
	}
	errs := b.logs.Commit(ctx)
	b.release() // the sessions name the blobs now, and recheck may have to delete some
	files, guard := b.waiting, b.guard
	b.clear()
	redacted, err := clean.LoadGuard(ctx, b.im.Store)
	var sources []*Source
	for _, w := range files {
		w.checkCreated(ctx, errs)
		if w.err == nil && err == nil && !guard.Knows(redacted) {
			w.err = w.run.recheck(ctx)
		}
		w.err = errors.Join(w.err, err)
		if w.err == nil && w.run.file.dir != "" {
			sources = append(sources, w.run.src)
		}
	}
	err = b.im.Ledger.PutAll(context.WithoutCancel(ctx), sources)
	for _, w := range files {
		if w.err == nil {
			w.err = err
		}
		w.done(w.run.report, w.err)
	}
}

// checkCreated finds out whether the sessions of a file were created. If one was not, the
// file is imported again: another process may have made the session, and then only the
// missing records are added.
func (w *waiting) checkCreated(ctx context.Context, errs map[string]error) {
	failed := slices.ContainsFunc(w.ids, func(id string) bool { return errs[id] != nil })
	if !failed || w.err != nil {
		return
	}
	first := w.run
	w.run = first.again()
	_, w.err = w.run.direct(ctx)
	for i := range w.run.report.Sessions {
		s := &w.run.report.Sessions[i]
		if slices.Contains(w.ids, s.ID) && errs[s.ID] == nil { // it was created a moment ago
			at := slices.IndexFunc(first.report.Sessions, func(o SessionReport) bool { return o.ID == s.ID })
			*s = first.report.Sessions[at]
		}
	}
}

// again is a run for the same file from the start.
func (r *run) again() *run {
	return &run{im: r.im, format: r.format, file: r.file, before: r.before, report: &Report{Path: r.file.Path, Format: r.format.Name}}
}

// Discard gives up what waits. done is not called for it.
func (b *Batch) Discard() {
	if b == nil || b.logs == nil {
		return
	}
	b.logs.Discard()
	b.release()
	b.clear()
}

func (b *Batch) clear() {
	b.logs, b.release, b.guard, b.waiting, b.ids, b.bytes = nil, nil, nil, nil, nil, 0
}

// errWaits says that a session waits to be created by another file of the batch.
var errWaits = errors.New("the session is part of another file, too")

// stage is a store in memory for a session that is not created yet. Its blobs are
// those of the store that the session will be in.
type stage struct {
	*memory.Store
	real store.Store
}

func newStage(real store.Store) *stage {
	limits := real.Limits()
	return &stage{memory.New(&memory.Options{MaxLine: limits.Entry, MaxLog: limits.Log}), real}
}

// Blobs implements store.Store.
func (s *stage) Blobs() store.Blobs { return s.real.Blobs() }

// add gives the session to the batch.
func (s *stage) add(ctx context.Context, b *Batch, name string) error {
	log, err := s.Open(ctx, name)
	if err != nil {
		return err
	}
	defer log.Close()
	err = b.logs.Add(ctx, name, func(yield func([]byte, error) bool) {
		for line, err := range log.Forward(ctx, 0) {
			if !yield(line.Data, err) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	b.ids[name] = true
	last := b.waiting[len(b.waiting)-1]
	last.ids = append(last.ids, name)
	return nil
}
