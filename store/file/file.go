// Package file keeps logs as plain JSON-lines files in a directory: one log,
// one file, readable with cat and jq, copyable with cp.
//
//	<dir>/<name>.jsonl                     one log; mode 0600 in a 0700 directory
//	<dir>/.coppice/locks/<name>.lock       locked by the process that appends
//	<dir>/.coppice/blobs/ab/abcd…          content that lines refer to, by SHA-256
//	<dir>/.coppice/archive/<name>.jsonl.zst  cold logs, compressed, read in place
//	<dir>/.coppice/trash/                  removed logs, until the trash is emptied
//	<dir>/.coppice/quarantine/             bytes that a crash tore off a log's end
//	<dir>/.coppice/tmp/                    files on their way to one of the above
//	<dir>/.coppice/changed/                names of logs that an index has to look at
//	<dir>/.coppice/blobs.lock              shared by writers that are about to name a blob
//
// An append costs one write and, by default, one sync; appends to one log that come close
// together share the sync. (The first append through a handle also syncs the directory, in
// case the process that made the file died before that.) Reading costs only what is read: it
// never waits for a lock and never writes.
//
// A writer holds an exclusive lock for the duration of one append (without syncs:
// of a few milliseconds of appends) and checks, inside it and before each write,
// that the file still ends where the caller thought. Two processes
// therefore never interleave: one of them gets store.ErrConflict.
package file

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

const (
	// DefaultMaxLine is the default of Options.MaxLine.
	DefaultMaxLine = 64 << 20
	// DefaultLockWait is the default of Options.LockWait.
	DefaultLockWait = 10 * time.Second
	// DefaultMaxUnpacked is the default of Options.MaxUnpacked.
	DefaultMaxUnpacked = 256 << 30

	logSuffix     = ".jsonl"
	archiveSuffix = ".jsonl.zst"
	lockSuffix    = ".lock"

	dirPerm  fs.FileMode = 0o700
	filePerm fs.FileMode = 0o600
)

// Sync says when an append is made durable.
type Sync time.Duration

const (
	// Always syncs before an append returns: an acknowledged append survives a power cut. It
	// is the default.
	Always Sync = 0
	// Never leaves syncing to the operating system: an acknowledged append survives the end
	// of the process, but not a power cut.
	Never Sync = -1
)

// Every syncs in the background, d after the first append that is not yet
// durable: a power cut loses at most that much. A sync that fails is reported
// by the next append or by Close.
func Every(d time.Duration) Sync { return Sync(max(d, 1)) }

