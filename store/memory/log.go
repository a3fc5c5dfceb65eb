package memory

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/store"
)

// content is what all handles of one log share.
type content struct {
	// pinned is held while someone appends, rewrites or removes, or keeps others from that. It
	// is taken before the mutex of the store and that of the content.
	pinned gate.Mutex

	mu       sync.RWMutex // guards what follows
	lines    []line       // grows at its end only
	end      store.Pos
	modified time.Time
	gone     error         // why it is no longer a log's content: ErrNotExist or ErrReplaced
	changed  chan struct{} // closed and replaced at each change: wakes watchers
}

// line is immutable.
type line struct {
	data []byte
	pos  store.Pos
}

// next counts a line end that is not there, as a file would have it, so that code
// cannot rely on computed positions.
func (l line) next() store.Pos { return l.pos + store.Pos(len(l.data)) + 1 }

func newContent() *content {
	return &content{modified: time.Now(), changed: make(chan struct{})}
}

// add appends data, which it keeps. The caller holds the mutex, or has the only
// reference to c.
func (c *content) add(data []byte) {
	l := line{data, c.end}
	c.lines = append(c.lines, l)
	c.end = l.next()
}

// wake tells the watchers to look again. The caller holds the mutex.
func (c *content) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// retire says that this is no longer the content of a log, and why.
func (c *content) retire(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = why
	c.wake()
}

// isGone returns why this is no longer the content of a log, or nil.
func (c *content) isGone() error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.gone
}

// clone returns the same lines as the content of another log.
func (c *content) clone() *content {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return &content{lines: slices.Clip(c.lines), end: c.end, modified: c.modified, changed: make(chan struct{})}
}

// same reports whether two contents have the same lines.
func (c *content) same(other *content) bool {
	return slices.EqualFunc(c.lines, other.lines, func(a, b line) bool { return bytes.Equal(a.data, b.data) })
}

func (c *content) stat(name string) store.Stat {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return store.Stat{Name: name, Size: int64(c.end), Modified: c.modified}
}

// eachLine calls each with all lines, which it must not keep.
func (c *content) eachLine(each func(line []byte)) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, l := range c.lines {
		each(l.data)
	}
}

// find returns the index of the line that begins at pos.
func (c *content) find(pos store.Pos) (int, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	i := sort.Search(len(c.lines), func(i int) bool { return c.lines[i].pos >= pos })
	if i == len(c.lines) {
		return i, pos == c.end
	}
	return i, c.lines[i].pos == pos
}

// at returns the line with index i, if it is there yet.
func (c *content) at(i int) (line, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if i >= len(c.lines) {
		return line{}, false
	}
	return c.lines[i], true
}

// awaken returns a channel that is closed at the next change, or why there will be none.
func (c *content) awaken() (<-chan struct{}, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.changed, c.gone
}

// log is one handle. It can still read after the log was removed.
type log struct {
	store   *Store
	name    string
	content *content

	once sync.Once
	done chan struct{} // closed by Close
}

func (l *log) Append(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
	const op = "append"
	if err := l.ready(ctx, op); err != nil {
		return 0, err
	}
	copies := make([][]byte, len(lines))
	for i, data := range lines {
		if err := l.store.checkLine(op, l.name, data); err != nil {
			return 0, err
		}
		copies[i] = bytes.Clone(data)
	}
	c := l.content
	if err := c.pinned.LockContext(ctx); err != nil {
		return 0, &store.Error{Op: op, Name: l.name, Err: err}
	}
	defer c.pinned.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.gone != nil:
		return 0, l.fail(op, at, c.gone)
	case at < 0:
		return 0, l.fail(op, at, store.ErrInvalid)
	case at != c.end:
		return 0, l.fail(op, at, store.ErrConflict)
	case len(copies) == 0:
		return c.end, nil
	}
	size := int64(c.end)
	for _, data := range copies {
		size += int64(len(data)) + 1
	}
	if err := store.MaxSession.Check(op, l.name, size, l.store.limits.Log); err != nil {
		return 0, err
	}
	for _, data := range copies {
		c.add(data)
	}
	c.modified = time.Now()
	c.wake()
	l.store.news.logChanged(l.name)
	return c.end, nil
}

// Start has nothing to wait for: what is appended is there.
func (l *log) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	end, err := l.Append(ctx, at, lines...)
	return end, func() error { return nil }, err
}

