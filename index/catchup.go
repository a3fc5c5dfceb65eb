package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// A batch is written in one transaction. It is full when it has this many documents, or takes
// this much memory. The larger it is, the fewer segments have to be merged later; but the
// process should need less than 200 MB.
//
// The first batch is a quarter of that, and the second half: the writer has nothing to
// do until it has a batch.
const (
	batchDocs  = 20_000
	batchBytes = 16 << 20
	firstBatch = 4 // the first batch is full at a quarter
	// besideBatch makes KeepUp's batches at most half as large.
	besideBatch = 2
)

// CatchUp brings the index up to date with the store. It costs only what has changed: it does
// not open unchanged sessions, and reads only the new lines of those that have grown.
// progress, if it is not nil, is called now and then with the number of bytes read and to be
// read.
//
// If the store tracks changes (store.Changes) and is large, only the sessions that its
// writers have marked are looked at. A change to an existing session by a program that leaves
// no marks is then found within ten minutes, or by Sweep.
//
// Logs that cannot be read are listed in the report and do not stop the others.
// When ctx is done, CatchUp returns its error; the index keeps the lines that were read until then.
func (ix *Index) CatchUp(ctx context.Context, progress func(done, total int64)) (Report, error) {
	return ix.catchUpInTurn(ctx, catchUpAll, progress)
}

// Sweep is CatchUp, but always looks at every session.
func (ix *Index) Sweep(ctx context.Context, progress func(done, total int64)) (Report, error) {
	return ix.catchUpInTurn(ctx, catchUpSweep, progress)
}

// KeepUp is CatchUp for use while this process imports sessions: it needs half the
// memory.
func (ix *Index) KeepUp(ctx context.Context) (Report, error) {
	return ix.catchUpInTurn(ctx, catchUpBeside, nil)
}

// manner is how to catch up.
type manner uint8

const (
	catchUpAll    manner = iota
	catchUpSweep         // looking at every session
	catchUpBeside        // with less memory
)

func (ix *Index) catchUpInTurn(ctx context.Context, how manner, progress func(done, total int64)) (Report, error) {
	start := time.Now()
	if progress == nil {
		progress = func(_, _ int64) {}
	}
	ctx, stop := ix.untilClosed(ctx)
	defer stop()
	report, err := ix.turns.do(ctx, how == catchUpSweep, func() (Report, error) { return ix.catchUpOnce(ctx, how, progress) })
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // not the database's wording of it
	}
	report.Duration = time.Since(start)
	return report, ix.fail("catch up", err)
}

// catchUpOnce runs one CatchUp. It begins again if the index turns out to be damaged or deleted.
func (ix *Index) catchUpOnce(ctx context.Context, how manner, progress func(done, total int64)) (report Report, err error) {
	report, err = ix.catchUp(ctx, how, progress)
	for n := 1; n < maxReplaced && isLost(err); n++ {
		if err = ix.room.Follow(ctx); err == nil {
			report, err = ix.catchUp(ctx, how, progress)
		}
	}
	return report, err
}

// errRewritten means that a log was rewritten. An index that is apart must forget everything
// it had of that log, so it counts as damaged.
var errRewritten = fmt.Errorf("%w: a session was rewritten", room.ErrDamaged)

// Rebuild deletes the index and builds it again from the logs. Queries wait until it is
// complete.
func (ix *Index) Rebuild(ctx context.Context, progress func(done, total int64)) (Report, error) {
	if err := ix.alone(ctx, ix.room.Empty); err != nil {
		return Report{}, ix.fail("rebuild", err)
	}
	return ix.CatchUp(ctx, progress)
}

func (ix *Index) catchUp(ctx context.Context, how manner, progress func(done, total int64)) (Report, error) {
	r := &catching{ctx: ctx, ix: ix, sweep: how == catchUpSweep, part: 1, progress: progress, terms: newTermTable()}
	if how == catchUpBeside {
		r.part = besideBatch
	}
	err := ix.room.View(ctx, false, func(db room.Tables) error {
		r.db = db
		return r.run()
	})
	if err == nil {
		ix.room.Filled(r.db)
		r.report.Rebuilt = ix.room.Rebuilt()
	}
	return r.report, err
}

