package file_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

func sh(t *testing.T, command string) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

func mustRewrite(t *testing.T, st *file.Store, all ...store.Piece) {
	t.Helper()
	if _, err := mustRaw(t, st, "a").Rewrite(t.Context(), pieces(all...)); err != nil {
		t.Fatal(err)
	}
}

// Whatever happens to the file of a log that is open, an append that returns nil
// is in the log of that name.
func TestAcknowledgedAppendsAreInTheFileAtThePath(t *testing.T) {
	t.Parallel()
	skipWindows(t)
	ctx := context.Background()
	// The log has the lines one and two; other is another process's store.
	for name, test := range map[string]struct {
		do   func(t *testing.T, other *file.Store, dir, path string)
		want error // of the next append
	}{
		"nothing": {func(*testing.T, *file.Store, string, string) {}, nil},
		"a hard link": {func(t *testing.T, _ *file.Store, dir, path string) {
			must(t, os.Link(path, dir+"-backup"))
		}, nil},
		"a hard link, then archived": {func(t *testing.T, other *file.Store, dir, path string) {
			must(t, os.Link(path, dir+"-backup"))
			must(t, other.Archive(ctx, "a"))
		}, nil},
		"a hard link, then archived and brought back": {func(t *testing.T, other *file.Store, dir, path string) {
			must(t, os.Link(path, dir+"-backup"))
			must(t, other.Archive(ctx, "a"))
			must(t, other.Unarchive(ctx, "a"))
		}, nil},
		"a hard link, then rewritten": {func(t *testing.T, other *file.Store, dir, path string) {
			must(t, os.Link(path, dir+"-backup"))
			mustRewrite(t, other, store.Piece{Line: []byte("ONE")}, store.Piece{From: 4, To: 8})
		}, store.ErrReplaced},
		"a hard link, then removed": {func(t *testing.T, other *file.Store, dir, path string) {
			must(t, os.Link(path, dir+"-backup"))
			must(t, other.Remove(ctx, "a"))
		}, store.ErrNotExist},
		"a hard link, then deleted": {func(t *testing.T, other *file.Store, dir, path string) {
			must(t, os.Link(path, dir+"-backup"))
			must(t, os.Remove(path))
		}, store.ErrNotExist},
		"a snapshot, then removed and created again": {func(t *testing.T, other *file.Store, dir, path string) {
			sh(t, "cp -al "+dir+" "+dir+".snapshot")
			must(t, other.Remove(ctx, "a"))
			storetest.MustCreate(t, other, "a", "two", "one").Close()
		}, store.ErrReplaced},
		"a snapshot that takes the directory's place": {func(t *testing.T, _ *file.Store, dir, _ string) {
			sh(t, "cp -al "+dir+" "+dir+".snapshot && rm -rf "+dir+" && cp -a "+dir+".snapshot "+dir)
		}, nil},
		"the directory moved away": {func(t *testing.T, _ *file.Store, dir, _ string) {
			must(t, os.Rename(dir, dir+".moved"))
		}, store.ErrNotExist},
		"the directory moved away and back": {func(t *testing.T, _ *file.Store, dir, _ string) {
			must(t, os.Rename(dir, dir+".moved"))
			must(t, os.Rename(dir+".moved", dir))
		}, nil},
		"the file moved away": {func(t *testing.T, _ *file.Store, dir, path string) {
			must(t, os.Rename(path, dir+"-moved"))
		}, store.ErrNotExist},
		"the file moved away, a copy put in its place": {func(t *testing.T, _ *file.Store, _, path string) {
			sh(t, "mv "+path+" "+path+"~ && cp "+path+"~ "+path)
		}, nil},
		"an older copy put in its place": {func(t *testing.T, _ *file.Store, _, path string) {
			sh(t, "mv "+path+" "+path+"~ && head -n 1 "+path+"~ > "+path)
		}, store.ErrReplaced},
		"a longer copy put in its place": {func(t *testing.T, _ *file.Store, _, path string) {
			sh(t, "mv "+path+" "+path+"~ && (cat "+path+"~; echo three) > "+path)
		}, store.ErrConflict},
		"an edit with a backup": {func(t *testing.T, _ *file.Store, _, path string) {
			sh(t, "sed -i.bak s/two/TWO/ "+path)
		}, store.ErrReplaced},
		"an edit that changes nothing": {func(t *testing.T, _ *file.Store, _, path string) {
			sh(t, "sed -i.bak s/three/four/ "+path)
		}, nil},
		"a symbolic link to the file": {func(t *testing.T, _ *file.Store, dir, path string) {
			must(t, os.Rename(path, dir+"-moved"))
			must(t, os.Symlink(dir+"-moved", path))
		}, vfs.ErrSymlink},
		"a directory": {func(t *testing.T, _ *file.Store, dir, path string) {
			must(t, os.Rename(path, dir+"-moved"))
			must(t, os.Mkdir(path, 0o700))
		}, errAny},
		"no lock file": {func(t *testing.T, _ *file.Store, dir, _ string) {
			sh(t, "rm -f "+dir+"/.coppice/locks/*")
		}, nil},
		"lock files with a second name": {func(t *testing.T, other *file.Store, dir, path string) {
			sh(t, "mkdir "+dir+"-locks && ln "+dir+"/.coppice/locks/* "+dir+"-locks && rm "+dir+"/.coppice/locks/*")
			must(t, other.Archive(ctx, "a"))
		}, nil},
	} {
		for _, level := range []file.Sync{file.Always, file.Never} {
			t.Run(fmt.Sprintf("%s/%d", name, level), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "sessions")
				st, other := openAt(t, dir, &file.Options{Sync: level}), openAt(t, dir, nil)
				log := storetest.MustCreate(t, st, "a", "one")
				end := storetest.MustAppend(t, log, "two")
				test.do(t, other, dir, st.Path("a"))
				for i := range 3 {
					next, err := log.Append(t.Context(), end, fmt.Appendf(nil, "mine %d", i))
					if !errors.Is(err, test.want) && (test.want != errAny || err == nil) {
						t.Fatalf("append %d: got %v, want %v", i, err, test.want)
					}
					if err != nil {
						continue
					}
					end = next
					if got := mustReadAll(t, dir); !slices.Contains(got, fmt.Sprintf("mine %d", i)) {
						t.Fatalf("append %d returned nil, and the log of that name has %q", i, got)
					}
				}
			})
		}
	}
}