func (l *log) Forward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return l.each(ctx, "read", from, (*cursor).forward)
}

func (l *log) Backward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return l.each(ctx, "read", from, (*cursor).backward)
}

func (l *log) Watch(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return l.each(ctx, "watch", from, (*cursor).watch)
}

func (l *log) End(ctx context.Context) (store.Pos, error) {
	if err := l.ready(ctx, "end"); err != nil {
		return 0, err
	}
	l.content.mu.RLock()
	defer l.content.mu.RUnlock()
	return l.content.end, nil
}

// Flush has nothing to wait for: there is nothing that outlives the process.
func (l *log) Flush(ctx context.Context) error { return l.ready(ctx, "flush") }

func (l *log) Current() error {
	if err := l.content.isGone(); errors.Is(err, store.ErrReplaced) {
		return &store.Error{Op: "read", Name: l.name, Kind: err}
	}
	return nil
}

func (l *log) Pin(ctx context.Context) (func(), error) {
	const op = "copy"
	if err := l.ready(ctx, op); err != nil {
		return nil, err
	}
	if err := l.content.pinned.LockContext(ctx); err != nil {
		return nil, &store.Error{Op: op, Name: l.name, Err: err}
	}
	if err := l.content.isGone(); err != nil {
		l.content.pinned.Unlock()
		return nil, &store.Error{Op: op, Name: l.name, Kind: err}
	}
	return sync.OnceFunc(l.content.pinned.Unlock), nil
}

func (l *log) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// each yields what step returns, up to and including an error; io.EOF is the end.
func (l *log) each(ctx context.Context, op string, from store.Pos, step func(*cursor) (store.Line, error)) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		i, ok := l.content.find(from)
		if !ok {
			yield(store.Line{}, l.fail(op, from, store.ErrInvalid))
			return
		}
		c := &cursor{ctx: ctx, log: l, op: op, index: i}
		for {
			line, err := step(c)
			if err == io.EOF || !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// ready returns nil if the handle is open and ctx not done.
func (l *log) ready(ctx context.Context, op string) error {
	if closed(l.done) {
		return &store.Error{Op: op, Name: l.name, Kind: store.ErrClosed}
	}
	if err := l.store.ready(ctx, op, l.name); err != nil {
		return err
	}
	return l.Current() // removed lines must not be read through an old handle
}

func (l *log) fail(op string, at store.Pos, kind error) error {
	return &store.Error{Op: op, Name: l.name, Offset: int64(at), At: true, Kind: kind}
}

// cursor is the state of one iteration.
type cursor struct {
	ctx   context.Context
	log   *log
	op    string
	index int    // of the line after the cursor
	buf   []byte // holds the line last given out
}

func (c *cursor) forward() (store.Line, error) {
	if err := c.log.ready(c.ctx, c.op); err != nil {
		return store.Line{}, err
	}
	l, ok := c.log.content.at(c.index)
	if !ok {
		return store.Line{}, io.EOF
	}
	c.index++
	return c.copyLine(l), nil
}

func (c *cursor) backward() (store.Line, error) {
	if err := c.log.ready(c.ctx, c.op); err != nil {
		return store.Line{}, err
	}
	if c.index == 0 {
		return store.Line{}, io.EOF
	}
	c.index--
	l, _ := c.log.content.at(c.index)
	return c.copyLine(l), nil
}

func (c *cursor) watch() (store.Line, error) {
	for {
		// Taken before looking, so that no change is missed in between.
		wake, gone := c.log.content.awaken()
		line, err := c.forward()
		switch {
		case c.ctx.Err() != nil:
			return store.Line{}, io.EOF
		case err != io.EOF:
			return line, err
		case gone != nil:
			return store.Line{}, &store.Error{Op: c.op, Name: c.log.name, Kind: gone}
		}
		select {
		case <-wake:
		case <-c.ctx.Done():
		case <-c.log.done:
		case <-c.log.store.done:
		}
	}
}

// copyLine copies the line into a buffer that the next line overwrites: the reader may
// change it, and code that wrongly keeps it fails here rather than on disk.
func (c *cursor) copyLine(l line) store.Line {
	c.buf = append(c.buf[:0], l.data...)
	return store.Line{Data: c.buf, Pos: l.pos, Next: l.next()}
}