// catching is one CatchUp.
type catching struct {
	ctx      context.Context
	ix       *Index
	db       room.Tables
	sweep    bool // look at every session
	part     int  // the largest batches have 1/part of the full size
	changes  store.Changes
	marks    map[string]*marked // of changes
	last     swept              // what is known of the last sweep
	progress func(done, total int64)
	terms    *termTable
	places   docPlaces

	report      Report
	done, total int64
}

// known is what the index knows about a log.
type known struct {
	id, size, modified int64
	archived           bool
	seen               bool // in the store's list
	// Only set if placed, or for logs that have changed:
	placed           bool
	pos, head        int64
	tailPos, tailSum int64
	guessed          bool // later lines may change the meaning of those that were read: see isGuessed
}

// job is a log that has to be read.
type job struct {
	stat store.Stat
	was  *known // nil if the index does not know it
}

func (r *catching) run() error {
	logs, jobs, err := r.survey()
	if err != nil {
		return err
	}
	if err := r.dropRemoved(logs); err != nil {
		return err
	}
	if err := r.indexAll(jobs); err != nil {
		return err
	}
	return r.removeMarks()
}

// indexAll reads all logs that have to be read.
func (r *catching) indexAll(jobs []job) error {
	if len(jobs) == 0 {
		return nil
	}
	// The newest come last, so that documents are written roughly in the order of time.
	slices.SortFunc(jobs, func(a, b job) int {
		return cmp.Or(a.stat.Modified.Compare(b.stat.Modified), cmp.Compare(a.stat.Name, b.stat.Name))
	})
	r.progress(0, r.total)
	if err := r.index(jobs); err != nil {
		return err
	}
	if r.terms.isBehind() {
		if err := r.inTx((*writer).flushTerms); err != nil {
			return err
		}
	}
	r.progress(r.total, r.total)
	return r.tidy()
}

func (r *catching) unread(name string, err error) {
	r.ix.opts.Logger.Warn("a log cannot be read", "session", name, "cause", err)
	r.report.Unread = append(r.report.Unread, Unread{name, err})
}

// chunk is some lines of a log, or all.
type chunk struct {
	job     job
	drop    bool // the index knows another log of that name, and must forget it
	from    store.Pos
	head    int64 // sum of the first line
	records []*record
	final   bool // the log was read to its end
	bytes   int64
	failed  error // why not
	written bool  // so that the index has all of the log
}

// batch is what is written in one transaction. After sending it, the sender must not
// touch it again: its words are numbered by its own vocabulary.
type batch struct {
	chunks []*chunk
	words  *vocabulary
	docs   int
}

// index reads the jobs' logs and writes them into the index. One batch is read while the
// one before is written. The channel is unbuffered, so at most two are in memory.
func (r *catching) index(jobs []job) error {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	batches := make(chan batch)
	readErr := make(chan error, 1)
	go func() {
		defer close(batches)
		b := &batcher{ctx: ctx, ix: r.ix, out: batches, part: firstBatch, greatest: r.part, read: lineReader{
			blobs: r.ix.store.Blobs(), maxText: r.ix.opts.MaxText, words: newVocabulary(),
		}}
		readErr <- b.readAll(jobs)
	}()
	var writeErr error
	for batch := range batches {
		if writeErr != nil {
			continue
		}
		if writeErr = r.write(batch); writeErr != nil {
			cancel()
		}
	}
	if writeErr != nil {
		return writeErr
	}
	return <-readErr
}

// write writes a batch in one transaction.
func (r *catching) write(b batch) error {
	for _, c := range b.chunks {
		if c.drop && c.job.was != nil {
			if r.ix.opts.Apart && !r.ix.room.Forgets() {
				return errRewritten
			}
			if err := r.dropSessions(c.job.was.id); err != nil {
				return err
			}
		}
	}
	var written *writer
	err := r.inTx(func(w *writer) error {
		written = w
		if err := w.look(b.chunks); err != nil {
			return err
		}
		w.docs = make([]docRow, 0, b.docs)
		for _, c := range b.chunks {
			if err := r.ctx.Err(); err != nil {
				return err
			}
			if err := w.chunk(c); err != nil {
				return fmt.Errorf("session %q: %w", c.job.stat.Name, err)
			}
		}
		return w.flush(b.words)
	})
	if err == nil {
		r.account(b.chunks, written)
	}
	return err
}

