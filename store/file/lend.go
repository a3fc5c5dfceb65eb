package file

import (
	"errors"
	"io/fs"
	"os"

	"github.com/coppice-dev/coppice/store/vfs"
)

// spareLock is a lock file that a batch lends to one name after the other.
//
// A batch needs the lock of each of its names for the moment of a rename. Making a lock file
// for that and removing it again costs more than all the rest, because a file system that
// does not hand out the number of a removed file too soon (ext4 for one) has to search
// further and further for a free one. So one file, locked before any other process can see
// it, gets the name of each lock in turn, as a link, and loses it again.
//
// To other processes it is a lock like any other. A link is made only if the name is free,
// just as only one process creates a lock file. A process that opens it in the meantime waits
// for us and then checks, as always, whether the file that it has locked still has its name;
// it has not, so the process creates a lock file itself. It never has the names of two locks:
// two logs that share a lock would wait for one another for no reason.
type spareLock struct {
	store *Store
	path  string
	file  vfs.File // locked; nil if there is nothing to lend
}

// spareLock returns one. If that fails, it has nothing to lend, and each name gets a lock
// file as usual.
func (s *Store) spareLock() *spareLock {
	l := &spareLock{store: s}
	if openFilesKeepNames || s.mkdir(s.housePath("tmp")) != nil || s.mkdir(s.housePath("locks")) != nil {
		return l
	}
	l.path = s.temp()
	var err error
	if l.file, err = s.fs.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, filePerm); err != nil {
		l.file = nil
		return l
	}
	if ok, err := l.file.TryLock(); !ok || err != nil {
		l.close()
	}
	return l
}

// lend gives the locked file to a lock, and reports whether it did.
func (l *spareLock) lend(to *nameLock) bool {
	if l.file == nil {
		return false
	}
	path := l.store.lockPath(to.name)
	err := l.store.fs.Link(l.path, path)
	if err != nil {
		if !errors.Is(err, fs.ErrExist) {
			l.close() // it will not work for the next one either
		}
		return false
	}
	to.lender, to.file, to.path = l, l.file, path
	return true
}

// reclaim undoes lend. If the file's name cannot be removed, the file keeps it and is not
// lent again.
func (l *spareLock) reclaim(from *nameLock) {
	err := l.store.fs.Remove(from.path)
	if from.file = nil; err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.close()
	}
}

func (l *spareLock) close() {
	if l.file == nil {
		return
	}
	_ = l.store.fs.Remove(l.path) // a left-over file is harmless
	l.file.Close()
	l.file = nil
}
