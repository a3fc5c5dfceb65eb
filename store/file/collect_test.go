package file_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// naming is a line that refers to blobs.
func naming(refs ...store.Ref) string { return fmt.Sprintf(`{"blobs":%q}`, refs) }

// A blob stays as long as anything that can come back names it, in whatever form
// and place. Of what is made of logs, or is on its way to become one, nothing counts.
func TestUnreferencedLooksEverywhere(t *testing.T) {
	t.Parallel()
	st := open(t, &file.Options{Sync: file.Never})
	put := func(content string) store.Ref { return storetest.MustPut(t, st.Blobs(), []byte(content)) }
	write := func(text string, path ...string) {
		t.Helper()
		name := filepath.Join(append([]string{st.Where()}, path...)...)
		must(t, os.MkdirAll(filepath.Dir(name), 0o700))
		must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	log := func(name, line string) { mustCreate(t, st, name, line).Close() }

	log("plain", naming(put("plain")))
	log("archived", naming(put("archived")))
	must(t, st.Archive(t.Context(), "archived"))
	log("removed", naming(put("removed")))
	must(t, st.Remove(t.Context(), "removed"))
	log("packed", naming(put("removed and archived")))
	must(t, st.Archive(t.Context(), "packed"))
	must(t, st.Remove(t.Context(), "packed"))
	log("replaced", naming(put("replaced")))
	_, err := mustRaw(t, st, "replaced").Rewrite(t.Context(), pieces(store.Piece{Line: []byte("{}")}))
	must(t, err)
	log("torn", "{}")
	writeRaw(t, st.Path("torn"), naming(put("torn"))) // without a line end
	write(naming(put("backup")), "plain.jsonl.bak")
	write(naming(put("of an editor")), "plain.jsonl~")
	write(naming(put("ledger")), ".coppice", "imports", "x.json")
	spelled := strings.NewReplacer("s", `\u0073`, ":", `\u003A`).Replace(naming(put("spelled")))
	write(spelled, "spelled.jsonl")
	for at := 1<<20 - 80; at < 1<<20+80; at += 7 { // where two parts meet
		ref := put(fmt.Sprint("far at ", at))
		write(strings.Repeat("x", at)+string(ref)+strings.Repeat("x", 100), fmt.Sprintf("far%d.jsonl", at))
	}

	want := []string{
		string(put("nowhere")), string(put("index")), string(put("on its way")), string(put("to go")),
	}
	other := put("another")
	want = append(want, string(put("names "+string(other))), string(other))
	write(naming(put("index")), ".coppice", "index.db-wal")
	write(naming(put("on its way")), ".coppice", "tmp", "x")
	write(naming(put("to go")), ".coppice", "redact.pending")
	write(string(other)+"0"+string(other)[:70], "not-quite.jsonl") // which does name it
	want = slices.DeleteFunc(want, func(ref string) bool { return ref == string(other) })

	unreferenced, err := st.Blobs().Unreferenced(t.Context())
	must(t, err)
	var got []string
	for _, blob := range unreferenced {
		got = append(got, blob.Name)
		if info, err := os.Stat(blob.Place); err != nil || info.Size() != blob.Size {
			t.Errorf("%+v: %v", blob, err)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unreferenced (-want +got)\n%s", diff)
	}

	var all []store.Ref
	for ref := range st.Blobs().All(t.Context()) {
		all = append(all, ref)
	}
	removal, err := st.Blobs().Collect(t.Context(), all...)
	must(t, err)
	if len(removal.Deleted) != len(want) || len(removal.Named) != len(all)-len(want) {
		t.Errorf("%d deleted, %d named, of %d", len(removal.Deleted), len(removal.Named), len(all))
	}
	want1 := []store.Part{{Kind: store.PartLog, Place: archiveOf(st, "archived"), Name: "archived"}}
	if got := removal.Named[store.RefOf([]byte("archived"))]; !slices.Equal(got, want1) {
		t.Errorf("it is named by %+v", got)
	}
}

// What cannot be read may name anything. In quarantine it may not: there it is
// because it cannot be read.
func TestRemoveBlobsWantsToReadEverything(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	ref := storetest.MustPut(t, st.Blobs(), []byte("content"))
	mustCreate(t, st, "a", strings.Repeat("line ", 1000)).Close()
	must(t, st.Archive(t.Context(), "a"))
	packed := mustReadFile(t, archiveOf(st, "a"))
	must(t, os.WriteFile(archiveOf(st, "a"), packed[:len(packed)/2], 0o600))
	for _, look := range []func() error{
		func() error { _, err := st.Blobs().Unreferenced(t.Context()); return err },
		func() error { _, err := st.Blobs().Collect(t.Context(), ref); return err },
	} {
		if err := look(); err == nil || !strings.Contains(err.Error(), archiveOf(st, "a")) {
			t.Errorf("a damaged archive is no obstacle: %v", err)
		}
	}
	if _, err := st.Blobs().Get(t.Context(), ref); err != nil {
		t.Errorf("deleted although something could not be read: %v", err)
	}
	quarantine := filepath.Join(st.Where(), ".coppice", "quarantine")
	must(t, os.MkdirAll(quarantine, 0o700))
	must(t, os.Rename(archiveOf(st, "a"), filepath.Join(quarantine, "a.0.1.replaced.zst")))
	if r, err := st.Blobs().Collect(t.Context(), ref); err != nil || len(r.Deleted) != 1 {
		t.Errorf("damage in quarantine is an obstacle: %+v, %v", r, err)
	}
}

// meanwhile is a disk in memory that does something just before the n-th operation
// of whoever uses it.
type meanwhile struct {
	vfstest.Faulty
	do  map[int64]func()
	off bool // what is being done does not count
}

func newMeanwhile() *meanwhile {
	m := &meanwhile{do: make(map[int64]func())}
	m.FS = vfstest.NewMemory()
	n := int64(0)
	m.Before = func(vfstest.Op) error {
		if m.off {
			return nil
		}
		if n++; m.do[n] != nil {
			m.off = true
			m.do[n]()
			m.off = false
		}
		return nil
	}
	return m
}

// interleaved deletes a blob, while at the given operations something else is done.
// It returns how many operations there were.
func interleaved(t *testing.T, ref store.Ref, prepare func(st *file.Store) map[int64]func()) (st *file.Store, ops int64) {
	t.Helper()
	disk := newMeanwhile()
	disk.off = true
	// Whoever waits for the other waits in vain: it is the same goroutine.
	st = openAt(t, "/s", &file.Options{FS: disk, Sync: file.Never, LockWait: time.Millisecond})
	storetest.MustPut(t, st.Blobs(), []byte("content"))
	mustCreate(t, st, "a", "{}").Close()
	mustCreate(t, st, "b", "{}").Close()
	must(t, st.Archive(t.Context(), "b"))
	disk.do = prepare(st)
	before := disk.Count(vfstest.OpAny)
	disk.off = false
	_, err := st.Blobs().Collect(t.Context(), ref)
	disk.off = true
	if err != nil && !errors.Is(err, store.ErrLocked) {
		t.Fatal(err)
	}
	return st, disk.Count(vfstest.OpAny) - before
}

// nameBlob is what a writer does. It reports whether it was let.
func nameBlob(t *testing.T, st *file.Store, write func(line string) error) bool {
	t.Helper()
	release, err := st.Blobs().Hold(t.Context())
	if errors.Is(err, store.ErrLocked) {
		return false
	}
	must(t, err)
	defer release()
	ref := storetest.MustPut(t, st.Blobs(), []byte("content"))
	must(t, write(naming(ref)))
	return true
}

// A writer names the blob just before some operation of whoever deletes, whichever
// that is, and the log may then be archived, removed or restored before a later one.
func TestDeletionBesideAWriter(t *testing.T) {
	t.Parallel()
	ref := store.RefOf([]byte("content"))
	_, count := interleaved(t, ref, func(*file.Store) map[int64]func() { return nil })
	ways := map[string]struct {
		write func(st *file.Store, line string) error
		move  func(st *file.Store) error // afterwards
	}{
		"append": {write: appendTo("a")},
		"create": {write: func(st *file.Store, line string) error {
			log, err := st.Create(context.Background(), "new", store.Lines([]byte(line)))
			if err != nil {
				return err
			}
			return log.Close()
		}},
		"archive":   {appendTo("a"), func(st *file.Store) error { return st.Archive(context.Background(), "a") }},
		"unarchive": {appendTo("b"), func(*file.Store) error { return nil }}, // appending does it
		"remove":    {appendTo("a"), func(st *file.Store) error { return st.Remove(context.Background(), "a") }},
		"remove and restore": {appendTo("a"), func(st *file.Store) error {
			if err := st.Remove(context.Background(), "a"); err != nil {
				return err
			}
			trash, err := st.Trash().List(context.Background())
			if err != nil {
				return err
			}
			return st.Trash().Restore(context.Background(), trash[0].ID)
		}},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			written, refused := 0, 0
			run := func(first, second int64) {
				var done bool
				st, _ := interleaved(t, ref, func(st *file.Store) map[int64]func() {
					return map[int64]func(){
						first: func() { done = nameBlob(t, st, func(line string) error { return way.write(st, line) }) },
						second: func() {
							if way.move != nil && done {
								must(t, way.move(st))
							}
						},
					}
				})
				if !done {
					refused++
					return
				}
				written++
				if got, err := st.Blobs().Get(t.Context(), ref); err != nil || string(got) != "content" {
					t.Fatalf("named before operation %d, moved before %d: %v", first, second, err)
				}
			}
			every := int64(1)
			if way.move != nil {
				every = int64(max(1, 11/soak.N(1))) // all pairs take minutes
			}
			for first := int64(1); first <= count; first += (every + 1) / 2 {
				if way.move == nil {
					run(first, 0)
					continue
				}
				for second := first + 1; second <= count+20; second += 2 * every {
					run(first, second)
				}
			}
			if t.Logf("written %d times, refused %d times", written, refused); written == 0 || refused == 0 {
				t.Error("want both")
			}
		})
	}
}