func (r *catching) account(chunks []*chunk, w *writer) {
	r.report.Entries += w.entries
	for _, c := range chunks {
		r.report.Bytes += c.bytes
		r.done += c.bytes
		if c.failed != nil {
			r.unread(c.job.stat.Name, c.failed)
		}
		if c.final || c.failed != nil {
			r.report.Changed++
		}
		if c.written {
			r.note(c.job.stat.Name, &c.job.stat)
		}
	}
	r.progress(min(r.done, r.total), r.total)
}

// chunk writes some lines of a log, unless another process has written them. The lines were
// read before the transaction began, so the log's row is looked up again here, where no other
// process can change it. Lines that it already has are left out. If it belongs to another
// log, or ends before our lines begin, they are all left out.
func (w *writer) chunk(c *chunk) error {
	s := w.states[c.job.stat.Name]
	if s == nil {
		if c.from != 0 {
			return nil
		}
		var err error
		if s, err = w.newState(c.job.stat.Name); err != nil {
			return err
		}
		s.head = c.head
	}
	if s.head != c.head || s.pos < int64(c.from) {
		return nil
	}
	for _, rec := range c.records {
		if int64(rec.pos) < s.pos {
			continue
		}
		if err := w.apply(s, rec); err != nil {
			return err
		}
	}
	if err := w.addBills(s); err != nil {
		return err
	}
	if err := w.resolveOrphans(s); err != nil {
		return err
	}
	if c.final || c.failed != nil {
		if err := w.finish(s, c); err != nil {
			return err
		}
		if err := w.saveTags(s); err != nil {
			return err
		}
	} else {
		s.modified = 0 // there is more to read, and the tags are behind: see saveTags
	}
	if err := w.stale(s.id); err != nil {
		return err
	}
	return w.saveState(s)
}

// finish records how the store described the log, so that it is left alone until that
// changes. A log that could not be read to its end is tried again.
func (w *writer) finish(s *state, c *chunk) error {
	if s.created == 0 {
		s.created = millis(c.job.stat.Modified)
		s.date()
	}
	if s.next == 0 && s.pos == 0 {
		s.problems = 1 // not a session, or an empty one
	}
	s.size, s.archived = c.job.stat.Size, c.job.stat.Archived
	s.modified = c.job.stat.Modified.UnixNano()
	if c.failed != nil {
		s.modified = 0
	}
	c.written = c.failed == nil
	return w.updateTotals(s)
}

// batcher reads logs and sends their records in batches.
type batcher struct {
	ctx   context.Context
	ix    *Index
	out   chan<- batch
	batch []*chunk
	read  lineReader
	docs  int
	bytes int
	part  int // the batch is full at 1/part of the full size
	// greatest is the part of the largest batches.
	greatest int
}

// isFull reports whether the batch is large enough.
func (b *batcher) isFull() bool { return b.docs >= b.ix.batch/b.part || b.bytes >= batchBytes/b.part }

func (b *batcher) readAll(jobs []job) error {
	for _, j := range jobs {
		if err := b.readLog(j); err != nil {
			return err
		}
	}
	return b.send()
}

// send hands the batch over. It returns an error only if the receiver has stopped.
func (b *batcher) send() error {
	if len(b.batch) == 0 {
		return b.ctx.Err()
	}
	select {
	case b.out <- batch{b.batch, b.read.words, b.docs}:
	case <-b.ctx.Done():
		return b.ctx.Err()
	}
	b.batch, b.docs, b.bytes, b.read.words = nil, 0, 0, newVocabulary()
	b.part = max(b.part/2, b.greatest)
	return nil
}

// readLog reads what is new in a log.
func (b *batcher) readLog(j job) error {
	c := &chunk{job: j}
	log, err := b.ix.store.Open(b.ctx, j.stat.Name)
	if errors.Is(err, store.ErrNotExist) {
		return nil // removed since it was listed
	}
	if err == nil {
		defer log.Close()
		err = c.compare(b.ctx, log, b.ix.opts.Apart || b.ix.room.Forgets())
	}
	if err != nil {
		return b.endLog(c, err)
	}
	return b.readLines(c, log)
}

