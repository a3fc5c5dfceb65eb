package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

var newline = []byte{'\n'}

// Log is one open log.
type Log struct {
	store *Store
	name  string

	// writing serialises the appends of this handle; it guards what follows. It
	// is taken before mu.
	writing sync.Mutex
	lock    nameLock
	buf     []byte
	latest  struct { // the latest append through this handle
		began time.Time
		end   store.Pos
	}
	idle *time.Timer // ends the lease of a writer that pauses

	// mu guards which file we are on. Readers hold it shared while they read, so
	// that the file is not closed under them when it was replaced.
	mu     sync.RWMutex
	source source
	closed bool // changed only with writing held as well; holding writing is enough to read it

	sync syncer
}

var _ store.Log = (*Log)(nil)

func newLog(s *Store, name string, src source) *Log {
	l := &Log{store: s, name: name, source: src, lock: nameLock{store: s, name: name}}
	l.sync.init(l)
	return l
}

// Path returns the log's file.
func (l *Log) Path() string { return l.store.Path(l.name) }

// Append implements store.Log.
func (l *Log) Append(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
	end, commit, err := l.Start(ctx, at, lines...)
	if err != nil {
		return end, err
	}
	if err := commit(); err != nil {
		return at, err
	}
	return end, nil
}

// Start implements store.Log.
func (l *Log) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	for _, line := range lines {
		if err := l.store.checkLine(l.name, line); err != nil {
			return at, nil, err
		}
	}
	if at < 0 {
		return at, nil, l.fail("append", at, store.ErrInvalid, errors.New("the position is negative"))
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	end, err := l.write(ctx, at, lines)
	if err != nil {
		return at, nil, err
	}
	if end == at {
		return at, committed, nil // there were no lines
	}
	return end, l.sync.commit(), nil
}

func (s *Store) checkLine(name string, line []byte) error {
	return store.CheckLine("append", name, line, s.opts.MaxLine)
}

// write puts the lines into the file, under the lock and after checking the position. The
// syncer sees that they reach the disk.
func (l *Log) write(ctx context.Context, at store.Pos, lines [][]byte) (store.Pos, error) {
	if err := ctx.Err(); err != nil {
		return at, err
	}
	if err := l.sync.failed(); err != nil {
		return at, l.poisoned(err)
	}
	if l.closed {
		return at, l.fail("append", at, store.ErrClosed, nil)
	}
	now := time.Now()
	file, stat, err := l.hold(ctx)
	if err != nil {
		return at, l.explain("append", at, err)
	}
	if err = l.checkEnd(file, stat.Size, at); err != nil {
		l.unlock()
		return at, err
	}
	end, err := l.writeAt(file, at, lines)
	if err != nil {
		l.unlock()
		return at, err
	}
	l.unlockOrKeep(now, at, end)
	return end, nil
}

// hold takes the locks that a change of the log needs, and returns the file to change and its
// stat. Under a lease they are held already.
func (l *Log) hold(ctx context.Context) (*plain, vfs.Stat, error) {
	if l.lock.kept {
		file := l.source.(*plain)
		stat, current, _ := l.store.isCurrent(l.name, file)
		if current {
			return file, stat, nil
		}
		l.unlock() // the locked file is no longer the log
	}
	fresh, dirty, err := l.lock.acquire(ctx)
	if err != nil {
		return nil, vfs.Stat{}, err
	}
	file, stat, err := l.writable(ctx, fresh, dirty)
	if err != nil {
		l.unlock()
		l.lock.close() // what we know about the log is out of date: look again next time
	}
	return file, stat, err
}

// unlock releases what hold took.
func (l *Log) unlock() {
	if file, ok := l.source.(*plain); ok && file.Unlock() != nil {
		l.reopen(file)
	}
	l.lock.unlock()
}

// reopen opens a file again, to close the descriptor whose lock could not be released. If
// that fails too, closing the log releases the lock.
func (l *Log) reopen(file *plain) {
	again, err := l.store.openPlain(l.name)
	if err != nil {
		return
	}
	if again.id() != file.id() {
		again.Close()
		return
	}
	l.swap(again)
}

// unlockOrKeep ends an append: it keeps the lock for the next one if appends come close
// together, and otherwise releases it. See nameLock.
func (l *Log) unlockOrKeep(began time.Time, at, end store.Pos) {
	follows := at == l.latest.end && began.Sub(l.latest.began) < leaseIdle
	l.latest.began, l.latest.end = began, end
	switch {
	case !follows || l.store.opts.Sync == Always:
		l.unlock()
	case !l.lock.kept:
		l.lock.kept, l.lock.since = true, began
		if l.idle == nil {
			l.idle = time.AfterFunc(leaseIdle, l.endIdleLease)
		} else {
			l.idle.Reset(leaseIdle)
		}
	case began.Sub(l.lock.since) >= leaseMax:
		l.unlock()
		l.lock.rest = began.Add(leaseGap)
	}
}