// Options adjusts a Store. The zero value is what most programs want.
type Options struct {
	// Sync says when appends are made durable. Default: Always.
	Sync Sync
	// MaxLine is the maximum length of a line in bytes. A longer one is refused with
	// store.ErrTooLarge; if a file has one, only its beginning is read. Default: 64
	// MiB.
	MaxLine int64
	// MaxLog is the maximum size of a log in bytes. An append beyond it is refused with
	// store.ErrTooLarge. Default: no limit.
	MaxLog int64
	// MaxUnpacked is the maximum size of a log in an archive, in bytes. An archive that
	// claims more is refused with store.ErrTooLarge, whatever its own size; it stays as
	// it is. Default: 256 GiB.
	MaxUnpacked int64
	// MaxLogs is how many logs there may be, archived ones included. Creating one
	// more is refused with store.ErrTooLarge. It holds across all processes with the
	// same setting; they create logs one after the other, and each creation costs a
	// listing. Default: no limit.
	MaxLogs int
	// MakeRoom, if it is not nil, is called when the store has MaxLogs logs and another is to
	// be created. If it removes at least n of them, the log is created; if it does not, or
	// returns an error, creating fails. Other creations wait for it, so it must not create
	// logs itself. Package upkeep provides one. Default: none.
	MakeRoom func(ctx context.Context, s store.Store, n int) error
	// OnLoss, if it is not nil, is called when the plain file of a log was restored from an
	// archive of which a part is lost, with the context of the operation that needed it. The log has a
	// damaged line in place of the part. Default: none.
	OnLoss func(ctx context.Context, name string)
	// LockWait is how long an append waits for another writer before it gives
	// up with store.ErrLocked. Default: 10 s.
	LockWait time.Duration
	// FS is the file system. Default: the operating system's.
	FS vfs.FS
	// Logger gets a line for every repair. Default: none.
	Logger *slog.Logger
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.MaxLine <= 0 {
		opts.MaxLine = DefaultMaxLine
	}
	if opts.MaxUnpacked <= 0 {
		opts.MaxUnpacked = DefaultMaxUnpacked
	}
	if opts.LockWait <= 0 {
		opts.LockWait = DefaultLockWait
	}
	if opts.FS == nil {
		opts.FS = vfs.OS{KeepOwner: true}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return opts
}

// Store is a directory of logs.
type Store struct {
	dir  string
	opts Options
	fs   vfs.FS
	// isTrash says that dir is the trash of another store: see trash.Read.
	isTrash bool

	syncedBlobs durableBlobs
	news        news

	mu   sync.Mutex // guards what follows
	logs map[*Log]struct{}
	made map[string]bool // directories known to exist
	// durable are the directories whose names were synced.
	durable map[string]bool
	closed  bool

	late lateBlobs // what Flush has to sync
	twin *Store    // see eager; guarded by mu
}

var (
	_ store.Store     = (*Store)(nil)
	_ store.Directory = (*Store)(nil)
	_ store.Watcher   = (*Store)(nil)
	_ store.Archiver  = (*Store)(nil)
	_ store.Mender    = (*Store)(nil)
)

// Open returns the store in a directory. It writes nothing: the directory is created with the
// first log.
func Open(dir string, o *Options) (*Store, error) {
	if dir == "" {
		return nil, &store.Error{Op: "open store", Kind: store.ErrInvalid, Err: errors.New("the directory's name is empty")}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, &store.Error{Op: "open store", Path: dir, Err: err}
	}
	opts := o.withDefaults()
	s := &Store{
		dir:  abs,
		opts: opts,
		fs:   opts.FS,
		logs: make(map[*Log]struct{}),
		made: make(map[string]bool),

		durable: make(map[string]bool),
	}
	s.news.store = s
	info, err := s.fs.Lstat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return nil, s.fail("open store", "", err)
	case info.Mode().IsRegular():
		return nil, &store.Error{Op: "open store", Path: abs, Kind: store.ErrInvalid, Err: errors.New("it is a file, not a directory")}
	}
	s.made[abs] = true
	return s, nil
}

// Where returns the store's directory, as an absolute path.
func (s *Store) Where() string { return s.dir }

// Path returns where the log of that name is or would be.
func (s *Store) Path(name string) string { return filepath.Join(s.dir, name+logSuffix) }

// Open returns the log of that name, whether it is a plain file or archived.
func (s *Store) Open(ctx context.Context, name string) (store.Log, error) {
	if err := s.check(ctx, "open", name); err != nil {
		return nil, err
	}
	source, err := s.openSource(name)
	if err != nil {
		return nil, s.fail("open", name, err)
	}
	return s.adopt(newLog(s, name, source))
}

// adopt registers a log so that Close finds it.
func (s *Store) adopt(l *Log) (store.Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		l.source.Close()
		return nil, s.fail("open", l.name, store.ErrClosed)
	}
	s.logs[l] = struct{}{}
	return l, nil
}

func (s *Store) forget(l *Log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.logs, l)
}