func appendTo(name string) func(st *file.Store, line string) error {
	return func(st *file.Store, line string) error {
		log, err := st.Open(context.Background(), name)
		if err != nil {
			return err
		}
		end, err := log.End(context.Background())
		if err == nil {
			_, err = log.Append(context.Background(), end, []byte(line))
		}
		return errors.Join(err, log.Close())
	}
}

// A writer that put the blob before the deletion began names it at some moment.
func TestDeletionWaitsForTheAppend(t *testing.T) {
	t.Parallel()
	ref := store.RefOf([]byte("content"))
	for n := int64(1); n <= 60; n++ {
		var release func()
		st, _ := interleaved(t, ref, func(st *file.Store) map[int64]func() {
			var err error
			release, err = st.Blobs().Hold(t.Context())
			must(t, err)
			storetest.MustPut(t, st.Blobs(), []byte("content"))
			return map[int64]func(){n: func() {
				must(t, appendTo("a")(st, naming(ref)))
				release()
			}}
		})
		release()
		if _, err := st.Blobs().Get(t.Context(), ref); err != nil {
			t.Fatalf("named before operation %d: %v", n, err)
		}
	}
}

func TestRemoveBlobsGivesUp(t *testing.T) {
	t.Parallel()
	st := open(t, &file.Options{LockWait: 30 * time.Millisecond})
	ref := storetest.MustPut(t, st.Blobs(), []byte("content"))
	release, err := st.Blobs().Hold(t.Context())
	must(t, err)
	_, err = openAt(t, st.Where(), &file.Options{LockWait: 30 * time.Millisecond}).Blobs().Collect(t.Context(), ref)
	wantKind(t, err, store.ErrLocked, "blobs.lock", "try again")
	if _, err := st.Blobs().Get(t.Context(), ref); err != nil {
		t.Error(err)
	}
	release()
	if r, err := st.Blobs().Collect(t.Context(), ref); err != nil || len(r.Deleted) != 1 {
		t.Errorf("after the hold: %+v, %v", r, err)
	}
}

