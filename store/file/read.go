package file

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"syscall"

	"github.com/coppice-dev/coppice/store"
)

const (
	firstChunk = 16 << 10  // enough for most single lines
	wholeChunk = 256 << 10 // what a long scan reads at a time: it stays in the cache
	// cutLine is how much of an over-long line is read: its head.
	cutLine = 4 << 10
)

// readAt reads from whichever file the log is on now.
func (l *Log) readAt(p []byte, off int64) (int, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return 0, store.ErrClosed
	}
	n, err := l.source.ReadAt(p, off)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (l *Log) size() (int64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return 0, store.ErrClosed
	}
	stat, err := l.source.Stat()
	return stat.Size, err
}

// readerFunc lets the free functions below read a log.
type readerFunc func(p []byte, off int64) (int, error)

func (f readerFunc) ReadAt(p []byte, off int64) (int, error) { return f(p, off) }

// until reads a log until a context is done.
func (l *Log) until(ctx context.Context) readerFunc {
	return func(p []byte, off int64) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return l.readAt(p, off)
	}
}

// End implements store.Log.
func (l *Log) End(ctx context.Context) (store.Pos, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := l.follow(); err != nil {
		return 0, l.failRead("end", 0, err)
	}
	size, err := l.size()
	if err != nil {
		return 0, l.failRead("end", 0, err)
	}
	end, isLine, err := l.store.lastLine(l.until(ctx), size)
	if err != nil {
		return 0, l.failRead("end", size, err)
	}
	if isLine {
		end = size + 1
	}
	return store.Pos(end), nil
}

// lastLine returns the offset after the last newline before size, and whether a line
// without its own newline follows it.
func (s *Store) lastLine(r io.ReaderAt, size int64) (at int64, isLine bool, err error) {
	at, err = lastLineEnd(r, size)
	if err == nil && at < size {
		isLine, err = s.isLine(r, at, size)
	}
	return at, isLine, err
}

// lastLineEnd returns the offset after the last newline before size.
func lastLineEnd(r io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, 512) // nearly always the very last byte is a newline
	for size > 0 {
		n := min(int64(len(buf)), size)
		if _, err := io.ReadFull(io.NewSectionReader(r, size-n, n), buf[:n]); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return size - n + int64(i) + 1, nil
		}
		size -= n
		if len(buf) < wholeChunk {
			buf = make([]byte, 8*len(buf))
		}
	}
	return 0, nil
}

// Forward implements store.Log.
func (l *Log) Forward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		if err := l.follow(); err != nil {
			yield(store.Line{}, l.failRead("read", int64(from), err))
			return
		}
		_, _ = l.forward(ctx, from, yield)
	}
}

// firstChunk returns how much to read at first, from a position on: no more than is there, because
// the end of a log is asked for again and again. The further byte shows that it is the end.
func (l *Log) firstChunk(from store.Pos) int64 {
	size, err := l.size()
	if err != nil {
		return firstChunk // reading says so
	}
	return min(max(size-int64(from)+1, 512), firstChunk)
}

// forward yields lines until there are no more, and returns where it stopped and
// whether the caller of the iteration wants more.
func (l *Log) forward(ctx context.Context, from store.Pos, yield func(store.Line, error) bool) (store.Pos, bool) {
	if from < 0 {
		return from, yieldError(yield, l.fail("read", from, store.ErrInvalid, errors.New("the position is negative")))
	}
	buf := make([]byte, l.firstChunk(from))
	var ahead readAhead
	defer ahead.wait()
	for {
		if err := ctx.Err(); err != nil {
			return from, yieldError(yield, err)
		}
		var err error
		n := ahead.swap(&buf, int64(from))
		if n == 0 {
			n, err = l.readAt(buf, int64(from))
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return from, yieldError(yield, l.failRead("read", int64(from), err))
		}
		if n == wholeChunk {
			ahead.start(l, int64(from)+int64(bytes.LastIndexByte(buf, '\n'))+1)
		}
		used, more := l.yieldLines(buf[:n], from, yield)
		from += store.Pos(used)
		switch {
		case !more:
			return from, false
		case used == 0 && n < len(buf):
			return l.yieldLast(buf[:n:n], from, yield)
		case used == 0 && int64(len(buf)) > l.store.opts.MaxLine:
			next, more := l.skipLong(ctx, buf, from, yield)
			if next == from || !more {
				return next, more
			}
			from = next
		case n == len(buf) && len(buf) < wholeChunk || used == 0:
			// A line that did not fit is read again from its beginning, not
			// continued: a writer may have repaired what we saw of it.
			step := int64(4)
			if len(buf) >= wholeChunk {
				step = 2 // a long line takes no more than twice its memory
			}
			buf = make([]byte, min(step*int64(len(buf)), max(wholeChunk, l.store.opts.MaxLine+1)))
		}
	}
}