// Close closes the store and every log opened from it.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	logs := make([]*Log, 0, len(s.logs))
	for l := range s.logs {
		logs = append(logs, l)
	}
	s.mu.Unlock()
	var errs []error
	for _, l := range logs {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// check refuses what makes every operation impossible: a closed store, a done context,
// and (unless name is empty because there is none) a bad name.
func (s *Store) check(ctx context.Context, op, name string) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return &store.Error{Op: op, Name: name, Kind: store.ErrClosed, Err: errors.New("the store was closed")}
	}
	if op != "list" {
		if err := store.CheckName(name); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// fail wraps an error with the operation and the file, and with one of the store's kinds if
// one fits.
func (s *Store) fail(op, name string, err error) error {
	var done *store.Error
	if errors.As(err, &done) {
		return err
	}
	e := &store.Error{Op: op, Name: name, Path: s.dir, Err: err}
	if name != "" {
		e.Path = s.Path(name)
	}
	for _, kind := range []error{store.ErrClosed, store.ErrExist, store.ErrNotExist, store.ErrLocked, store.ErrCorrupt, store.ErrInvalid} {
		if err == kind {
			e.Kind, e.Err = kind, nil
			return e
		}
	}
	switch {
	case err == fs.ErrNotExist:
		e.Kind, e.Err = store.ErrNotExist, nil // the kind says it all
	case errors.Is(err, fs.ErrNotExist):
		e.Kind = store.ErrNotExist
	case errors.Is(err, fs.ErrExist):
		e.Kind = store.ErrExist
	case errors.Is(err, vfs.ErrSymlink), errors.Is(err, vfs.ErrNotRegular):
		e.Kind = store.ErrInvalid
	case errors.Is(err, store.ErrTooLarge):
		e.Kind = store.ErrTooLarge
	}
	return e
}

// mkdir creates a directory of the store and makes it durable, once. An existing directory
// may not be durable yet: the process that created it may have been killed before the sync,
// and a power cut would then lose our files with the directory.
func (s *Store) mkdir(dir string) error {
	s.mu.Lock()
	durable, known := s.durable[dir], s.made[dir]
	s.mu.Unlock()
	if durable {
		return nil
	}
	parent := filepath.Dir(dir)
	if dir != s.dir {
		if parent == dir {
			return &store.Error{Op: "make directory", Path: dir, Kind: store.ErrInvalid, Err: errors.New("it is not in the store " + s.dir)}
		}
		if err := s.mkdir(parent); err != nil {
			return err
		}
	}
	if !known {
		// MkdirAll would recreate the whole store if it was moved away.
		if _, err := s.fs.Lstat(parent); dir != s.dir && err != nil {
			return err
		}
		if err := s.fs.MkdirAll(dir, dirPerm); err != nil {
			return err
		}
	}
	var err error
	switch {
	case s.opts.Sync == Never:
	case dir == s.dir:
		err = vfs.SyncUp(s.fs, dir, dirPerm)
	default:
		err = s.fs.SyncDir(parent)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.made[dir], s.durable[dir] = true, true
	s.mu.Unlock()
	return nil
}

// openIn opens or creates a file in a directory of .coppice. If that directory, or all of
// .coppice, was deleted, it recreates it, as the next process would.
func (s *Store) openIn(dir, path string, flag int) (vfs.File, error) {
	var f vfs.File
	err := s.again(func() error {
		err := s.mkdir(dir)
		if err == nil {
			f, err = s.fs.OpenFile(path, flag, filePerm)
		}
		return err
	})
	return f, err
}

// again calls do a second time if it failed because a directory of the store has vanished. It
// does not recreate the store's own directory.
func (s *Store) again(do func() error) error {
	err := do()
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	isBelow := func(dir string, _ bool) bool { return dir != s.dir }
	s.mu.Lock()
	maps.DeleteFunc(s.made, isBelow)
	maps.DeleteFunc(s.durable, isBelow)
	s.twin = nil
	s.mu.Unlock()
	return do()
}

// knows reports whether a directory existed before. One that has vanished since is not
// recreated: its content is gone, and the user must see that.
func (s *Store) knows(dir string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made[dir]
}

// syncDir makes renames in a directory durable, unless the store never syncs. If it
// fails, they have happened, but a crash may undo them.
func (s *Store) syncDir(dir string) error {
	if s.opts.Sync == Never {
		return nil
	}
	if err := s.fs.SyncDir(dir); err != nil {
		return &store.Error{Op: "sync", Path: dir, Kind: store.ErrUnknown, Err: err}
	}
	return nil
}
