package file_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// wantKind checks that an error is of a kind and that its text has the words
// that a reader needs.
func wantKind(t testing.TB, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("error is %v, want one that matches %q", err, kind)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not tell %q", err, word)
		}
	}
}

// linesOf returns the text of a log's lines, read forward.
func linesOf(t testing.TB, log store.Log) []string {
	t.Helper()
	var lines []string
	for _, line := range storetest.MustRead(t, log, 0) {
		lines = append(lines, string(line.Data))
	}
	return lines
}

func wantLines(t testing.TB, log store.Log, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, linesOf(t, log)); diff != "" {
		t.Fatalf("lines differ (-want +got):\n%s", diff)
	}
}

// openAt opens a store in a directory, as another process would.
func openAt(t testing.TB, dir string, o *file.Options) *file.Store {
	t.Helper()
	st, err := file.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// recorder is a disk in memory that keeps a list of what is done to it.
type recorder struct {
	vfstest.Faulty
	mu  sync.Mutex
	ops []vfstest.Op
}

func newRecorder() *recorder {
	r := &recorder{}
	r.FS = vfstest.NewMemory()
	r.Before = func(op vfstest.Op) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ops = append(r.ops, op)
		return nil
	}
	return r
}

// during returns the operations of the given kinds while f runs, in words.
func (r *recorder) during(kinds vfstest.OpKind, f func()) []string {
	r.mu.Lock()
	from := len(r.ops)
	r.mu.Unlock()
	f()
	r.mu.Lock()
	defer r.mu.Unlock()
	var words []string
	for _, op := range r.ops[from:] {
		if op.Kind&kinds == 0 {
			continue
		}
		word := op.Kind.String() + " " + place(op.Name)
		if op.To != "" {
			word += " to " + place(op.To)
		}
		words = append(words, word)
	}
	return words
}

// place is a path without what differs from run to run.
func place(path string) string {
	if dir, _ := filepath.Split(path); filepath.Base(dir) == "tmp" {
		return "tmp"
	}
	return filepath.Base(path)
}

// otherProcess runs this test binary as another process that does a job.
func otherProcess(t *testing.T, job, dir, name string) (*exec.Cmd, *bufio.Reader, io.Closer) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestOtherProcess$")
	cmd.Env = append(os.Environ(), "COPPICE_TEST_JOB="+job, "COPPICE_TEST_DIR="+dir, "COPPICE_TEST_LOG="+name)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	return cmd, bufio.NewReader(out), in
}

