package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"

	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// # The files of an index
//
// An index is three files: the database, its write-ahead log (-wal) and the shared
// memory by which processes agree on the log (-shm). SQLite finds the last two by
// name. A user may delete any of them at any time, and SQLite does not notice: a new
// database is read with the log of the old one, or a database loses what was only in
// its log, and queries return too little without an error. These rules prevent that.
//
// The rules. "The files" are the three that have their names now.
//
//  1. A fourth file, with .lock after the database's name, is locked while a process
//     opens a connection, writes, or closes. Our code creates, deletes and writes the
//     three only under that lock.
//  2. Opening records which files were opened, after a first read has made SQLite open
//     them all. Every further connection must get the same files.
//  3. A writer checks, under the lock, that the files are still the ones it opened. If
//     not, it writes nothing and opens again. So all writers agree on all three files,
//     and SQLite's own locks do the rest.
//  4. Before a write that may for a time be only in the -wal, the lock file gets a
//     mark. The mark is removed, under the lock, once the whole -wal is in the database.
//  5. Opening with a mark but without a -wal, a -shm or a database deletes what is left
//     and starts with an empty database.
//  6. A reader checks afterwards that the files are still the ones it read from. If
//     not, it drops the answer, opens again, catches up, and reads again. Until it has
//     caught up, the other goroutines of the process do not read that database either.
//  7. The database counts its changes. Closing it with an empty -wal records the number
//     in the lock file. A database with fewer changes is an older copy that was put
//     back. It counts as damaged, because it claims to have indexed what it lacks.
//  8. A reader need not wait for a process that holds the lock and hangs. If the index
//     was complete once, the reader takes it as it is, and checks before and after that
//     the files are the same: all three, or the database alone without a mark. A
//     database alone is open in no process; it is read in a way that creates no other
//     file, and must not change or get the other two while it is read.
//
// Why an answer is right, then. After the read the files were the reader's. A deleted
// file's number cannot be used again while the reader has it open, so they were the
// reader's all along. By 3, everything written during the read went to the same three.
// By 4 and 5, the database and the log belonged together: had one been deleted while
// it was needed, the mark would have led to an empty database. And by 6, an empty
// database, or one that another process is still filling, is caught up first.
//
// Damage inside the files is another matter: see checksum.go.
//
// Not covered: a power cut followed by deleting the -wal; deleting the lock file and
// the -wal but not the database; putting back an older database with its lock file; and
// changing the -wal or the -shm while a process has them open.

// fileSuffixes are the suffixes of a database's files. The first three exist as long as it is
// open.
var fileSuffixes = []string{"", "-wal", "-shm", "-journal"}

const lockSuffix = ".lock"

// errReplaced means that a file of the index was deleted or replaced.
var errReplaced = room.ErrReplaced

// maxReplaced is how many times in a row an index is opened again because it was deleted
// during opening.
const maxReplaced = 5

// connector opens the connections of a database.
type connector struct {
	driver.Connector
	guard *guard
	path  string
	id    atomic.Pointer[identity] // nil while the database is being opened, under the lock
}

func newConnector(path string, g *guard, alone bool) (*connector, error) {
	if err := registerChecked(); err != nil {
		return nil, err
	}
	base, err := sqlite.NewConnector(dsn(path, alone))
	return &connector{Connector: base, guard: g, path: path}, err
}

// Connect implements driver.Connector: see rule 2.
func (c *connector) Connect(ctx context.Context) (conn driver.Conn, err error) {
	id := c.id.Load()
	if id == nil {
		return c.Connector.Connect(ctx)
	}
	open := func() error {
		if !id.holds(c.path) {
			return errReplaced
		}
		if conn, err = c.Connector.Connect(ctx); err != nil {
			return err
		}
		err := touch(ctx, conn)
		if err == nil && !id.holds(c.path) {
			err = errReplaced
		}
		if err != nil {
			conn.Close()
		}
		return err
	}
	if err = c.guard.hold(ctx, open); errors.Is(err, store.ErrLocked) {
		err = open() // rule 8
	}
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// touch reads something, so that SQLite opens all files.
func touch(ctx context.Context, conn driver.Conn) error {
	rows, err := conn.(driver.QueryerContext).QueryContext(ctx, `SELECT count(*) FROM (SELECT 1 FROM sessions LIMIT 1)`, nil)
	if err != nil {
		return err
	}
	err = rows.Next(make([]driver.Value, 1))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, rows.Close())
}

