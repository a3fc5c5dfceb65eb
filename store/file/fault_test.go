package file_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

const faultDir = "/store"

// TestFaults makes each operation of the disk fail once, in turn and in every
// way, during fixed work on two logs. Whatever was acknowledged must be durable
// at once; what returned an error must not have happened, unless the error is
// ErrUnknown; and the work must go on.
func TestFaults(t *testing.T) {
	t.Parallel()
	kinds := []vfstest.OpKind{
		vfstest.OpOpen, vfstest.OpCreate, vfstest.OpMkdir, vfstest.OpRename, vfstest.OpRemove, vfstest.OpWrite, vfstest.OpTruncate,
		vfstest.OpSync, vfstest.OpSyncDir, vfstest.OpRead, vfstest.OpStat, vfstest.OpLock, vfstest.OpUnlock, vfstest.OpClose,
	}
	clean := newFaultWork(t, nil)
	clean.all()
	if clean.failures > 0 {
		t.Fatalf("without a fault %d operations failed", clean.failures)
	}
	for _, kind := range kinds {
		count := clean.disk.Count(kind)
		if count == 0 {
			t.Errorf("the work has no operation of kind %v", kind)
		}
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			for name, cause := range faultCauses(kind) {
				every := int64(max(1, 3/soak.N(1))) // each way to fail at other operations
				for n := 1 + int64(len(name))%every; n <= count; n += every {
					w := newFaultWork(t, vfstest.FailAt(n, kind, cause))
					w.where = fmt.Sprintf("%s at %v %d of %d", name, kind, n, count)
					w.all()
				}
			}
			t.Logf("%d faults", count*int64(len(faultCauses(kind))))
		})
	}
}

func faultCauses(kind vfstest.OpKind) map[string]error {
	causes := map[string]error{"ENOSPC": syscall.ENOSPC, "EIO": syscall.EIO}
	if kind == vfstest.OpWrite {
		causes["short write of 1"] = &vfstest.ShortWrite{N: 1, Err: syscall.ENOSPC}
		causes["short write of a line"] = &vfstest.ShortWrite{N: len(faultLine("first", 0)) + 1, Err: syscall.ENOSPC}
		causes["short write of more"] = &vfstest.ShortWrite{N: 700, Err: syscall.EIO}
	}
	return causes
}

// faultWork is fixed work on a store, of which one operation fails.
type faultWork struct {
	t     *testing.T
	where string
	mem   *vfstest.Memory
	disk  *vfstest.Faulty
	gate  *faultGate
	store *file.Store
	logs  map[string]*faultLog
	blobs []store.Ref

	fired    bool // the fault has happened
	failures int  // operations that returned an error
	seq      int
}

// faultLog is what is known of a log.
type faultLog struct {
	handle store.Log
	lines  []string        // what was acknowledged, and what was found after ErrUnknown
	maybe  map[string]bool // lines of appends that ended in ErrUnknown, until seen
	places []string        // where it may be: "store", "trash", "nowhere"
}

func newFaultWork(t *testing.T, before func(vfstest.Op) error) *faultWork {
	w := &faultWork{t: t, mem: vfstest.NewMemory(), logs: make(map[string]*faultLog)}
	w.disk = &vfstest.Faulty{FS: w.mem, Before: func(op vfstest.Op) error {
		if before == nil {
			return nil
		}
		err := before(op)
		w.fired = w.fired || err != nil
		return err
	}}
	w.gate = newFaultGate(w.disk)
	w.reopenStore()
	return w
}

func (w *faultWork) errorf(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf(w.where+": "+format, args...)
}

// reopenStore goes on in another instance. Opening reads one directory's
// description, which may be what fails.
func (w *faultWork) reopenStore() {
	for range 2 {
		st, err := file.Open(faultDir, &file.Options{FS: w.gate})
		if err == nil {
			w.store = st
			for _, log := range w.logs {
				log.handle = nil
			}
			return
		}
		w.failures++
	}
	w.t.Fatalf("%s: the store cannot be opened", w.where)
}

