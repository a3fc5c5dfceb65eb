package upkeep

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// logCopier copies logs one after the other. New ones wait in a batch until there are enough of
// them:
//
//	copyAll ─▶ copyOne ─┬─▶ begin    a new log: its first lines go into the batch
//	                    ├─▶ commit   the batch is full: creates all, complete appends the rest of each
//	                    └─▶ update   there is a copy: updateOnce compares, appends or redacts
//
// Other programs may change a log or its copy at any time. The store notices that (isMoved), and
// then update compares the two from the start, at most maxTries times. While lines are written,
// a hold keeps the blobs that they name.
type logCopier struct {
	*copier
	pair    pair
	batch   store.Batch
	waiting []*newLog
	size    int // bytes in the batch
	blobs   *heldBlobs
}

// newLog is a log that the copy does not have, with its first lines.
type newLog struct {
	stat  store.Stat
	lines *reader
	begin chunk
}

const (
	// chunkSize is how many bytes are appended at a time, and maxBatch how many logs are
	// created together. It is less than a store in a database keeps in memory, which would write
	// a draft for more, and leave that behind if we were killed.
	chunkSize = 2 << 20
	maxBatch  = 256
	// maxTries is how often a log is begun again because others rewrite it meanwhile.
	maxTries = 5
)

// copyAll copies the logs from a channel.
func (w *logCopier) copyAll(ctx context.Context, next <-chan store.Stat) error {
	w.batch = w.pair.to.Batch()
	defer w.batch.Discard()
	defer w.releaseBlobs()
	defer w.closeWaiting()
	for stat := range next {
		if err := w.copyOne(ctx, stat); err != nil {
			return err
		}
	}
	return w.commit(ctx)
}

// closeWaiting closes the logs of a batch that is not created.
func (w *logCopier) closeWaiting() {
	for _, a := range w.waiting {
		a.lines.close()
	}
	w.waiting = nil
}

// holdBlobs makes sure that no blob of the store is deleted until release.
func (w *logCopier) holdBlobs(ctx context.Context) (err error) {
	if w.blobs == nil {
		w.blobs, err = w.copier.holdBlobs(ctx)
	}
	return err
}

func (w *logCopier) releaseBlobs() {
	if w.blobs != nil {
		w.blobs.release()
		w.blobs = nil
	}
}

// copyOne copies a log, or puts it into the batch.
func (w *logCopier) copyOne(ctx context.Context, stat store.Stat) error {
	if err := w.holdBlobs(ctx); err != nil {
		return err
	}
	waits, err := w.begin(ctx, stat)
	switch {
	case errors.Is(err, store.ErrExist):
		err = w.update(ctx, stat, false)
	case err != nil:
		err = w.recordOutcome(ctx, w.pair, stat.Name, err, changesMade{})
	case waits && (w.size >= chunkSize || len(w.waiting) >= maxBatch):
		return w.commit(ctx)
	}
	if len(w.waiting) == 0 {
		w.releaseBlobs()
	}
	return err
}

// begin puts a new log into the batch. If there is a copy already, the error is ErrExist.
func (w *logCopier) begin(ctx context.Context, stat store.Stat) (waits bool, err error) {
	if _, err := w.pair.to.Stat(ctx, stat.Name); err == nil || w.pair.trash {
		return false, store.ErrExist
	} else if !errors.Is(err, store.ErrNotExist) {
		return false, err
	}
	log, err := w.pair.from.Open(ctx, stat.Name)
	if err != nil {
		return false, ignoreNotExist(err)
	}
	a := &newLog{stat: stat}
	if a.lines, err = w.readFrom(ctx, log, 0); err != nil {
		log.Close()
		return false, ignoreNotExist(err)
	}
	if a.begin, err = a.lines.chunk(); err == nil {
		err = w.admit(ctx, a.begin.lines)
	}
	if err == nil {
		err = w.batch.Add(ctx, stat.Name, store.Lines(a.begin.lines...))
	}
	if err != nil {
		a.lines.close()
		return false, err
	}
	w.waiting = append(w.waiting, a)
	w.size += a.begin.size
	return true, nil
}