// readLines reads the lines of a log from where a chunk begins. If it reads from the
// beginning, it takes the header first, wherever that is: the header also describes the
// entries before it. Otherwise it begins with the line before: if that is not the one that was
// read last, this is another log, and it is read from the beginning.
func (b *batcher) readLines(c *chunk, log store.Log) error {
	from, appended := c.from, c.from > 0
	if appended {
		from = store.Pos(c.job.was.tailPos)
	} else if err := c.begin(b.ctx, log); err != nil {
		return b.endLog(c, err)
	}
	again := func() error { return b.readLines(&chunk{job: c.job, head: c.head, drop: true}, log) }
	same := !appended
	b.read.titles, b.read.rewritten = titles{unsure: appended}, nil
	for line, err := range log.Forward(b.ctx, from) {
		if !same {
			if same = err == nil && c.job.was.isLast(line); same {
				continue
			}
			if err == nil || errors.Is(err, store.ErrInvalid) { // the log may have become shorter
				return again()
			}
		}
		if err != nil {
			return b.endLog(c, err)
		}
		if line.Pos == 0 {
			c.head = sumOf(line.Data)
		}
		rec := b.read.read(b.ctx, line)
		if rec != nil && rec.isDoubtful() && b.read.rewritten == nil {
			if b.read.rewritten, err = session.Rewritten(b.ctx, log); err != nil {
				return b.endLog(c, err)
			}
			rec = b.read.read(b.ctx, line)
		}
		c.bytes += int64(len(line.Data)) + 1 // a Pos need not count bytes
		if rec == nil {
			continue
		}
		if rec.header != nil && appended { // it may be the first
			return again()
		}
		c.records = append(c.records, rec)
		b.docs += len(rec.docs)
		b.bytes += rec.size()
		if b.isFull() {
			b.batch = append(b.batch, c)
			c = &chunk{job: c.job, head: c.head, from: line.Next}
			if err := b.send(); err != nil {
				return err
			}
		}
	}
	if !same {
		return again()
	}
	c.final = true
	return b.endLog(c, nil)
}

// isLast reports whether a line is the one that was read last.
func (k *known) isLast(line store.Line) bool {
	return sumOf(line.Data) == k.tailSum && int64(line.Next) == k.pos
}

// begin reads the header of a log.
func (c *chunk) begin(ctx context.Context, log store.Log) error {
	h, err := session.FindHeader(ctx, log)
	if err != nil || h == nil {
		return err
	}
	if err := h.CheckVersion(c.job.stat.Name); err != nil {
		return err
	}
	c.records = append(c.records, &record{header: h, found: true})
	return nil
}

// endLog adds the last chunk of a log.
func (b *batcher) endLog(c *chunk, err error) error {
	if err != nil && b.ctx.Err() != nil {
		return b.ctx.Err()
	}
	c.failed = err
	b.batch = append(b.batch, c)
	b.bytes += 1000
	if b.isFull() {
		return b.send()
	}
	return nil
}

// mayBeRewritten reports whether a log was changed without growing. It may only have been
// copied or touched; but a redaction may keep the length, and may leave both compared lines
// as they are.
func (c *chunk) mayBeRewritten() bool {
	was := c.job.was
	return was.modified != 0 && c.job.stat.Size <= was.size && c.job.stat.Archived == was.archived
}

// compare finds out where to begin reading the log: after the last line that was read, if
// the first line is unchanged, or else at the beginning. An index that nobody deletes after
// a redaction suspects that every log was rewritten that has not grown.
func (c *chunk) compare(ctx context.Context, log store.Log, suspect bool) error {
	was := c.job.was
	if was == nil {
		return nil // readLog will read from the beginning
	}
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return err
		}
		c.head = sumOf(line.Data)
		break
	}
	if c.drop = was.head != c.head || was.guessed || suspect && was.pos > 0 && c.mayBeRewritten(); !c.drop {
		c.from = store.Pos(was.pos)
	}
	return nil
}