// readAhead reads the chunk that a long scan will want next while the lines of
// this one are looked at. Its zero value is ready to use.
type readAhead struct {
	off  int64
	buf  []byte
	n    int
	done chan struct{} // closed when it is read; nil if nothing is under way
}

func (a *readAhead) start(l *Log, off int64) {
	if a.buf == nil {
		a.buf = make([]byte, wholeChunk)
	}
	a.off, a.done = off, make(chan struct{})
	go func() {
		defer close(a.done)
		a.n, _ = l.readAt(a.buf, off) // a real read returns the error again
	}()
}

// swap exchanges buf for the chunk at an offset and returns its length, or 0 if it has none.
// A chunk that is not full was read at the end of the log, which may have grown since, so it
// does not count.
func (a *readAhead) swap(buf *[]byte, off int64) int {
	a.wait()
	if a.n < wholeChunk || a.off != off || len(*buf) != wholeChunk {
		return 0
	}
	*buf, a.buf, a.n = a.buf, *buf, 0
	return wholeChunk
}

func (a *readAhead) wait() {
	if a.done != nil {
		<-a.done
		a.done = nil
	}
}

// yieldLines yields the whole lines in buf, which begins at from, and returns how many
// bytes they take.
func (l *Log) yieldLines(buf []byte, from store.Pos, yield func(store.Line, error) bool) (used int, more bool) {
	for {
		i := bytes.IndexByte(buf[used:], '\n')
		if i < 0 {
			return used, true
		}
		pos := from + store.Pos(used)
		line := store.Line{Pos: pos, Next: pos + store.Pos(i) + 1}
		line.Data, line.Cut = l.cut(buf[used : used+i : used+i])
		used += i + 1
		if !yield(line, nil) {
			return used, false
		}
	}
}

// yieldLast handles the bytes after the last line end.
func (l *Log) yieldLast(tail []byte, from store.Pos, yield func(store.Line, error) bool) (store.Pos, bool) {
	line := store.Line{Pos: from, Next: from + store.Pos(len(tail)) + 1}
	line.Data, line.Cut = l.cut(tail)
	if line.Cut && bytes.IndexByte(tail, 0) < 0 || !line.Cut && !store.IsLine(tail) {
		return from, true // nothing, or not whole yet
	}
	return line.Next, yield(line, nil)
}

// cut returns a line or, if it is over the limit, its beginning.
func (l *Log) cut(line []byte) (data []byte, cut bool) {
	limit := l.store.opts.MaxLine
	if int64(len(line)) <= limit {
		return line, false
	}
	n := min(cutLine, limit)
	return line[:n:n], true
}

// skipLong yields the beginning of a line over the limit and continues after it.
func (l *Log) skipLong(ctx context.Context, buf []byte, from store.Pos, yield func(store.Line, error) bool) (store.Pos, bool) {
	head, _ := l.cut(buf)
	head = bytes.Clone(head)
	at, lost := from+store.Pos(len(buf)), bytes.IndexByte(buf, 0) >= 0
	for {
		if err := ctx.Err(); err != nil {
			return from, yieldError(yield, err)
		}
		n, err := l.readAt(buf, int64(at))
		if err != nil && !errors.Is(err, io.EOF) {
			return from, yieldError(yield, l.failRead("read", int64(at), err))
		}
		i := bytes.IndexByte(buf[:n], '\n')
		lost = lost || bytes.IndexByte(buf[:n], 0) >= 0
		switch {
		case i < 0 && n == len(buf):
			at += store.Pos(n)
			continue
		case i < 0 && !lost:
			return from, true // not whole yet
		case i < 0:
			i = n
		}
		next := at + store.Pos(i) + 1
		return next, yield(store.Line{Data: head, Pos: from, Next: next, Cut: true}, nil)
	}
}

// Backward implements store.Log.
func (l *Log) Backward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		if from < 0 {
			yieldError(yield, l.fail("read", from, store.ErrInvalid, errors.New("the position is negative")))
			return
		}
		if err := l.follow(); err != nil {
			yieldError(yield, l.failRead("read", int64(from), err))
			return
		}
		w := backWindow{log: l, from: l.until(ctx)}
		last, err := w.unended(from)
		if err != nil {
			yieldError(yield, l.failRead("read", int64(from), err))
			return
		}
		if last.Data != nil && !yield(last, nil) {
			return
		}
		for end := w.start; end > 0; {
			if err := ctx.Err(); err != nil {
				yieldError(yield, err)
				return
			}
			line, err := w.lineBefore(end)
			if err != nil {
				yieldError(yield, l.failRead("read", end, err))
				return
			}
			if !yield(line, nil) {
				return
			}
			end = int64(line.Pos)
		}
	}
}