// all is the work. It comes by every room of the store's house.
func (w *faultWork) all() {
	w.create("a")
	w.append("a", 1)
	w.append("a", 3)
	w.blob("some content")
	w.blob("some content")
	w.collect("litter")
	w.blob("litter") // which is needed after all
	w.archive("a")
	w.append("a", 1) // brings the plain file back
	w.create("b")
	w.append("b", 2)
	w.remove("b")
	w.restore("b")
	w.append("b", 1)
	w.tear("a", `{"torn":"in the mid`)
	w.append("a", 1)
	w.tear("a", `{"whole":"but for its end"}`)
	w.append("a", 2)
	w.closeStore()
	w.append("a", 1)
	w.append("b", 1)
	w.archive("b")
	w.remove("b")
	w.restore("b")
	w.closeStore()
	w.final()
}

func faultLine(log string, seq int) string {
	return fmt.Sprintf(`{"log":%q,"seq":%d,"pad":%q}`, log, seq, strings.Repeat("x", 300+seq*17))
}

// failed judges the error of an operation that is not an append: it must be
// ErrUnknown if the operation happened all the same.
func (w *faultWork) failed(op string, err error, happened bool) {
	w.failures++
	if happened && !errors.Is(err, store.ErrUnknown) {
		w.errorf("%s happened, but its error does not say so: %v", op, err)
	}
	w.check()
}

func (w *faultWork) create(name string) {
	head := faultLine(name, 0)
	for range 3 {
		handle, err := w.store.Create(context.Background(), name, store.Lines([]byte(head)))
		if err == nil {
			w.logs[name] = &faultLog{handle: handle, lines: []string{head}, maybe: map[string]bool{}, places: []string{"store"}}
			w.check()
			return
		}
		w.logs[name] = &faultLog{lines: []string{head}, maybe: map[string]bool{}, places: []string{"store", "nowhere"}}
		there := w.inStore(name)
		w.failed("create", err, there)
		if there {
			return // an append will settle that it stays
		}
	}
	w.t.Fatalf("%s: create did not recover", w.where)
}

// inStore looks past the faults.
func (w *faultWork) inStore(name string) bool {
	st, err := file.Open(faultDir, &file.Options{FS: w.mem})
	if err != nil {
		w.t.Fatal(err)
	}
	defer st.Close()
	log, err := st.Open(context.Background(), name)
	if err == nil {
		log.Close()
	}
	return err == nil
}

// append appends new lines, and again until it succeeds. A single fault may fail
// it once; after that the handle works, unless it says that it is poisoned.
func (w *faultWork) append(name string, n int) {
	log := w.logs[name]
	for range 4 {
		lines := make([][]byte, n)
		for i := range lines {
			w.seq++
			lines[i] = []byte(faultLine(name, w.seq))
		}
		err := w.tryAppend(log, name, lines)
		if err == nil {
			for _, line := range lines {
				log.lines = append(log.lines, string(line))
			}
			log.places = []string{"store"}
			w.check()
			return
		}
		if !errors.Is(err, store.ErrConflict) { // a repair completed a line
			w.failures++
		}
		w.judgeAppend(log, name, lines, err)
		w.check()
	}
	w.t.Fatalf("%s: append to %s did not recover", w.where, name)
}

func (w *faultWork) tryAppend(log *faultLog, name string, lines [][]byte) error {
	if log.handle == nil {
		handle, err := w.store.Open(context.Background(), name)
		if err != nil {
			return err
		}
		log.handle = handle
	}
	at, err := log.handle.End(context.Background())
	if err != nil {
		return err
	}
	_, err = log.handle.Append(context.Background(), at, lines...)
	return err
}

// judgeAppend holds the log against the error of an append.
func (w *faultWork) judgeAppend(log *faultLog, name string, lines [][]byte, err error) {
	found := w.read(w.mem, name)
	landed := 0
	for _, line := range lines {
		if slices.Contains(found, string(line)) {
			landed++
			log.maybe[string(line)] = true
		}
	}
	if landed > 0 && !errors.Is(err, store.ErrUnknown) {
		w.errorf("an append landed, but its error does not say so: %v", err)
	}
	if errors.Is(err, store.ErrUnknown) || strings.Contains(err.Error(), "syncing the repair") {
		w.tryPoisoned(log, name)
	}
}