// ignoreNotExist is for logs that are removed while they are copied.
func ignoreNotExist(err error) error {
	if errors.Is(err, store.ErrNotExist) {
		return nil
	}
	return err
}

// commit creates the logs that wait, and appends the rest of each.
func (w *logCopier) commit(ctx context.Context) error {
	defer w.releaseBlobs()
	waiting := w.waiting
	w.waiting, w.size = nil, 0
	errs := w.batch.Commit(ctx)
	var failed error
	for _, a := range waiting {
		err := errs[a.stat.Name]
		created := err == nil
		if failed == nil {
			if created {
				err = w.complete(ctx, a)
			}
			switch {
			case err == nil:
				failed = w.finish(ctx, a.stat, changesMade{created: true, damaged: a.lines.damaged})
			case isMoved(err) || errors.Is(err, store.ErrExist):
				failed = w.update(ctx, a.stat, created)
			default:
				failed = w.recordOutcome(ctx, w.pair, a.stat.Name, err, changesMade{})
			}
		}
		a.lines.close()
	}
	return failed
}

// complete reads back the first lines of a new copy, and appends the rest.
func (w *logCopier) complete(ctx context.Context, a *newLog) error {
	log, err := w.pair.to.Open(ctx, a.stat.Name)
	if err != nil {
		return err
	}
	defer log.Close()
	at, err := w.readBack(ctx, log, 0, a.begin)
	if err != nil {
		return err
	}
	return w.appendRest(ctx, a.lines, log, at)
}

// isMoved reports whether it makes sense to look again, because a log was changed by others.
func isMoved(err error) bool {
	return errors.Is(err, store.ErrReplaced) || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnknown)
}

// finish archives the copy of an archived log.
func (w *logCopier) finish(ctx context.Context, stat store.Stat, did changesMade) error {
	var err error
	if archiver, ok := store.As[store.Archiver](w.pair.to); ok && stat.Archived && !w.pair.trash {
		err = archiver.Archive(ctx, stat.Name)
	}
	return w.recordOutcome(ctx, w.pair, stat.Name, err, did)
}

// update brings an existing copy up to date.
func (w *logCopier) update(ctx context.Context, stat store.Stat, created bool) error {
	did := changesMade{created: created}
	for try := 1; ; try++ {
		done, err := w.updateOnce(ctx, stat, &did)
		switch {
		case done && err == nil:
			return w.finish(ctx, stat, did)
		case errors.Is(err, store.ErrNotExist): // removed meanwhile
			return nil
		case err != nil && !isMoved(err):
			return w.recordOutcome(ctx, w.pair, stat.Name, err, did)
		case try == maxTries:
			err = cmp.Or(err, differs("it changes again and again"))
			return w.recordOutcome(ctx, w.pair, stat.Name, err, did)
		}
	}
}

// updateOnce compares a log with its copy and takes the next step. It is done if they were found
// to be the same.
func (w *logCopier) updateOnce(ctx context.Context, stat store.Stat, did *changesMade) (done bool, err error) {
	ours, err := w.pair.from.Open(ctx, stat.Name)
	if err != nil {
		return false, err
	}
	defer ours.Close()
	theirs, err := w.pair.to.Open(ctx, stat.Name)
	if w.pair.trash && errors.Is(err, store.ErrNotExist) {
		did.created = true
		return true, w.moveToTrash(ctx, stat.Name, ours)
	}
	if err != nil {
		return false, err
	}
	defer theirs.Close()
	s, err := w.compare(ctx, ours, theirs)
	switch {
	case err != nil:
		return false, err
	case s.differ && w.isRedacted(s):
		did.replaced = true
		return false, w.replace(ctx, stat.Name, ours)
	case s.differ:
		return false, differs("line %d differs", s.same+1)
	case s.ahead:
		return false, differs("the copy has entries after line %d that the original does not have", s.same)
	case s.behind && w.pair.trash:
		return false, differs("the copy ends after line %d", s.same)
	case s.behind:
		did.grown = true
		lines, err := w.readFrom(ctx, ours, s.from)
		if err != nil {
			return false, err
		}
		defer lines.close()
		err = w.appendRest(ctx, lines, theirs, s.to)
		did.damaged += lines.damaged
		return true, err
	}
	return true, nil
}