// Writers whose holds overlap all the time must let somebody in who deletes.
func TestHoldersDoNotStarveDeletion(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	ref := storetest.MustPut(t, st.Blobs(), []byte("content"))
	var stop atomic.Bool
	var holders sync.WaitGroup
	holds := atomic.Int64{}
	for range 4 {
		holders.Go(func() {
			for !stop.Load() {
				release, err := st.Blobs().Hold(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				holds.Add(1)
				time.Sleep(3 * time.Millisecond)
				release()
			}
		})
	}
	for holds.Load() < 8 {
		time.Sleep(time.Millisecond)
	}
	begin := time.Now()
	r, err := st.Blobs().Collect(t.Context(), ref)
	stop.Store(true)
	holders.Wait()
	if err != nil || len(r.Deleted) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	t.Logf("deleted after %v, beside %d holds", time.Since(begin), holds.Load())
}

// The lock of a process that was killed is free.
func TestHoldEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	st := open(t, &file.Options{LockWait: 50 * time.Millisecond})
	ref := storetest.MustPut(t, st.Blobs(), []byte("content"))
	cmd, out, _ := otherProcess(t, "hold blobs", st.Where(), "")
	if line, err := out.ReadString('\n'); line != "held\n" || err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	_, err := st.Blobs().Collect(t.Context(), ref)
	wantKind(t, err, store.ErrLocked)
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // says that it was killed; its locks end before it does
	if r, err := st.Blobs().Collect(t.Context(), ref); err != nil || len(r.Deleted) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func holdBlobsJob(t *testing.T, dir string) {
	if _, err := openAt(t, dir, nil).Blobs().Hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	fmt.Println("held")
	io.Copy(io.Discard, os.Stdin)
}

// contentOf is what all processes put, again and again.
func contentOf(n int) []byte { return []byte(strings.Repeat(fmt.Sprint("content ", n%5, " "), 500)) }

// nameBlobsJob puts blobs and names each, and says so, until it is killed.
func nameBlobsJob(t *testing.T, dir, name string) {
	st := openAt(t, dir, &file.Options{Sync: file.Never})
	log, err := st.Open(t.Context(), name)
	must(t, err)
	for n := 0; ; n++ {
		release, err := st.Blobs().Hold(t.Context())
		must(t, err)
		ref := storetest.MustPut(t, st.Blobs(), contentOf(n))
		at, err := log.End(t.Context())
		must(t, err)
		_, err = log.Append(t.Context(), at, []byte(naming(ref)))
		must(t, err)
		release()
		fmt.Println(ref)
		time.Sleep(time.Duration(n%3) * time.Millisecond)
	}
}

// Several processes put the same few contents and name them, and are killed; their
// logs are removed, so that the contents are not needed any more; and all the time
// another deletes what is not named.
func TestDeletionBesideProcesses(t *testing.T) {
	t.Parallel()
	lasts := soak.For(time.Second)
	st := open(t, &file.Options{Sync: file.Never})
	var refs []store.Ref
	for n := range 5 {
		refs = append(refs, store.RefOf(contentOf(n)))
	}
	var stop atomic.Bool
	var deletions sync.WaitGroup
	var deleted atomic.Int64
	deletions.Go(func() {
		for !stop.Load() {
			r, err := st.Blobs().Collect(t.Context(), refs...)
			if err != nil && !errors.Is(err, store.ErrLocked) {
				t.Error(err)
				return
			}
			deleted.Add(int64(len(r.Deleted)))
		}
	})
	named, kills := 0, 0
	begin := time.Now()
	// On a machine that stalls it goes on until something was deleted.
	enough := func() bool { return deleted.Load() > 0 || time.Since(begin) > 2*time.Minute }
	for end := begin.Add(lasts); (time.Now().Before(end) || !enough()) && !t.Failed(); kills += 2 {
		named += oneGeneration(t, st, fmt.Sprint("g", kills), 200*time.Millisecond)
	}
	stop.Store(true)
	deletions.Wait()
	t.Logf("%d appends, %d kills, %d deletions", named, kills, deleted.Load())
	if !t.Failed() && (named == 0 || deleted.Load() == 0) {
		t.Error("want both appends and deletions")
	}
}

// oneGeneration lets two processes write, kills them, and looks whether all that
// they have named is there.
func oneGeneration(t *testing.T, st *file.Store, name string, lasts time.Duration) (named int) {
	names := []string{name + "a", name + "b"}
	var outputs []*bufio.Reader
	var ends []func()
	for _, name := range names {
		mustCreate(t, st, name, "{}").Close()
		cmd, out, in := otherProcess(t, "name blobs", st.Where(), name)
		outputs = append(outputs, out)
		ends = append(ends, func() { must(t, cmd.Process.Kill()); in.Close() })
	}
	_, err := outputs[0].Peek(1) // one has begun, however slow the machine is
	must(t, err)
	time.Sleep(lasts)
	for _, end := range ends {
		end()
	}
	for i, out := range outputs {
		for said := bufio.NewScanner(out); said.Scan(); named++ {
			if _, err := st.Blobs().Get(t.Context(), store.Ref(said.Text())); err != nil {
				t.Errorf("%s: %v", names[i], err)
			}
		}
		must(t, st.Remove(t.Context(), names[i]))
	}
	_, err = st.Trash().Empty(t.Context(), time.Now().Add(time.Hour))
	must(t, err)
	return named
}

func BenchmarkHold(b *testing.B) {
	st := openAt(b, b.TempDir(), nil)
	for b.Loop() {
		release, err := st.Blobs().Hold(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		release()
	}
}

// What it costs to find out that one blob of a large store is not needed. Half of
// the time is what writers of blobs may have to wait.
func BenchmarkRemoveBlobs(b *testing.B) {
	for _, logs := range []int{500, 5000} {
		b.Run(fmt.Sprint(logs), func(b *testing.B) {
			st := openAt(b, b.TempDir(), &file.Options{Sync: file.Never})
			line := strings.Repeat("text ", 2000)
			for n := range logs {
				ref := storetest.MustPut(b, st.Blobs(), fmt.Append(nil, n))
				storetest.MustCreate(b, st, fmt.Sprint("log", n), line, naming(ref))
			}
			for b.Loop() {
				ref := storetest.MustPut(b, st.Blobs(), []byte("litter"))
				if r, err := st.Blobs().Collect(b.Context(), ref); err != nil || len(r.Deleted) != 1 {
					b.Fatal(r, err)
				}
			}
		})
	}
}