// tryPoisoned appends once more through a handle whose last append had an
// unknown outcome. The handle may refuse, and must then say why; if it does not,
// the line must be durable like any other. The work goes on with a new handle.
func (w *faultWork) tryPoisoned(log *faultLog, name string) {
	if log.handle == nil {
		return
	}
	w.seq++
	line := faultLine(name, w.seq)
	err := w.tryAppend(log, name, [][]byte{[]byte(line)})
	switch {
	case err == nil:
		log.lines = append(log.lines, line)
	case errors.Is(err, store.ErrConflict): // a repair completed a line
	case !strings.Contains(err.Error(), "an earlier write or sync failed"):
		w.errorf("the error does not say why the handle takes no more: %v", err)
	}
	log.handle.Close()
	log.handle = nil
}

func (w *faultWork) blob(content string) {
	for range 2 {
		ref, err := w.store.Blobs().Put(context.Background(), []byte(content))
		if err == nil {
			w.blobs = append(w.blobs, ref)
			w.check()
			return
		}
		w.failures++
	}
	w.t.Fatalf("%s: put did not recover", w.where)
}

// collect puts a blob that nobody names, and has it deleted.
func (w *faultWork) collect(content string) {
	for range 3 {
		ref, err := w.store.Blobs().Put(context.Background(), []byte(content))
		if err == nil {
			_, err = w.store.Blobs().Collect(context.Background(), ref)
		}
		if err == nil {
			w.check()
			return
		}
		w.failures++
		w.check()
	}
	w.t.Fatalf("%s: collect did not recover", w.where)
}

func (w *faultWork) archive(name string) {
	for range 2 {
		err := w.store.Archive(context.Background(), name)
		if err == nil {
			w.check()
			return
		}
		w.failures++
		w.check()
	}
	w.t.Fatalf("%s: archive did not recover", w.where)
}

func (w *faultWork) remove(name string) {
	log := w.logs[name]
	if log.handle != nil {
		log.handle.Close()
		log.handle = nil
	}
	for range 2 {
		err := w.store.Remove(context.Background(), name)
		if err == nil {
			log.places = []string{"trash"}
			w.check()
			return
		}
		log.places = []string{"store", "trash"}
		there := w.inStore(name)
		w.failed("remove", err, !there)
		if !there {
			return
		}
	}
	w.t.Fatalf("%s: remove did not recover", w.where)
}

func (w *faultWork) restore(name string) {
	log := w.logs[name]
	for range 3 {
		trash, err := w.store.Trash().List(context.Background())
		if err != nil || len(trash) == 0 {
			w.failures++
			continue
		}
		err = w.store.Trash().Restore(context.Background(), trash[0].ID)
		if err == nil {
			log.places = []string{"store"}
			w.check()
			return
		}
		log.places = []string{"store", "trash"}
		there := w.inStore(name)
		w.failed("restore", err, there)
		if there {
			return
		}
	}
	w.t.Fatalf("%s: restore did not recover", w.where)
}

// tear leaves at the end of a log what a killed writer does.
func (w *faultWork) tear(name, torn string) {
	if log := w.logs[name]; log.handle != nil {
		log.handle.Close()
		log.handle = nil
	}
	f, err := w.mem.OpenFile(w.store.Path(name), os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		w.t.Fatalf("%s: %v", w.where, err)
	}
	defer f.Close()
	if _, err := f.Write([]byte(torn)); err != nil {
		w.t.Fatal(err)
	}
	w.logs[name].maybe[torn] = true
}

func (w *faultWork) closeStore() {
	if err := w.store.Close(); err != nil {
		w.failures++
	}
	w.reopenStore()
}

// check cuts the power, in the worst way and in a random one, and looks whether
// everything acknowledged is there and nothing that was never written.
func (w *faultWork) check() {
	w.t.Helper()
	if w.where != "" && !w.fired {
		return // so far as in the run without a fault
	}
	for _, disk := range []*vfstest.Memory{
		w.mem.CrashClone(nil, vfstest.LoseAll),
		w.mem.CrashClone(rand.New(rand.NewPCG(1, uint64(w.seq)))),
		w.mem,
	} {
		st, err := file.Open(faultDir, &file.Options{FS: disk})
		if err != nil {
			w.t.Fatal(err)
		}
		for name, log := range w.logs {
			w.checkLog(st, disk, name, log)
		}
		for _, ref := range w.blobs {
			if _, err := st.Blobs().Get(context.Background(), ref); err != nil {
				w.errorf("%v", err)
			}
		}
		st.Close()
	}
}