// comparison says how far a log and its copy are the same.
type comparison struct {
	same         int       // lines
	from, to     store.Pos // where these end
	behind       bool      // the copy has no more
	ahead        bool      // the copy has more
	differ       bool      // the next lines differ
	ours, theirs []byte    // these lines
}

// compare reads a log and its copy side by side, with the blobs that their lines name.
func (w *logCopier) compare(ctx context.Context, ours, theirs store.Log) (s comparison, err error) {
	end, err := ours.End(ctx)
	if err != nil {
		return s, err
	}
	next, stop := iter.Pull2(theirs.Forward(ctx, 0))
	defer stop()
	for line, err := range ours.Forward(ctx, 0) {
		if err == nil && line.Pos < end {
			err = checkWhole(line)
		}
		if err != nil {
			return s, err
		}
		if line.Pos >= end {
			break
		}
		other, err, more := next()
		switch {
		case err != nil:
			return s, err
		case !more:
			s.behind = true
			return s, nil
		case !bytes.Equal(line.Data, other.Data) || other.Cut:
			s.differ, s.ours, s.theirs = true, bytes.Clone(line.Data), bytes.Clone(other.Data)
			return s, nil
		}
		if err := w.blobs.copyNamed(ctx, line.Data); err != nil {
			return s, err
		}
		w.reportProgress(len(line.Data) + 1)
		s.same, s.from, s.to = s.same+1, line.Next, other.Next
	}
	_, err, s.ahead = next()
	return s, err
}

// checkWhole returns an error for a line that cannot be copied because only its beginning can be
// read.
func checkWhole(line store.Line) error {
	if !line.Cut {
		return nil
	}
	return &store.Error{
		Op: "copy", Offset: int64(line.Pos), At: true, Kind: store.ErrTooLarge, Err: &store.LimitError{Limit: store.MaxEntry, Max: int64(len(line.Data))},
		Hint: "raise the limit",
	}
}

// isRedacted reports whether a log and its copy differ because something was taken out of the
// log. That leaves a mark in its header. In the trash there is none, but nothing else changes a
// line there.
func (w *logCopier) isRedacted(s comparison) bool {
	if w.pair.trash || w.pair.removed {
		return isSameEntry(s.ours, s.theirs)
	}
	return s.same == 0 && isSameEntry(s.ours, s.theirs) && rawjson.MembersOf(s.ours).Has("redacted")
}

// isSameEntry reports whether two lines are the same entry, whatever they say.
func isSameEntry(a, b []byte) bool {
	x, ok := rawjson.ScanHead(a)
	y, too := rawjson.ScanHead(b)
	return ok && too && bytes.Equal(x.Type, y.Type) && bytes.Equal(x.ID, y.ID)
}

// replace overwrites the lines of a copy with those of the log.
func (w *logCopier) replace(ctx context.Context, name string, ours store.Log) error {
	part, err := w.part(ctx, name)
	if err != nil {
		return err
	}
	next, stop := iter.Pull2(ours.Forward(ctx, 0))
	defer stop()
	n := 0
	return w.to.Parts().Edit(ctx, part, func(line []byte) ([]byte, error) {
		n++
		now, err, more := next()
		switch {
		case err != nil:
			return nil, err
		case !more: // what the copy has more is found when they are compared again
			return line, nil
		case bytes.Equal(now.Data, line):
			return line, nil
		case now.Cut:
			return nil, checkWhole(now)
		case !isSameEntry(now.Data, line):
			return nil, differs("line %d is another entry", n)
		}
		return bytes.Clone(now.Data), w.admit(ctx, [][]byte{now.Data})
	})
}