// openSoon is openFile for callers that cannot wait for long: rule 8.
func (r *Room) openSoon(ctx context.Context) error {
	patience := r.guard.patience
	r.guard.patience = r.soon
	err := r.openFile(ctx)
	r.guard.patience = patience
	if !errors.Is(err, store.ErrLocked) {
		return err
	}
	if r.openAsItIs(ctx) == nil {
		return nil
	}
	r.guard.stuck = false
	return r.openFile(ctx) // another process may be creating it
}

// openAsItIs opens an existing complete database without the lock.
func (r *Room) openAsItIs(ctx context.Context) error {
	before, err := identify(r.path)
	if err != nil {
		if _, marked, err := r.guard.read(); marked || err != nil {
			return errReplaced
		}
		if before, err = identifyAlone(r.path); err != nil {
			return err
		}
	}
	c, err := newConnector(r.path, r.guard, before.alone())
	if err != nil {
		return err
	}
	db := newDatabase(c)
	var version int
	err = db.DB.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version)
	if err == nil && version != schemaVersion {
		err = errOtherVersion
	}
	if err == nil {
		err = checkSchema(ctx, db.DB)
	}
	if err == nil && !db.isComplete(ctx) {
		err = errReplaced
	}
	if err == nil && !before.holds(r.path) {
		err = errReplaced
	}
	if err != nil {
		return errors.Join(err, db.Close())
	}
	db.setIdentity(before)
	if r.db != nil {
		_ = r.db.Close()
	}
	r.db = db
	return nil
}

// openFile opens the database, and creates or replaces it if necessary. The caller holds mu,
// or is the only user of the index.
func (r *Room) openFile(ctx context.Context) error {
	var err error
	for range maxReplaced {
		err = r.guard.hold(ctx, func() error { return r.openLocked(ctx) })
		if !isDamage(err) && !errors.Is(err, errOtherVersion) && !errors.Is(err, errReplaced) {
			return err
		}
	}
	return fmt.Errorf("the index was rebuilt %d times: %w", maxReplaced, err)
}

func (r *Room) openLocked(ctx context.Context) error {
	if err := r.prepareFiles(); err != nil {
		return err
	}
	before, err := os.Lstat(r.path)
	if err != nil {
		return fmt.Errorf("%w: %w", errReplaced, err)
	}
	c, err := newConnector(r.path, r.guard, false)
	if err != nil {
		return err
	}
	db := newDatabase(c)
	err = patiently(ctx, func() error { return prepare(ctx, db.DB, r.guard.mark) })
	if err == nil {
		err = r.checkAge(ctx, db)
	}
	if err == nil {
		err = db.identify(before)
	}
	if err == nil {
		db.behind.Store(true)
		r.db = db
		return nil
	}
	err = errors.Join(err, db.Close())
	if now, err2 := os.Lstat(r.path); err2 != nil || !os.SameFile(before, now) {
		return fmt.Errorf("%w: %w", errReplaced, err)
	}
	if errors.Is(err, errReplaced) || !isDamage(err) && !errors.Is(err, errOtherVersion) {
		return err
	}
	r.log.Warn("rebuilding the index", "path", r.path, "cause", err)
	r.rebuilt.Store(true)
	return errors.Join(err, r.discard(before))
}

// errOlder means that an older copy of the database was put back.
var errOlder = errors.New("the index is older than the one that was closed last")

// checkAge makes sure that the database has all the changes that it had before: rule 7.
func (r *Room) checkAge(ctx context.Context, db *database) error {
	had, _, err := r.guard.read()
	if err != nil {
		return err
	}
	has, err := db.changes(ctx)
	if err == nil && has < had {
		err = errOlder
	}
	return err
}