// backWindow is the part of a log that a backward scan has in memory. It grows
// towards the beginning.
type backWindow struct {
	log   *Log
	from  readerFunc
	buf   []byte
	start int64 // the offset at which buf begins
	// ends are the ends of the lines in buf that were not returned yet. They are searched
	// from front to back, a window at a time, which is several times as fast as from back to
	// front.
	ends []int
}

// unended sets the window to where a scan from a position begins. If that position
// is after a last line which lacks its line end, it returns that line first.
func (w *backWindow) unended(from store.Pos) (store.Line, error) {
	w.start = int64(from)
	size, err := w.log.size()
	if err != nil || size+1 != int64(from) {
		return store.Line{}, err
	}
	at, isLine, err := w.log.store.lastLine(w.from, size)
	if err != nil || !isLine {
		return store.Line{}, err
	}
	w.start = at
	return w.read(at, from)
}

// lineBefore returns the line that ends, with its newline, at end: first where the
// scan begins, then where the line begins that was returned last.
func (w *backWindow) lineBefore(end int64) (store.Line, error) {
	for {
		if have := int(end - 1 - w.start); have >= 0 {
			if w.buf[have] != '\n' {
				return store.Line{}, w.log.fail("read", store.Pos(end), store.ErrInvalid, errors.New("it is not the end of a line"))
			}
			if n := len(w.ends) - 1; n >= 0 {
				i := w.ends[n]
				w.ends = w.ends[:n]
				return w.line(i+1, have), nil
			}
			if w.start == 0 {
				return w.line(0, have), nil
			}
			if int64(have) > w.log.store.opts.MaxLine {
				return w.longLine(end)
			}
		}
		if err := w.grow(end); err != nil {
			return store.Line{}, err
		}
	}
}

func (w *backWindow) line(from, to int) store.Line {
	data, cut := w.log.cut(w.buf[from:to:to])
	return store.Line{
		Data: data, Cut: cut,
		Pos:  store.Pos(w.start + int64(from)),
		Next: store.Pos(w.start + int64(to) + 1),
	}
}

// longLine finds the beginning of a line over the limit without keeping it, and
// starts the window again before it.
func (w *backWindow) longLine(end int64) (store.Line, error) {
	start, err := lastLineEnd(w.from, end-1)
	if err != nil {
		return store.Line{}, err
	}
	w.buf, w.start = nil, start
	return w.read(start, store.Pos(end))
}

// read reads the line between two offsets or, if it is over the limit, its beginning.
func (w *backWindow) read(from int64, next store.Pos) (store.Line, error) {
	line := store.Line{Pos: store.Pos(from), Next: next}
	n, limit := int64(next)-1-from, w.log.store.opts.MaxLine
	if line.Cut = n > limit; line.Cut {
		n = min(cutLine, limit)
	}
	line.Data = make([]byte, n)
	_, err := io.ReadFull(io.NewSectionReader(w.from, from, n), line.Data)
	return line, err
}

// grow reads the bytes before the window, and keeps the part of it that is still
// needed: the bytes before end. The step doubles, so that a long scan reads in large
// pieces and a long line is copied only a few times.
func (w *backWindow) grow(end int64) error {
	keep := w.buf[:max(0, end-w.start)]
	step := min(max(firstChunk, int64(2*len(w.buf))), max(wholeChunk, int64(2*len(keep))), w.start)
	buf := w.buf[:cap(w.buf)] // the caller is done with the lines in it
	if need := step + int64(len(keep)); int64(len(buf)) >= need {
		buf = buf[:need]
	} else {
		buf = make([]byte, need)
	}
	copy(buf[step:], keep) // first: it may be the same memory
	if _, err := io.ReadFull(io.NewSectionReader(w.from, w.start-step, step), buf[:step]); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = w.log.fail("read", store.Pos(end), store.ErrInvalid, errors.New("the position is beyond the end of the log"))
		}
		return err
	}
	w.buf, w.start = buf, w.start-step
	fresh := buf[:min(step, end-1-w.start)] // the kept part has no line end except its last byte
	for at := 0; ; {
		i := bytes.IndexByte(fresh[at:], '\n')
		if i < 0 {
			return nil
		}
		w.ends = append(w.ends, at+i)
		at += i + 1
	}
}

func (l *Log) failRead(op string, at int64, err error) error {
	var done *store.Error
	switch {
	case errors.As(err, &done), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, store.ErrReplaced):
		return l.explain(op, store.Pos(at), err)
	case errors.Is(err, store.ErrClosed):
		return l.fail(op, store.Pos(at), store.ErrClosed, nil)
	case errors.Is(err, store.ErrInvalid), errors.Is(err, syscall.EINVAL):
		return l.fail(op, store.Pos(at), store.ErrInvalid, err)
	}
	return l.fail(op, store.Pos(at), nil, err)
}

// yieldError ends an iteration with an error.
func yieldError(yield func(store.Line, error) bool, err error) bool {
	yield(store.Line{}, err)
	return false
}
