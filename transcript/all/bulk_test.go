package all_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/transcript"
	_ "github.com/coppice-dev/coppice/transcript/all"
	"github.com/coppice-dev/coppice/transcript/bulk"
	"github.com/coppice-dev/coppice/transcript/discover"
)

// talk is a conversation of Claude Code with some prompts.
func talk(id string, prompts int) string {
	var b strings.Builder
	parent := "null"
	for n := range prompts {
		uuid := fmt.Sprintf("%s-0000-4000-8000-%012d", id[:8], n)
		fmt.Fprintf(&b, `{"parentUuid":%s,"cwd":"/w","sessionId":%q,"type":"user","message":{"role":"user","content":"prompt %d"},"uuid":%q,"timestamp":"2026-01-02T03:04:05.000Z"}`+"\n",
			parent, id, n, uuid)
		parent = `"` + uuid + `"`
	}
	return b.String()
}

func id(n int) string { return fmt.Sprintf("%08d-4d57-4a54-9be1-3f6b1b2f6f10", n) }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func sources(t *testing.T, paths ...string) []discover.Source {
	t.Helper()
	list, err := discover.Sources(paths...)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func importer() *transcript.Importer { return &transcript.Importer{Store: memory.New(nil)} }

func TestBulkImportCountsEveryFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for n := range 5 {
		write(t, filepath.Join(dir, id(n)+".jsonl"), talk(id(n), n+1))
	}
	write(t, filepath.Join(dir, "notes.txt"), "nothing to import here")
	write(t, filepath.Join(dir, "half.jsonl"), talk(id(7), 1)+"{\"half\n")
	named := filepath.Join(t.TempDir(), "named.txt")
	write(t, named, "nothing either")
	var seen []string
	var failed error
	var mu sync.Mutex // several goroutines tell how far they are
	var last int64
	r, err := bulk.Import(context.Background(), importer(), bulk.Request{
		Sources: sources(t, dir, named),
		Each: func(f *bulk.File, err error) error {
			seen, failed = append(seen, f.Path), errors.Join(failed, err)
			return nil
		},
		Progress: func(done, total int64) {
			mu.Lock()
			defer mu.Unlock()
			last = max(last, done*100/total)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := bulk.Total{Files: 7, Sessions: 6, Entries: 16, Problems: 1, Failed: 1, Bytes: r.Bytes}
	if r.Total != want {
		t.Errorf("total is %+v, want %+v", r.Total, want)
	}
	if len(seen) != 7 {
		t.Errorf("it told of %q", seen)
	}
	if len(r.Failures) != 1 || r.Failures[0].Path != named || !errors.Is(failed, bulk.ErrNoFormat) || !errors.Is(failed, session.ErrInvalid) {
		t.Errorf("failures are %v", r.Failures)
	}
	if len(r.ByFormat) != 1 || r.ByFormat[0].Format != "claude-code" || r.ByFormat[0].Entries != 16 {
		t.Errorf("by format: %+v", r.ByFormat)
	}
	if last != 100 {
		t.Errorf("the progress ended at %d %%", last)
	}
	if !r.IsPartial() {
		t.Error("something could not be read, and it is whole")
	}
}

// A file that somebody names as one of a format, and that has nothing of it, has failed.
// One that was found in a directory has not.
func TestBulkNothingOfTheFormat(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.jsonl")
	write(t, path, "{\"a\":1}\n")
	for source, failed := range map[string]int{path: 1, filepath.Dir(path): 0} {
		for _, format := range []string{"codex", "claude-code"} {
			r, err := bulk.Import(t.Context(), importer(), bulk.Request{Sources: sources(t, source), Format: transcript.Named(format)})
			if err != nil || r.Failed != failed || r.IsPartial() != (failed > 0) {
				t.Errorf("%s, %s: %+v, %v", source, format, r, err)
			}
		}
	}
}

func TestBulkImportAgainAddsNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.jsonl")
	write(t, path, talk(id(1), 3))
	im := importer()
	for round, want := range []int{3, 0} {
		r, err := bulk.Import(context.Background(), im, bulk.Request{Sources: sources(t, path)})
		if err != nil || r.Entries != want {
			t.Errorf("round %d added %d entries, want %d; %v", round, r.Entries, want, err)
		}
	}
}

// TestBulkInterruptedImportSaysWhatItDid: a context that ends leaves a result that
// counts exactly what Each was told of.
func TestBulkInterruptedImportSaysWhatItDid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for n := range 50 {
		write(t, filepath.Join(dir, id(n)+".jsonl"), talk(id(n), 1))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	told := 0
	im := importer()
	r, err := bulk.Import(ctx, im, bulk.Request{Sources: sources(t, dir), Each: func(f *bulk.File, _ error) error {
		if told += f.New(); told == 3 {
			cancel()
		}
		return nil
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("it ended with %v", err)
	}
	if r.Entries != told || told < 3 || r.Failed > 0 {
		t.Errorf("the result is %+v, and it told of %d", r.Total, told)
	}
	if _, err = bulk.Import(context.Background(), im, bulk.Request{Sources: sources(t, dir)}); err != nil {
		t.Fatal(err)
	}
	there := 0
	for _, err := range im.Store.List(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		there++
	}
	if there != 50 {
		t.Errorf("after importing again there are %d sessions", there)
	}
}

func TestBulkImportEndsWhenNobodyListens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for n := range 20 {
		write(t, filepath.Join(dir, id(n)+".jsonl"), talk(id(n), 1))
	}
	gone := errors.New("gone")
	calls := 0
	_, err := bulk.Import(context.Background(), importer(), bulk.Request{
		Sources: sources(t, dir), Each: func(*bulk.File, error) error { calls++; return gone },
	})
	if !errors.Is(err, gone) || calls != 1 {
		t.Errorf("it ended with %v after %d calls", err, calls)
	}
}

func TestBulkImportReadsStandardInput(t *testing.T) {
	t.Parallel()
	r, err := bulk.Import(context.Background(), importer(), bulk.Request{
		Sources: sources(t, discover.Stdin), Stdin: strings.NewReader(talk(id(1), 2)), Format: transcript.Named("claude-code"),
	})
	if err != nil || r.Entries != 2 {
		t.Errorf("got %+v, %v", r.Total, err)
	}
}

// Nobody may ever write to standard input: what was read before it is imported
// meanwhile, and the import ends with its context.
func TestBulkImportDoesNotHangOnStandardInput(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one goroutine imports both
	path := filepath.Join(t.TempDir(), id(1)+".jsonl")
	write(t, path, talk(id(1), 2))
	silent, other := io.Pipe()
	defer other.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := bulk.Import(ctx, importer(), bulk.Request{
		Sources: sources(t, path, discover.Stdin), Stdin: silent,
		Each: func(f *bulk.File, _ error) error { cancel(); return nil },
	})
	if !errors.Is(err, context.Canceled) || r.Files != 1 || r.Entries != 2 {
		t.Errorf("%+v, %v; want one file, imported before the context ended", r, err)
	}
}

func TestBulkWatchImportsWhatGrows(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.jsonl")
	write(t, path, talk(id(1), 1))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	rounds := 0
	r, err := bulk.Watch(ctx, importer(), bulk.Request{}, time.Millisecond,
		func(l *discover.Looked) error { return l.In(path) },
		func() {
			if rounds++; rounds == 3 {
				cancel()
				return
			}
			write(t, path, talk(id(1), rounds+1))
		})
	if err != nil || r.Entries != 3 || r.Files != 1 || r.Sessions != 1 || r.Unchanged != 0 {
		t.Errorf("got %+v, %v; want three entries of one session in one file", r.Total, err)
	}
}

// TestBulkWatchTriesAgain: what could not be imported is tried again, although the file stays as it
// is, but not all the time.
func TestBulkWatchTriesAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.jsonl")
	write(t, path, talk(id(1), 1))
	synctest.Test(t, func(t *testing.T) {
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var tries []time.Time
		own := &bulk.Own{Only: true, Import: func(context.Context, *transcript.File, *bulk.File) error {
			if tries = append(tries, time.Now()); len(tries) < 3 {
				return errors.New("the disk is full")
			}
			time.AfterFunc(5*time.Minute, cancel)
			return nil
		}}
		_, err := bulk.Watch(ctx, importer(), bulk.Request{Own: own}, time.Second, func(l *discover.Looked) error { return l.In(path) }, nil)
		if err != nil || len(tries) != 3 || tries[1].Sub(tries[0]) < time.Minute {
			t.Errorf("it was tried at %v, %v", tries, err)
		}
	})
}

// TestBulkWatchLeavesFilesOfTheFutureAlone: a clock was wrong, which is no reason to read a file
// over and over.
func TestBulkWatchLeavesFilesOfTheFutureAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.jsonl")
	write(t, path, talk(id(1), 1))
	synctest.Test(t, func(t *testing.T) {
		late := time.Now().Add(24 * time.Hour)
		if err := os.Chtimes(path, late, late); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		reads := 0
		own := &bulk.Own{Only: true, Import: func(context.Context, *transcript.File, *bulk.File) error { reads++; return nil }}
		_, err := bulk.Watch(ctx, importer(), bulk.Request{Own: own}, time.Second, func(l *discover.Looked) error { return l.In(path) }, nil)
		if err != nil || reads != 1 {
			t.Errorf("it was read %d times in an hour, %v", reads, err)
		}
	})
}
