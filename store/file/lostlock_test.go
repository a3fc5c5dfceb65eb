package file_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// Somebody deletes the lock file while a log is moved between its two forms, and
// another program gets to work with a lock file of its own. Whatever that program
// was told is in the log is still there afterwards.
func TestLockFileDeletedWhileALogMoves(t *testing.T) {
	skipWindows(t)
	t.Parallel()
	const plain, archive = "a.jsonl", "a.jsonl.zst"
	for name, test := range map[string]struct {
		archived bool // at the beginning
		work     func(t *testing.T, st *file.Store) error
		at       func(op vfstest.Op) bool // the moment at which the lock file is deleted
		meddle   func(t *testing.T, st *file.Store, log store.Log) error
	}{
		"append before the plain file goes": {
			work: func(t *testing.T, st *file.Store) error { return st.Archive(t.Context(), "a") },
			at:   func(op vfstest.Op) bool { return op.Kind == vfstest.OpRemove && filepath.Base(op.Name) == plain },
			meddle: func(t *testing.T, _ *file.Store, log store.Log) error {
				return appendOne(t, log)
			},
		},
		"unarchive before the plain file goes": {
			work: func(t *testing.T, st *file.Store) error { return st.Archive(t.Context(), "a") },
			at:   func(op vfstest.Op) bool { return op.Kind == vfstest.OpRemove && filepath.Base(op.Name) == plain },
			meddle: func(t *testing.T, st *file.Store, _ store.Log) error {
				return st.Unarchive(t.Context(), "a")
			},
		},
		"append before the plain file comes": {
			archived: true,
			work:     func(t *testing.T, st *file.Store) error { return st.Unarchive(t.Context(), "a") },
			at:       func(op vfstest.Op) bool { return filepath.Base(op.To) == plain },
			meddle: func(t *testing.T, _ *file.Store, log store.Log) error {
				return appendOne(t, log)
			},
		},
		"archive before the archive goes": {
			archived: true,
			work:     func(t *testing.T, st *file.Store) error { return st.Unarchive(t.Context(), "a") },
			at:       func(op vfstest.Op) bool { return op.Kind == vfstest.OpRemove && filepath.Base(op.Name) == archive },
			meddle: func(t *testing.T, st *file.Store, _ store.Log) error {
				return st.Archive(t.Context(), "a")
			},
		},
		"append before an archived log is removed": {
			archived: true,
			work:     func(t *testing.T, st *file.Store) error { return st.Remove(t.Context(), "a") },
			at:       func(op vfstest.Op) bool { return op.Kind == vfstest.OpMkdir && filepath.Base(op.Name) == "trash" },
			meddle: func(t *testing.T, _ *file.Store, log store.Log) error {
				return appendOne(t, log)
			},
		},
		"create before a log is created": {
			work:   func(t *testing.T, st *file.Store) error { return createB(t, st) },
			at:     func(op vfstest.Op) bool { return filepath.Base(op.To) == "b.jsonl" },
			meddle: func(t *testing.T, st *file.Store, _ store.Log) error { return createB(t, st) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := open(t, &file.Options{LockWait: 20 * time.Millisecond, Sync: file.Never})
			storetest.MustCreate(t, other, "a", "0").Close()
			// A handle from when the log was archived has no plain file locked.
			must(t, other.Archive(t.Context(), "a"))
			theirs := storetest.MustOpen(t, other, "a")
			if !test.archived {
				must(t, other.Unarchive(t.Context(), "a"))
			}
			want := []string{"0"}
			var met atomic.Bool
			disk := &vfstest.Faulty{FS: vfs.OS{}, Before: func(op vfstest.Op) error {
				if test.at(op) && met.CompareAndSwap(false, true) {
					must(t, os.RemoveAll(filepath.Join(other.Where(), ".coppice", "locks")))
					must(t, os.Mkdir(filepath.Join(other.Where(), ".coppice", "locks"), 0o700))
					err := test.meddle(t, other, theirs)
					if err != nil && !errors.Is(err, store.ErrLocked) && !errors.Is(err, store.ErrExist) {
						t.Error(err)
					}
					if err == nil && test.archived && op.Kind != vfstest.OpRemove {
						want = append(want, "1")
					}
				}
				return nil
			}}
			err := test.work(t, openAt(t, other.Where(), &file.Options{FS: disk, LockWait: time.Second, Sync: file.Never}))
			if err != nil && !errors.Is(err, store.ErrExist) && !errors.Is(err, store.ErrNotExist) {
				t.Error(err)
			}
			if !met.Load() {
				t.Fatal("the moment never came")
			}
			wantLines(t, storetest.MustOpen(t, openAt(t, other.Where(), nil), "a"), want...)
			if got := quarantined(t, other); got != nil {
				t.Errorf("%d files are in quarantine", len(got))
			}
		})
	}
}

func createB(t *testing.T, st *file.Store) error {
	log, err := st.Create(t.Context(), "b", store.Lines([]byte(st.Where())))
	if err == nil {
		err = log.Close()
	}
	return err
}

// appendOne appends a line after the first. It does not ask for the end, which would
// put the handle onto the file that has the log's name by now.
func appendOne(t *testing.T, log store.Log) error {
	_, err := log.Append(t.Context(), store.Pos(len("0\n")), []byte("1"))
	return err
}