// endIdleLease releases the lock unless there was an append a moment ago.
func (l *Log) endIdleLease() {
	l.writing.Lock()
	defer l.writing.Unlock()
	if !l.lock.kept {
		return
	}
	if left := leaseIdle - time.Since(l.latest.began); left > 0 {
		l.idle.Reset(left)
		return
	}
	l.unlock()
}

// checkEnd makes sure the log ends at the position, repairing what a crashed writer may have
// left there. The caller holds the lock, so no writer is still completing bytes without a
// line end.
func (l *Log) checkEnd(file *plain, size int64, at store.Pos) error {
	if size == int64(at) {
		return nil
	}
	end := store.Pos(size)
	if int64(at) <= size+1 { // at size+1 if the caller has read a last line that lacks its line end
		var err error
		if end, err = l.repairTail(file, size); err != nil {
			return l.explain("repair", at, err)
		}
	}
	if end != at {
		return l.fail("append", at, store.ErrConflict, fmt.Errorf("the log ends at byte %d", end))
	}
	return nil
}

// How much memory a handle keeps for its next append. An import appends one large batch after
// the other; but the memory of one huge line must not be kept for good.
const (
	keptLine  = 1 << 20
	keptBatch = 16 << 20
)

// writeAt writes all lines with one call. If that fails, it cuts off the bytes that were written, so
// that the next append does not continue a torn line.
func (l *Log) writeAt(file *plain, at store.Pos, lines [][]byte) (store.Pos, error) {
	size := 0
	for _, line := range lines {
		size += len(line) + 1
	}
	l.buf = slices.Grow(l.buf[:0], size)
	for _, line := range lines {
		l.buf = append(append(l.buf, line...), '\n')
	}
	if len(l.buf) == 0 {
		return at, nil
	}
	if err := l.checkSize(int64(at) + int64(len(l.buf))); err != nil {
		return at, err
	}
	n, err := file.Write(l.buf)
	if err == nil && n < len(l.buf) {
		err = io.ErrShortWrite
	}
	if cap(l.buf) > keptBatch || cap(l.buf) > keptLine && len(lines) == 1 {
		l.buf = nil
	}
	if err == nil {
		end := at + store.Pos(n)
		l.sync.wrote(n, end)
		return end, nil
	}
	if cutErr := l.cutBack(file, at); cutErr != nil {
		err = fmt.Errorf("%w; and cutting the file back to %d: %w", err, at, cutErr)
		l.sync.poison(err)
		return at, l.fail("append", at, store.ErrUnknown, err)
	}
	return at, l.fail("append", at, nil, err)
}

// cutBack removes the bytes of an append that were written. That must be durable: otherwise a power cut
// could bring back whole lines of an append that failed.
func (l *Log) cutBack(file *plain, at store.Pos) error {
	if err := file.Truncate(int64(at)); err != nil {
		return err
	}
	if l.store.opts.Sync != Always {
		return nil
	}
	return l.syncRepair(file)
}

// Close waits for what is not yet durable and closes the files.
func (l *Log) Close() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.isClosed() {
		return nil
	}
	syncErr := l.sync.close()
	l.mu.Lock()
	l.closed = true
	closeErr := l.source.Close()
	l.mu.Unlock()
	l.lock.close()
	if l.idle != nil {
		l.idle.Stop()
	}
	l.store.forget(l)
	l.store.news.wake(l.name)
	if err := errors.Join(syncErr, closeErr); err != nil {
		return l.explain("close", 0, err)
	}
	return nil
}

func (l *Log) isClosed() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.closed
}

// poisoned is what appends get after a sync failed.
func (l *Log) poisoned(cause error) error {
	return &store.Error{
		Op: "append", Name: l.name, Path: l.Path(), Kind: store.ErrClosed,
		Err:  fmt.Errorf("an earlier write or sync failed: %w", cause),
		Hint: "open the session again, which checks its end",
	}
}

func (l *Log) fail(op string, at store.Pos, kind, err error) error {
	return &store.Error{Op: op, Name: l.name, Path: l.Path(), Offset: int64(at), At: true, Kind: kind, Err: err}
}

// explain adds to an error of the file system the log's name, the position, and a kind if one
// fits.
func (l *Log) explain(op string, at store.Pos, err error) error {
	var done *store.Error
	switch {
	case errors.As(err, &done), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, store.ErrReplaced):
		return &store.Error{
			Op: op, Name: l.name, Path: l.Path(), Kind: store.ErrReplaced,
			Hint: "another program redacted, repaired, edited or restored it: open it again",
		}
	case errors.Is(err, fs.ErrNotExist):
		return &store.Error{
			Op: op, Name: l.name, Path: l.Path(), Kind: store.ErrNotExist, Err: err,
			Hint: "the session was removed or moved away while it was open",
		}
	}
	return l.fail(op, at, nil, err)
}