// prepareFiles makes sure that there is a database to open, and that the files beside it
// belong to it: rule 5. Anything that is not a regular file is not an index and is left
// alone; a symbolic link may point to another program's file, so the link is replaced.
func (r *Room) prepareFiles() error {
	_, marked, err := r.guard.read()
	if err != nil {
		return err
	}
	whole := true
	for i, suffix := range fileSuffixes {
		info, err := os.Lstat(r.path + suffix)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			whole = whole && i > 0 && (i == 3 || !marked)
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			whole = false
		case !info.Mode().IsRegular():
			return vfs.CheckRegular(r.path + suffix)
		case i == 0 && info.Size() == 0:
			whole = false // SQLite would create a database without room for checksums
		}
	}
	if whole {
		return nil
	}
	r.rebuilt.Store(true)
	if err := r.removeFiles(); err != nil {
		return err
	}
	// SQLite would create a file that all users can read.
	f, err := vfs.OS{KeepOwner: true}.OpenFile(r.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return errReplaced // by a program that does not know the lock
	}
	if err != nil {
		return err
	}
	_, err = f.Write(emptyDatabase())
	return errors.Join(err, f.Close())
}

// discard deletes the database, unless another has already replaced it. It needs the lock.
func (r *Room) discard(old fs.FileInfo) error {
	if now, err := os.Lstat(r.path); err == nil && !os.SameFile(old, now) {
		return nil
	}
	return r.removeFiles()
}

func (r *Room) removeFiles() error {
	var errs []error
	for _, suffix := range fileSuffixes {
		if err := os.Remove(r.path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errors.Join(errs...), r.guard.unmark(0))
}

// reset replaces an unusable database by an empty one. It does nothing if that was done
// already.
func (r *Room) reset(ctx context.Context, damaged *database) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.db != damaged {
		return nil
	}
	return r.replace(ctx)
}

// replace replaces the open database by an empty one. The caller holds mu.
func (r *Room) replace(ctx context.Context) error {
	return r.guard.hold(ctx, func() error {
		_ = r.db.Close() // it is being replaced because it is broken
		if err := r.discard(r.db.id[0]); err != nil {
			return err
		}
		return r.openFile(ctx)
	})
}

// Delete deletes the index in the file at path and reports whether there was one.
// A Room that has it open, in this process or another, starts again from the logs.
// Some systems do not delete open files; there, call Discard of the open Room instead.
func Delete(ctx context.Context, path string) (had bool, err error) {
	for _, suffix := range fileSuffixes {
		if _, err := os.Lstat(path + suffix); err == nil {
			had = true
		} else if !errors.Is(err, fs.ErrNotExist) {
			return false, &store.Error{Op: "delete index", Path: path, Err: err}
		}
	}
	if !had { // do not create a lock file, or its directory, for nothing
		return false, nil
	}
	r := &Room{path: path, guard: newGuard(path)}
	defer r.guard.close()
	if err := r.guard.hold(ctx, r.removeFiles); err != nil {
		return had, &store.Error{Op: "delete index", Path: path, Err: r.Explain(err)}
	}
	return had, nil
}

// Discard implements room.Room. Running queries finish first.
func (r *Room) Discard(ctx context.Context) error {
	return r.alone(func() error {
		return r.guard.hold(ctx, func() error {
			_ = r.db.Close() // nothing in it is needed any more
			return r.removeFiles()
		})
	})
}

// Follow implements room.Room. It opens the database again if other files have its names now,
// or if it was opened read-only.
func (r *Room) Follow(ctx context.Context) error {
	inUse := func() bool { return r.closed || r.db.current() && !r.db.id.alone() } // if closed, the next use reports it
	r.mu.RLock()
	current := inUse()
	r.mu.RUnlock()
	if current { // nearly always: do not wait for readers
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if inUse() {
		return nil
	}
	err := r.guard.hold(ctx, func() error {
		_ = r.db.Close()
		return r.openFile(ctx)
	})
	if errors.Is(err, store.ErrLocked) && (r.db.current() || r.openAsItIs(ctx) == nil) {
		return nil // rule 8
	}
	return err
}

// leave closes the database. It needs the lock: SQLite deletes the -wal with the last
// connection, and another process must not take that for a user's deletion.
func (r *Room) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), busyMillis*time.Millisecond)
	defer cancel()
	closed := false
	err := r.guard.hold(ctx, func() error {
		if _, marked, err := r.guard.read(); err == nil && marked && r.db.current() && r.db.empty(ctx) {
			if changes, err := r.db.changes(ctx); err == nil {
				_ = r.guard.unmark(changes) // if this fails, the next close does it
			}
		}
		closed = true
		return r.db.Close()
	})
	if !closed {
		err = r.db.Close() // for example, the directory is gone
	}
	r.guard.close()
	return err
}