// errAny stands for any error.
var errAny = errors.New("any error")

// mustReadAll returns the lines of the log a, as a program that starts now sees
// them.
func mustReadAll(t *testing.T, dir string) []string {
	t.Helper()
	var lines []string
	for _, line := range storetest.MustRead(t, storetest.MustOpen(t, openAt(t, dir, nil), "a"), 0) {
		lines = append(lines, string(line.Data))
	}
	return lines
}

// A file that is exchanged while an append is on its way to the disk, by a
// program that knows nothing of locks, does not swallow the append in silence.
func TestFileExchangedDuringAppend(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do   func(t *testing.T, disk *vfstest.Memory, st *file.Store)
		want error
	}{
		"by a copy from before": {func(t *testing.T, disk *vfstest.Memory, st *file.Store) {
			putLog(t, disk, st.Path("a")+".new", []byte("one\n"))
			must(t, disk.Rename(st.Path("a")+".new", st.Path("a")))
		}, store.ErrUnknown},
		"by a copy that has it": {func(t *testing.T, disk *vfstest.Memory, st *file.Store) {
			putLog(t, disk, st.Path("a")+".new", []byte("one\ntwo\nthree\n"))
			must(t, disk.Rename(st.Path("a")+".new", st.Path("a")))
		}, nil},
		"by its archive": {func(t *testing.T, disk *vfstest.Memory, st *file.Store) {
			must(t, openAt(t, st.Where(), &file.Options{FS: disk}).Archive(t.Context(), "a"))
		}, nil},
		"removed": {func(t *testing.T, disk *vfstest.Memory, st *file.Store) {
			must(t, openAt(t, st.Where(), &file.Options{FS: disk}).Remove(t.Context(), "a"))
		}, nil},
		"moved away": {func(t *testing.T, disk *vfstest.Memory, st *file.Store) {
			must(t, disk.Rename(st.Path("a"), st.Path("b")))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			disk := vfstest.NewMemory()
			var st *file.Store
			armed := false
			st = open(t, &file.Options{FS: &vfstest.Faulty{FS: disk, Before: func(op vfstest.Op) error {
				if armed && op.Kind == vfstest.OpSync && op.Name == st.Path("a") {
					armed = false
					test.do(t, disk, st)
				}
				return nil
			}}})
			log := storetest.MustCreate(t, st, "a", "one")
			armed = true
			_, err := log.Append(t.Context(), 4, []byte("two"))
			if !errors.Is(err, test.want) {
				t.Errorf("append: %v, want %v", err, test.want)
			}
			if test.want != nil {
				_, err := log.Append(t.Context(), 8, []byte("three"))
				wantKind(t, err, store.ErrClosed, "open the session again")
			}
		})
	}
}

// Two writers still exclude each other after the lock files were exchanged under
// one of them.
func TestLocksRestoredFromACopy(t *testing.T) {
	t.Parallel()
	skipWindows(t)
	dir := filepath.Join(t.TempDir(), "sessions")
	var meanwhile func()
	a := openAt(t, dir, &file.Options{FS: &vfstest.Faulty{FS: vfs.OS{}, Before: func(op vfstest.Op) error {
		if op.Kind == vfstest.OpWrite && meanwhile != nil {
			meanwhile()
		}
		return nil
	}}})
	one := storetest.MustCreate(t, a, "a", "one")
	end := storetest.MustAppend(t, one, "two")
	locks := filepath.Join(dir, ".coppice", "locks")
	sh(t, "cp -a "+locks+" "+locks+"2 && rm -r "+locks+" && mv "+locks+"2 "+locks)
	two := storetest.MustOpen(t, openAt(t, dir, &file.Options{LockWait: time.Millisecond}), "a")
	meanwhile = func() {
		meanwhile = nil
		_, err := two.Append(t.Context(), end, []byte("theirs"))
		wantKind(t, err, store.ErrLocked)
	}
	storetest.MustAppend(t, one, "ours")
	if meanwhile != nil {
		t.Error("nothing was written")
	}
}