// part returns the copy of a log as a part of the store.
func (w *logCopier) part(ctx context.Context, name string) (store.Part, error) {
	parts := w.to.Parts()
	if !w.pair.trash {
		return store.Part{Kind: store.PartLog, Name: name, Place: parts.Where(store.PartLog, name)}, nil
	}
	log, _, _ := store.ParseRemoval(name)
	copies, err := parts.Copies(ctx, log)
	for _, p := range copies {
		if strings.Contains(p.Place, name) {
			return p, nil
		}
	}
	if err == nil {
		err = &store.Error{Op: "copy", Name: name, Kind: store.ErrNotExist}
	}
	return store.Part{}, err
}

// reader reads a log in chunks, up to where it ended at first.
type reader struct {
	log  store.Log
	end  store.Pos
	next func() (store.Line, error, bool)
	stop func()
	copy *copier

	damaged int // lines so far
}

func (c *copier) readFrom(ctx context.Context, log store.Log, at store.Pos) (*reader, error) {
	end, err := log.End(ctx)
	if err != nil {
		return nil, err
	}
	r := &reader{log: log, end: end, copy: c}
	r.next, r.stop = iter.Pull2(log.Forward(ctx, at))
	return r, nil
}

func (r *reader) close() {
	r.stop()
	r.log.Close()
}

// chunk is lines that follow each other.
type chunk struct {
	lines [][]byte
	size  int
}

// chunk reads the next lines. None means that there are no more.
func (r *reader) chunk() (c chunk, err error) {
	for c.size < chunkSize {
		line, err, more := r.next()
		if err == nil {
			err = checkWhole(line)
		}
		if err != nil || !more || line.Pos >= r.end {
			return c, err
		}
		c.lines = append(c.lines, append(make([]byte, 0, len(line.Data)), line.Data...))
		c.size += len(line.Data) + 1
		r.copy.reportProgress(len(line.Data) + 1)
		if isDamaged(line.Data) {
			r.damaged++
		}
	}
	return c, nil
}

// isDamaged reports whether a line is neither an entry nor a header that can be read.
func isDamaged(line []byte) bool {
	h, ok := rawjson.ScanHead(line)
	whole := ok && (len(h.ID) > 0 || string(h.Type) == string(session.TypeSession)) && (h.Whole || rawjson.Valid(line))
	return !whole && !rawjson.Blank(line)
}

// appendRest appends the rest of a log to its copy, which ends at a position.
func (w *logCopier) appendRest(ctx context.Context, from *reader, to store.Log, at store.Pos) error {
	for {
		c, err := from.chunk()
		if err != nil {
			return err
		}
		if len(c.lines) == 0 {
			break
		}
		if err := w.admit(ctx, c.lines); err != nil {
			return err
		}
		if _, err := to.Append(ctx, at, c.lines...); err != nil {
			return err
		}
		if at, err = w.readBack(ctx, to, at, c); err != nil {
			return err
		}
	}
	// If a secret was taken out of the log meanwhile, the copy has it.
	_, err := from.log.End(ctx)
	return ignoreNotExist(err)
}

// readBack compares written lines with the store's, and returns where they end.
func (w *logCopier) readBack(ctx context.Context, log store.Log, at store.Pos, c chunk) (store.Pos, error) {
	lines := c.lines
	for line, err := range log.Forward(ctx, at) {
		switch {
		case err != nil:
			return at, err
		case len(lines) == 0:
			return at, nil // another program goes on
		case line.Cut || !bytes.Equal(line.Data, lines[0]):
			return at, unlike("copy", "", w.pair.to)
		}
		lines, at = lines[1:], line.Next
	}
	if len(lines) > 0 {
		return at, unlike("copy", "", w.pair.to)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.result.Entries += len(c.lines)
	w.result.Size += int64(c.size)
	return at, nil
}

// admit brings the blobs that lines name, unless the lines have what was taken out of the store.
func (w *logCopier) admit(ctx context.Context, lines [][]byte) error {
	for _, line := range lines {
		has, err := w.guard.Has(line)
		if err == nil && has {
			err = errRedactedThere
		}
		if err == nil {
			err = w.blobs.copyNamed(ctx, line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errRedactedThere says why a session is not copied unchanged.
var errRedactedThere error = &difference{"it has something that was redacted in the copy and must not come back; redact it in the original, too"}
