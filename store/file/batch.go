package file

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// Batch implements store.Store.
//
// Creating a log is expensive because it waits for the disk twice: for the content, and for
// the directory. A batch keeps the order of Create (content, then the name, then the
// directory), so a name never leads to half a log. But it does each step for all logs at
// once, so that the disk works on many files at a time and the directory is synced once.
func (s *Store) Batch() store.Batch { return &batch{store: s} }

// manyLogs is the number of logs from which an index had better look at everything: a mark
// costs as much as creating a log.
const manyLogs = 16

type batch struct {
	store *Store
	logs  []*batched
}

// batched is a log that is written and has no name yet.
type batched struct {
	name, temp string
	file       vfs.File // temp; still open, for the sync
}

func (b *batch) Len() int { return len(b.logs) }

// Add implements store.Batch.
func (b *batch) Add(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) error {
	s := b.store
	if err := s.check(ctx, "create", name); err != nil {
		return err
	}
	l := &batched{name: name, temp: s.temp()}
	var err error
	if l.file, err = s.openIn(s.housePath("tmp"), l.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL); err != nil {
		return s.fail("create", name, err)
	}
	buf := writeBuffers.Get().(*bufio.Writer)
	defer writeBuffers.Put(buf)
	buf.Reset(l.file)
	if err = s.writeLines(ctx, name, buf, lines); err == nil {
		err = buf.Flush()
	}
	if err != nil {
		l.discard(s)
		return s.fail("create", name, err)
	}
	b.logs = append(b.logs, l)
	return nil
}

var writeBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}

func (l *batched) discard(s *Store) {
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
	_ = s.fs.Remove(l.temp) // a left-over file is harmless
}

// Discard implements store.Batch.
func (b *batch) Discard() {
	for _, l := range b.logs {
		l.discard(b.store)
	}
	b.logs = nil
}

// Commit implements store.Batch.
func (b *batch) Commit(ctx context.Context) map[string]error {
	s := b.store
	errs := make(map[string]error)
	defer b.Discard() // drops the logs that got no name
	b.sync(errs)
	many := len(b.logs) >= manyLogs
	if many {
		_ = s.dropStamp() // in case we are killed before the drop that counts
	}
	spare := &spareLock{}
	if many {
		spare = s.spareLock()
		defer spare.close()
	}
	var placed []*batched
	for _, l := range b.logs {
		if errs[l.name] != nil {
			continue
		}
		if err := b.publish(ctx, l, many, spare); err != nil {
			errs[l.name] = s.fail("create", l.name, err)
			continue
		}
		placed = append(placed, l)
	}
	if len(placed) == 0 {
		return errs
	}
	var err error
	if many {
		err = s.dropStamp()
	}
	if err = errors.Join(err, s.syncDir(s.dir)); err != nil {
		for _, l := range placed {
			errs[l.name] = &store.Error{Op: "create", Name: l.name, Path: s.Path(l.name), Kind: store.ErrUnknown, Err: err}
		}
	}
	return errs
}

// sync makes the content of all logs durable, and closes their files.
func (b *batch) sync(errs map[string]error) {
	var mu sync.Mutex // guards errs
	var syncs sync.WaitGroup
	for _, l := range b.logs {
		syncSlots <- struct{}{}
		syncs.Go(func() {
			defer func() { <-syncSlots }()
			var err error
			if b.store.opts.Sync != Never {
				err = l.file.Sync()
			}
			if err = errors.Join(err, l.file.Close()); err != nil {
				mu.Lock()
				errs[l.name] = b.store.fail("create", l.name, fmt.Errorf("syncing its content: %w", err))
				mu.Unlock()
			}
			l.file = nil
		})
	}
	syncs.Wait()
}

// publish gives a log of the batch its name.
func (b *batch) publish(ctx context.Context, l *batched, unmarked bool, spare *spareLock) error {
	s := b.store
	reserved, err := s.reserve(ctx, l.name)
	if err != nil {
		return err
	}
	if reserved != nil {
		defer reserved.release()
	}
	lock := &nameLock{store: s, name: l.name, unmarked: unmarked}
	if spare.lend(lock) {
		lock, err = lock.acquirePlain(ctx)
	} else {
		lock, err = lock.acquireBoth(ctx)
	}
	if err != nil {
		return err
	}
	defer lock.release()
	if err := s.mustNotExist(l.name); err != nil {
		return err
	}
	if err := vfs.MoveNew(s.fs, l.temp, s.Path(l.name), nil); err != nil {
		return err
	}
	lock.leaveNothing()
	return nil
}