func (w *faultWork) checkLog(st *file.Store, disk *vfstest.Memory, name string, log *faultLog) {
	w.t.Helper()
	_, err := st.Open(context.Background(), name)
	if err == nil {
		if !slices.Contains(log.places, "store") {
			w.errorf("%s is in the store again", name)
		}
		w.checkLines(name, w.read(disk, name), log)
		return
	}
	trash, _ := st.Trash().List(context.Background())
	inTrash := slices.ContainsFunc(trash, func(item store.Trashed) bool { return item.Name == name })
	if !slices.Contains(log.places, "nowhere") && !(inTrash && slices.Contains(log.places, "trash")) {
		w.errorf("%s is lost: %v", name, err)
	}
}

// checkLines makes sure that the acknowledged lines are there, in order, and
// between them at most lines whose outcome was said to be unknown.
func (w *faultWork) checkLines(name string, found []string, log *faultLog) {
	w.t.Helper()
	want := log.lines
	for _, line := range found {
		switch {
		case len(want) > 0 && line == want[0]:
			want = want[1:]
		case log.maybe[line]:
		case strings.Contains(line, "\x00"): // torn by the cut
		default:
			w.errorf("%s has a line that was never written: %.120q", name, line)
		}
	}
	if len(want) > 0 {
		w.errorf("%s: of %d acknowledged lines %d are missing, the first is %.40q", name, len(log.lines), len(want), want[0])
	}
}

// read returns a log's lines from a disk without faults.
func (w *faultWork) read(disk *vfstest.Memory, name string) []string {
	st, err := file.Open(faultDir, &file.Options{FS: disk})
	if err != nil {
		w.t.Fatal(err)
	}
	defer st.Close()
	log, err := st.Open(context.Background(), name)
	if err != nil {
		return nil
	}
	var lines []string
	for line, err := range log.Forward(context.Background(), 0) {
		if err != nil {
			w.errorf("read %s: %v", name, err)
		}
		lines = append(lines, string(line.Data))
	}
	return lines
}

// final makes sure that the logs, after all, take appends from anybody.
func (w *faultWork) final() {
	w.append("a", 1)
	w.append("b", 1)
	if err := w.store.Close(); err != nil {
		w.failures++
	}
	w.check()
}

// faultGate is a disk that behaves after a failed sync as kernels do: it forgets
// that the file has anything to write, and says "fine" to every further sync of
// it without doing one. Only another file is honest again.
type faultGate struct {
	vfs.FS
	mu sync.Mutex // guards lies
	// lies has the files not to be trusted any more. It keeps them, lest
	// another file gets the id of one that is gone.
	lies map[vfs.FileID]vfs.File
}

func newFaultGate(inner vfs.FS) *faultGate {
	return &faultGate{FS: inner, lies: make(map[vfs.FileID]vfs.File)}
}

func (g *faultGate) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := g.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &faultGateFile{f, g}, nil
}

type faultGateFile struct {
	vfs.File
	gate *faultGate
}

func (f *faultGateFile) Sync() error {
	f.gate.mu.Lock()
	defer f.gate.mu.Unlock()
	if len(f.gate.lies) > 0 {
		if stat, err := f.Stat(); err == nil && f.gate.lies[stat.File] != nil {
			return nil
		}
	}
	err := f.File.Sync()
	if err != nil {
		if stat, statErr := f.Stat(); statErr == nil {
			f.gate.lies[stat.File] = f.File
		}
	}
	return err
}

// faultDisk is a disk on which the next operation of a kind fails when told to.
type faultDisk struct {
	t    *testing.T
	mem  *vfstest.Memory
	gate *faultGate
	fail atomic.Uint32 // the kinds
}

func newFaultDisk(t *testing.T) *faultDisk {
	d := &faultDisk{t: t, mem: vfstest.NewMemory()}
	d.gate = newFaultGate(&vfstest.Faulty{FS: d.mem, Before: func(op vfstest.Op) error {
		if kinds := d.fail.Load(); uint32(op.Kind)&kinds != 0 && d.fail.CompareAndSwap(kinds, 0) {
			return syscall.EIO
		}
		return nil
	}})
	return d
}