// TestOtherProcess is not a test but what otherProcess runs.
func TestOtherProcess(t *testing.T) {
	t.Parallel()
	dir, name := os.Getenv("COPPICE_TEST_DIR"), os.Getenv("COPPICE_TEST_LOG")
	switch os.Getenv("COPPICE_TEST_JOB") {
	case "append":
		appendInTurns(t, dir, name, "child")
	case "hold blobs":
		holdBlobsJob(t, dir)
	case "name blobs":
		nameBlobsJob(t, dir, name)
	case "hold":
		lock, err := vfs.OS{}.OpenFile(filepath.Join(dir, ".coppice", "locks", name+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := lock.TryLock(); !ok || err != nil {
			t.Fatalf("the lock is not free: %v", err)
		}
		fmt.Println("held")
		io.Copy(io.Discard, os.Stdin) // until the parent closes it
	}
}

const turns = 60

// appendInTurns appends numbered lines, each at the end that was seen last, and
// returns how often somebody else was faster.
func appendInTurns(t *testing.T, dir, name, who string) (conflicts int) {
	log := storetest.MustOpen(t, openAt(t, dir, &file.Options{Sync: file.Never}), name)
	at := storetest.MustEnd(t, log)
	for i := 0; i < turns; {
		end, err := log.Append(t.Context(), at, fmt.Appendf(nil, `{"who":%q,"n":%d}`, who, i))
		switch {
		case err == nil:
			at = end
			i++
		case errors.Is(err, store.ErrConflict):
			conflicts++
			at = storetest.MustEnd(t, log)
		default:
			t.Fatal(err)
		}
	}
	return conflicts
}

// Two processes that append to one log never get their lines mixed up.
func TestProcessesDoNotInterleave(t *testing.T) {
	t.Parallel()
	st := open(t, &file.Options{Sync: file.Never})
	log := storetest.MustCreate(t, st, "a", "{}")
	stale := storetest.MustEnd(t, log)
	cmd, _, _ := otherProcess(t, "append", st.Where(), "a")
	for storetest.MustEnd(t, log) == stale {
		time.Sleep(time.Millisecond)
	}
	if _, err := log.Append(t.Context(), stale, []byte(`{"who":"nobody"}`)); !errors.Is(err, store.ErrConflict) {
		t.Errorf("append at a stale end = %v, want %v", err, store.ErrConflict)
	}
	appendInTurns(t, st.Where(), "a", "parent")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int)
	for _, line := range linesOf(t, log)[1:] {
		var who string
		var n int
		if _, err := fmt.Sscanf(line, `{"who":%q,"n":%d}`, &who, &n); err != nil || n != counts[who] {
			t.Fatalf("line %q after %d of its writer: %v", line, counts[who], err)
		}
		counts[who]++
	}
	if want := map[string]int{"parent": turns, "child": turns}; !cmp.Equal(counts, want) {
		t.Errorf("lines by writer: %v, want %v", counts, want)
	}
}

// However many lines an append has, it costs one write and one sync.
func TestAppendIsOneWriteAndOneSync(t *testing.T) {
	t.Parallel()
	disk := newRecorder()
	log := storetest.MustCreate(t, openAt(t, "/s", &file.Options{FS: disk}), "a", "{}")
	storetest.MustAppend(t, log, "the first append also looks the file up")
	for _, lines := range []int{1, 2, 1000} {
		got := disk.during(vfstest.OpMutating, func() {
			storetest.MustAppend(t, log, slices.Repeat([]string{`{"n":1}`}, lines)...)
		})
		if want := []string{"write a.jsonl", "sync a.jsonl"}; !cmp.Equal(got, want) {
			t.Errorf("an append of %d lines did %q, want %q", lines, got, want)
		}
	}
	if got := disk.during(vfstest.OpMutating, func() { storetest.MustAppend(t, log) }); got != nil {
		t.Errorf("an append of no lines did %q", got)
	}
}

// A new log is on the disk before its name is.
func TestCreateSyncsFileThenName(t *testing.T) {
	t.Parallel()
	disk := newRecorder()
	st := openAt(t, "/s", &file.Options{FS: disk})
	storetest.MustCreate(t, st, "first", "{}") // makes the directories
	got := disk.during(vfstest.OpMutating&^vfstest.OpMkdir, func() { storetest.MustCreate(t, st, "a", "{}", "{}") })
	want := []string{"create a.lock", "create a" /* its mark */, "create tmp", "write tmp", "sync tmp", "create tmp to a.jsonl", "remove tmp", "syncdir s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("creating a log (-want +got):\n%s", diff)
	}
}

// Appends that wait for the disk at the same time wait for one sync.
func TestGroupCommit(t *testing.T) {
	t.Parallel()
	const appends = 64
	var started sync.WaitGroup // a sync of an append takes until all others have begun
	disk := &vfstest.Faulty{FS: vfstest.NewMemory(), Before: func(op vfstest.Op) error {
		if op.Kind == vfstest.OpSync {
			started.Wait()
		}
		return nil
	}}
	log := storetest.MustCreate(t, openAt(t, "/s", &file.Options{FS: disk}), "a", "{}")
	before := disk.Count(vfstest.OpSync)
	var mu sync.Mutex // guards at
	at := storetest.MustEnd(t, log)
	var wg sync.WaitGroup
	started.Add(appends)
	for i := range appends {
		wg.Go(func() {
			mu.Lock()
			end, commit, err := log.Start(t.Context(), at, fmt.Appendf(nil, `{"n":%d}`, i))
			at = end
			mu.Unlock()
			started.Done()
			if err == nil {
				err = commit()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if syncs := disk.Count(vfstest.OpSync) - before; syncs == 0 || syncs > 2 {
		t.Errorf("%d appends took %d syncs", appends, syncs)
	}
	if got := len(linesOf(t, log)); got != appends+1 {
		t.Errorf("%d lines, want %d", got, appends+1)
	}
}

func TestEverySyncsInTheBackground(t *testing.T) {
	t.Parallel()
	disk := &vfstest.Faulty{FS: vfstest.NewMemory()}
	began := time.Now()
	log := storetest.MustCreate(t, openAt(t, "/s", &file.Options{FS: disk, Sync: file.Every(20 * time.Millisecond)}), "a", "{}")
	before := disk.Count(vfstest.OpSync)
	for range 5 {
		storetest.MustAppend(t, log, "{}")
	}
	if syncs := disk.Count(vfstest.OpSync) - before; syncs > 0 && time.Since(began) < 20*time.Millisecond {
		t.Errorf("%d syncs at once", syncs)
	}
	deadline := time.Now().Add(time.Minute)
	for disk.Count(vfstest.OpSync) == before {
		if time.Now().After(deadline) {
			t.Fatal("no sync")
		}
		time.Sleep(time.Millisecond)
	}
	// Close does not leave it to a timer.
	log = storetest.MustCreate(t, openAt(t, "/s", &file.Options{FS: disk, Sync: file.Every(time.Hour)}), "b", "{}")
	before = disk.Count(vfstest.OpSync)
	storetest.MustAppend(t, log, "{}")
	if err := log.Close(); err != nil || disk.Count(vfstest.OpSync) == before {
		t.Errorf("Close() = %v, %d syncs", err, disk.Count(vfstest.OpSync)-before)
	}
}

func TestNeverDoesNotSync(t *testing.T) {
	t.Parallel()
	disk := &vfstest.Faulty{FS: vfstest.NewMemory()}
	st := openAt(t, "/s", &file.Options{FS: disk, Sync: file.Never})
	log := storetest.MustCreate(t, st, "a", "{}")
	storetest.MustAppend(t, log, "{}")
	storetest.MustPut(t, st.Blobs(), []byte("blob"))
	for _, err := range []error{
		st.Archive(t.Context(), "a"), st.Unarchive(t.Context(), "a"), log.Close(), st.Remove(t.Context(), "a"), st.Close(),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if n := disk.Count(vfstest.OpSync | vfstest.OpSyncDir); n > 0 {
		t.Errorf("%d syncs", n)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	st := open(t, &file.Options{MaxLine: 10, MaxLog: 30})
	log := storetest.MustCreate(t, st, "a", "1234567890")
	at := storetest.MustEnd(t, log)
	_, err := log.Append(t.Context(), at, []byte("{}"), []byte("12345678901"))
	wantKind(t, err, store.ErrTooLarge, "append", `"a"`, "11 bytes", "limit is 10", "max_entry")
	_, err = log.Append(t.Context(), at, []byte("1234567890"), []byte("123456789"))
	wantKind(t, err, store.ErrTooLarge, "append", st.Path("a"), "32 bytes", "limit is 30")
	_, err = st.Create(t.Context(), "b", store.Lines([]byte("12345678901")))
	wantKind(t, err, store.ErrTooLarge, "11 bytes", "limit is 10")
	if _, err := st.Open(t.Context(), "b"); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("a log that was refused is there: %v", err)
	}
	wantLines(t, log, "1234567890")
	storetest.MustAppend(t, log, "1234567890", "1234567") // just fits
	if storetest.MustEnd(t, log) != 30 {
		t.Errorf("the log has %d bytes, want 30", storetest.MustEnd(t, log))
	}
}

func TestAppendRefuses(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	log := storetest.MustCreate(t, st, "a", "{}")
	end := storetest.MustEnd(t, log)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name  string
		ctx   context.Context
		at    store.Pos
		line  string
		kind  error
		words []string
	}{
		{"newline", t.Context(), end, "a\nb", store.ErrInvalid, []string{`append "a"`, "newline at byte 1"}},
		{"negative", t.Context(), -1, "{}", store.ErrInvalid, []string{"append", "position is negative"}},
		{"before the end", t.Context(), 0, "{}", store.ErrConflict, []string{"append", st.Path("a"), "ends at byte 3"}},
		{"after the end", t.Context(), end + 1, "{}", store.ErrConflict, []string{"at byte 4", "ends at byte 3"}},
		{"cancelled", cancelled, end, "{}", context.Canceled, nil},
	} {
		got, err := log.Append(test.ctx, test.at, []byte(test.line))
		if got != test.at {
			t.Errorf("%s: end is %d, want %d", test.name, got, test.at)
		}
		wantKind(t, err, test.kind, test.words...)
	}
	wantLines(t, log, "{}")
}

// The end that a conflict reports is right also when the append has first
// completed what a crashed writer left.
func TestConflictTellsTheEnd(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	log := storetest.MustCreate(t, st, "a", "{}")
	writeRaw(t, st.Path("a"), `{"whole":true}`)
	_, err := log.Append(t.Context(), 3, []byte("{}"))
	wantKind(t, err, store.ErrConflict, "ends at byte 18")
	wantLines(t, log, "{}", `{"whole":true}`)
}

// writeRaw appends bytes to a file past the store.
func writeRaw(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func mustReadFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A file that may not be written can be read, and says why it takes no append.
func TestReadOnlyFile(t *testing.T) {
	t.Parallel()
	disk := vfstest.NewMemory()
	storetest.MustCreate(t, openAt(t, "/s", &file.Options{FS: disk}), "a", "{}")
	log := storetest.MustOpen(t, openAt(t, "/s", &file.Options{FS: readOnly{disk}}), "a")
	wantLines(t, log, "{}")
	_, err := log.Append(t.Context(), 3, []byte("{}"))
	wantKind(t, err, os.ErrPermission, "append", "a.jsonl", "permission denied")
	wantLines(t, log, "{}")
}

// readOnly lets logs be opened only for reading.
type readOnly struct{ vfs.FS }

func (r readOnly) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	if strings.HasSuffix(name, ".jsonl") && flag&os.O_RDWR != 0 {
		return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrPermission}
	}
	return r.FS.OpenFile(name, flag, perm)
}

// An append to a log whose file was put aside by hand does not go to a file
// that nobody will find.
func TestAppendToDeletedFile(t *testing.T) {
	t.Parallel()
	skipWindows(t)
	st := open(t, nil)
	log := storetest.MustCreate(t, st, "a", `{"id":"first"}`)
	storetest.MustAppend(t, log, "{}")
	end := storetest.MustEnd(t, log)
	if err := os.Remove(st.Path("a")); err != nil {
		t.Fatal(err)
	}
	_, err := log.Append(t.Context(), end, []byte("{}"))
	wantKind(t, err, store.ErrNotExist, "append", st.Path("a"))
	// Nor to another log that got the name.
	storetest.MustCreate(t, st, "a", `{"id":"second"}`)
	_, err = log.Append(t.Context(), end, []byte("{}"))
	wantKind(t, err, store.ErrReplaced, "append", st.Path("a"))
	if got := mustReadFile(t, st.Path("a")); !bytes.Equal(got, []byte("{\"id\":\"second\"}\n")) {
		t.Errorf("the new log has %q", got)
	}
}
