// Package backup makes backups of stores, checks them, and restores stores from them.
//
// A backup holds every file that a store must not lose (see file.Store.Keep) and a
// manifest: a line for each file, with its size and its SHA-256, and a hash over all of
// these lines. It is one of two things:
//
//	DIR/manifest.jsonl        what the backup holds; replaced as a whole, and last
//	DIR/objects/ab/abcdef…    the content of a file, named by its SHA-256
//	DIR/lock                  locked by a writer, shared by readers
//
//	FILE.tar.zst              manifest.jsonl, then home/… for each file of the store
//
// Content that a directory already has is read and compared with its hash, and copied
// again only if it is damaged. Bit rot changes neither the size nor the time of a file,
// so nothing less would show it. Content that the new manifest does not name is deleted
// once the manifest is in place; so a backup never keeps what was redacted since.
// Whenever the program or the machine stops, either the old backup or the new one is
// whole. A file is such a directory that is made beside it, and then packed.
//
// Copying, in package upkeep, is different: it merges two stores, of any kind, entry by entry, and
// leaves both in use. A backup is the bytes of one, damage and all.
//
// A store is read while others write to it, without a lock: see copier.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
)

// Ending is the ending of the name of a backup that is a single file.
const Ending = ".tar.zst"

const (
	dirPerm  fs.FileMode = 0o700
	filePerm fs.FileMode = 0o600
)

// Request says where to make a backup.
type Request struct {
	// To is a directory, or a file whose name ends in Ending. What is there must be an
	// older backup, or an empty directory.
	To string
	// Partial replaces an older backup even if some files of the store cannot be read.
	Partial bool
	// Progress, if it is not nil, is called with the progress of the work, in bytes.
	Progress func(done, total int64)
	// FS is the file system of the backup. Default: the operating system's.
	FS vfs.FS
}

// Fault is a file of a home or of a backup, and what is wrong with it.
type Fault struct {
	Path string `json:"path"` // below the directory of the home
	Why  string `json:"why"`
	// Session is the session whose file it is, and Lost says that nothing of the file can
	// be restored.
	Session string `json:"session,omitempty"`
	Lost    bool   `json:"lost,omitempty"`
}

// Result is what was backed up.
type Result struct {
	Created  time.Time `json:"created"`
	Sessions int       `json:"sessions"` // those in the trash are not counted
	Files    int       `json:"files"`
	Size     int64     `json:"size"`    // of the files
	Copied   int       `json:"copied"`  // files that had to be written
	Written  int64     `json:"written"` // their size
	// Mended counts those that the older backup had, but damaged: its disk may be failing.
	Mended int `json:"mended,omitempty"`
	// Unread are the files of the home that could not be read, and Kept says that an older
	// backup was left as it is because of them.
	Unread []Fault `json:"unread"`
	Kept   bool    `json:"kept,omitempty"`
	// Older are damaged files of the home of which more can be read in the older backup. The backup
	// keeps that version, and has the damaged file in its quarantine.
	Older []Fault `json:"older,omitempty"`
	// Damaged is the list of what was redacted, if it cannot be read and the older backup has what
	// the home has lost. That is then not kept, because it may have something that was redacted.
	Damaged []Fault `json:"damaged,omitempty"`
}

// Make makes a backup of a store, or brings one up to date. An error without a result means that
// the older backup, if there is one, is as it was. One with a result may have come after the new
// backup was in place, because that is not durable (vfs.ErrNotDurable) or because what is no
// longer needed could not be deleted. A backup is made of files: of any other store the error
// matches errors.ErrUnsupported.
func Make(ctx context.Context, of store.Store, r Request) (result *Result, err error) {
	st, ok := store.As[*file.Store](of)
	if !ok {
		return nil, &store.Error{
			Op: "back up", Path: of.Where(), Kind: errors.ErrUnsupported, Err: errors.New("it has no files"),
			Hint: "export what you want to keep",
		}
	}
	if r.FS == nil {
		r.FS = vfs.OS{}
	}
	if r.Progress == nil {
		r.Progress = func(done, total int64) {}
	}
	to, err := open(st, r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, to.close()) }()
	t := &copier{store: st, to: to, have: make(map[string]copiedFile), progress: r.Progress}
	if err := t.run(ctx); err != nil {
		return nil, err
	}
	if err := t.keepBlobs(ctx); err != nil {
		return nil, err
	}
	m := t.manifest()
	result = t.result(m)
	if result.Kept = len(result.Unread) > 0 && to.had && !r.Partial; result.Kept {
		return result, nil
	}
	return result, to.publish(ctx, m, r.Progress)
}

// open returns the target that the request means.
func open(st *file.Store, r Request) (*target, error) {
	path, err := filepath.Abs(r.To)
	if err != nil || r.To == "" {
		return nil, invalid(r.To, errors.New("it names neither a directory nor a file"), "")
	}
	if inside(path, st.Where()) {
		return nil, invalid(path, errors.New("it is inside of the home that is backed up"), "choose a place outside, best on another disk")
	}
	info, err := r.FS.Lstat(path)
	absent := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !absent:
		return nil, err
	case !absent && info.IsDir():
		return openTarget(r.FS, path, false)
	case strings.HasSuffix(path, Ending) && (absent || info.Mode().IsRegular()):
		return openTarget(r.FS, path, true)
	case absent && !slices.Contains(otherEndings, strings.ToLower(filepath.Ext(path))):
		return openTarget(r.FS, path, false)
	}
	return nil, invalid(path, fmt.Errorf("a backup is a directory, or a file whose name ends in %s", Ending), "")
}

// otherEndings are file endings that a user might expect to work. A directory with such
// a name would be a surprise.
var otherEndings = []string{".zst", ".tar", ".gz", ".tgz", ".xz", ".bz2", ".zip", ".7z", ".jsonl", ".json", ".db"}

// inside reports whether a path is a directory or lies in it, links or not.
func inside(path, dir string) bool {
	dirs := []string{dir}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dirs = append(dirs, real)
	}
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return path == dir || strings.HasPrefix(path, dir+string(filepath.Separator))
	})
}

func invalid(path string, err error, hint string) error {
	return &store.Error{Op: "back up to", Path: path, Err: &refusal{err, store.ErrInvalid}, Hint: hint}
}

// refusal is the reason why a request makes no sense. Its text does not repeat its kind.
type refusal struct {
	error
	kind error
}

func (r *refusal) Is(target error) bool { return target == r.kind }

func locked(path string) error {
	return &store.Error{
		Op: "use the backup", Path: path, Kind: store.ErrLocked,
		Err: errors.New("another program is writing or reading it"), Hint: "try again when it is done",
	}
}