// open returns another instance of the store.
func (d *faultDisk) open(sync file.Sync) *file.Store {
	d.t.Helper()
	st, err := file.Open(faultDir, &file.Options{FS: d.gate, Sync: sync})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { st.Close() })
	return st
}

// next makes the next operation of some kinds fail.
func (d *faultDisk) next(kinds vfstest.OpKind) { d.fail.Store(uint32(kinds)) }

// appendErr appends a line at the log's end.
func (d *faultDisk) appendErr(log store.Log, line string) error {
	at, err := log.End(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	_, err = log.Append(d.t.Context(), at, []byte(line))
	return err
}

// mustSurvive makes sure that the lines of a log survive the worst power cut.
func (d *faultDisk) mustSurvive(name string, want ...string) {
	d.t.Helper()
	w := &faultWork{t: d.t, where: "after the cut"}
	got := w.read(d.mem.CrashClone(nil, vfstest.LoseAll), name)
	for _, line := range want {
		if !slices.Contains(got, line) {
			d.t.Errorf("after a power cut %s is not in %q", line, got)
		}
	}
}

func TestFailedSyncPoisons(t *testing.T) {
	t.Parallel()
	d := newFaultDisk(t)
	log := storetest.MustCreate(t, d.open(file.Always), "a", `{"n":0}`)
	storetest.MustAppend(t, log, `{"n":1}`)
	d.next(vfstest.OpSync)
	if err := d.appendErr(log, `{"n":2}`); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("append whose sync fails: %v, want ErrUnknown", err)
	}
	for range 2 {
		err := d.appendErr(log, `{"n":3}`)
		if !errors.Is(err, store.ErrClosed) || !strings.Contains(err.Error(), "sync failed") {
			t.Errorf("append after a failed sync: %v, want ErrClosed and why", err)
		}
	}
	other := storetest.MustOpen(t, d.open(file.Always), "a")
	storetest.MustAppend(t, other, `{"n":4}`)
	d.mustSurvive("a", `{"n":0}`, `{"n":1}`, `{"n":4}`)
	if info, err := d.mem.Lstat(faultDir + "/.coppice/locks/a.lock"); err != nil || info.Size() != 0 {
		t.Errorf("the note was not taken back: %v, %v", info, err)
	}
}

func TestFailedRepairIsNoted(t *testing.T) {
	t.Parallel()
	for _, torn := range []string{`{"n":1}`, `{"n":`} {
		d := newFaultDisk(t)
		log := storetest.MustCreate(t, d.open(file.Always), "a", `{"n":0}`)
		w := &faultWork{t: t, mem: d.mem, store: d.open(file.Always), logs: map[string]*faultLog{"a": {maybe: map[string]bool{}}}}
		w.tear("a", torn)
		d.next(vfstest.OpSync)
		if err := d.appendErr(log, `{"n":2}`); err == nil {
			t.Error("append whose repair was not synced succeeded")
		}
		other := storetest.MustOpen(t, d.open(file.Always), "a")
		for err := error(store.ErrConflict); errors.Is(err, store.ErrConflict); {
			if err = d.appendErr(other, `{"n":3}`); err != nil && !errors.Is(err, store.ErrConflict) {
				t.Fatal(err)
			}
		}
		d.mustSurvive("a", `{"n":0}`, `{"n":3}`)
	}
}

func TestRemovingKeepsTheNote(t *testing.T) {
	t.Parallel()
	d := newFaultDisk(t)
	st := d.open(file.Always)
	log := storetest.MustCreate(t, st, "a", `{"n":0}`)
	d.next(vfstest.OpSync)
	if err := d.appendErr(log, `{"n":1}`); !errors.Is(err, store.ErrUnknown) {
		t.Fatal(err)
	}
	log.Close()
	if err := st.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	trash, err := st.Trash().List(t.Context())
	if err != nil || len(trash) != 1 {
		t.Fatal(trash, err)
	}
	if err := st.Trash().Restore(t.Context(), trash[0].ID); err != nil {
		t.Fatal(err)
	}
	storetest.MustAppend(t, storetest.MustOpen(t, st, "a"), `{"n":2}`)
	d.mustSurvive("a", `{"n":0}`, `{"n":2}`)
}

// A handle whose log was removed must not append to the file in the trash, also
// if the first look at what became of the log did not work.
func TestRemovedLogTakesNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range []vfstest.OpKind{vfstest.OpCreate, vfstest.OpLock, vfstest.OpStat, vfstest.OpOpen, vfstest.OpSyncDir} {
		for _, used := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, handle used: %v", kind, used), func(t *testing.T) {
				testRemovedLog(t, kind, used)
			})
		}
	}
}

func testRemovedLog(t *testing.T, kind vfstest.OpKind, used bool) {
	d := newFaultDisk(t)
	log := storetest.MustCreate(t, d.open(file.Always), "a", `{"n":0}`)
	if used {
		storetest.MustAppend(t, log, `{"n":1}`)
	}
	if err := d.open(file.Always).Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	at := storetest.MustEnd(t, log)
	d.next(kind)
	for range 2 {
		if _, err := log.Append(t.Context(), at, []byte(`{"n":2}`)); err == nil {
			t.Fatal("a removed log took an append")
		}
	}
	if _, err := log.Append(t.Context(), at, []byte(`{"n":2}`)); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("append to a removed log: %v, want ErrNotExist", err)
	}
}

func TestEveryReportsAFailedSync(t *testing.T) {
	t.Parallel()
	d := newFaultDisk(t)
	log := storetest.MustCreate(t, d.open(file.Every(time.Millisecond)), "a", `{"n":0}`)
	d.next(vfstest.OpSync)
	storetest.MustAppend(t, log, `{"n":1}`)
	for d.fail.Load() != 0 {
		time.Sleep(time.Millisecond)
	}
	if err := log.Close(); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("close after a sync in the background failed: %v, want ErrUnknown", err)
	}
}

func TestCloseMakesDurable(t *testing.T) {
	t.Parallel()
	d := newFaultDisk(t)
	log := storetest.MustCreate(t, d.open(file.Every(time.Hour)), "a", `{"n":0}`)
	storetest.MustAppend(t, log, `{"n":1}`)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	d.mustSurvive("a", `{"n":0}`, `{"n":1}`)
}

// A log can become shorter than it was when this handle last synced: a backup
// was restored. What is appended then must be synced all the same.
func TestShorterLogIsSynced(t *testing.T) {
	t.Parallel()
	d := newFaultDisk(t)
	st := d.open(file.Always)
	log := storetest.MustCreate(t, st, "a", `{"n":0}`)
	storetest.MustAppend(t, log, `{"n":1}`, `{"n":2}`, `{"n":3}`)
	f, err := d.mem.OpenFile(st.Path("a"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := errors.Join(f.Truncate(8), f.Sync()); err != nil {
		t.Fatal(err)
	}
	storetest.MustAppend(t, log, `{"n":4}`)
	d.mustSurvive("a", `{"n":0}`, `{"n":4}`)
}

func TestFullDiskLeavesTheHandleUsable(t *testing.T) {
	t.Parallel()
	full := vfstest.FailFrom(1, vfstest.OpWrite, &vfstest.ShortWrite{N: 5, Err: syscall.ENOSPC})
	mem, isFull := vfstest.NewMemory(), false
	disk := &vfstest.Faulty{FS: mem, Before: func(op vfstest.Op) error {
		if isFull {
			return full(op)
		}
		return nil
	}}
	st, err := file.Open(faultDir, &file.Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	log := storetest.MustCreate(t, st, "a", `{"n":0}`)
	isFull = true
	for range 3 {
		_, err := log.Append(t.Context(), storetest.MustEnd(t, log), []byte(`{"n":1}`))
		if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, store.ErrUnknown) {
			t.Errorf("append to a full disk: %v, want ENOSPC and no doubt", err)
		}
	}
	isFull = false
	storetest.MustAppend(t, log, `{"n":2}`)
	d := &faultDisk{t: t, mem: mem}
	d.mustSurvive("a", `{"n":0}`, `{"n":2}`)
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}
