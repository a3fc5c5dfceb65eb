//go:build unix

package file_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
)

// TestNothingAcknowledgedGoesAstray is a model of the promise that the file at a
// log's path is the log. Several processes append through handles that stay open.
// Meanwhile files are linked, moved, edited, restored from copies, deleted and
// made again, and logs are archived, rewritten, removed and restored. In the end
// each append that was acknowledged is in the log, unless whoever replaced the
// file left it out; astray_model_test.go decides that.
//
// COPPICE_SOAK=3600 runs it for an hour. COPPICE_SEED repeats what is done, but not
// when: the writers and those who meddle are processes.
func TestNothingAcknowledgedGoesAstray(t *testing.T) {
	t.Parallel()
	length := soak.For(time.Second)
	rng := soak.Rand(t)
	total := astrayCounts{done: make(map[string]int), errors: make(map[string]int)}
	for end := time.Now().Add(length); time.Now().Before(end) && !t.Failed(); {
		round := min(time.Until(end), 700*time.Millisecond) // begin again before the logs are long
		astrayRound(t, rng, round, &total)
	}
	t.Logf("%d appends acknowledged, %d of them beside a change of the file; errors %v; changes %v",
		total.acked, total.beside, total.errors, total.done)
}

// astrayCounts is what happened in all rounds.
type astrayCounts struct {
	acked, beside int
	errors        map[string]int // that writers got, by kind
	done          map[string]int // to the files, by what
}

const astrayWriters = 3

var astrayLogs = []string{"ash", "oak", "yew"}

func astrayRound(t *testing.T, rng *rand.Rand, length time.Duration, total *astrayCounts) {
	t.Helper()
	w := newAstrayWorld(t, rng)
	defer os.RemoveAll(w.top)
	defer func() {
		if t.Failed() {
			t.Logf("the changes were\n%s", strings.Join(w.latest, "\n"))
		}
	}()
	var writers []*astrayWriter
	for i := range astrayWriters {
		writers = append(writers, startAstrayWriter(t, w.dir, i, rng.Uint64()))
	}
	for end := time.Now().Add(length); time.Now().Before(end) && !t.Failed(); {
		w.meddle(t)
		time.Sleep(time.Duration(w.rand.IntN(4_000)) * time.Microsecond)
	}
	for _, p := range writers {
		p.finish(t)
	}
	for _, p := range writers {
		for kind, n := range p.errors {
			total.errors[kind] += n
		}
	}
	for what, n := range w.done {
		total.done[what] += n
	}
	for _, name := range astrayLogs {
		var appends []astrayAppend
		for _, p := range writers {
			for _, a := range p.acked {
				if a.log == name {
					appends = append(appends, a)
				}
			}
		}
		found := w.content(t, name)
		for line, n := range found {
			if n > 1 {
				t.Errorf("%s has the line %s %d times", name, line, n)
			}
		}
		lost, beside := astray(appends, w.changes[name], found)
		total.acked += len(appends)
		total.beside += beside
		for i, complaint := range lost {
			if i == 3 {
				t.Errorf("and %d more of %s", len(lost)-i, name)
				break
			}
			t.Errorf("%s: %s", name, complaint)
		}
	}
}

// astrayEnv, when set, makes the test binary a writer: its number, the seed of its
// random numbers, and the directory.
const astrayEnv = "COPPICE_ASTRAY_WRITER"

// TestAstrayWriter is a writer. As a test of its own it has nothing to do.
func TestAstrayWriter(t *testing.T) {
	numbers, dir, ok := strings.Cut(os.Getenv(astrayEnv), " ")
	if !ok {
		return
	}
	var w astrayChild
	var seed uint64
	if _, err := fmt.Sscanf(numbers, "%d,%d", &w.number, &seed); err != nil {
		t.Fatal(err)
	}
	w.rand = rand.New(rand.NewPCG(seed, 0))
	// Leases, which only writers that do not always sync have, must be no excuse.
	sync := []file.Sync{file.Always, file.Never, file.Every(2 * time.Millisecond)}[w.number%3]
	var err error
	if w.store, err = file.Open(dir, &file.Options{Sync: sync}); err != nil {
		t.Fatal(err)
	}
	defer w.store.Close()
	w.logs = make(map[string]store.Log)
	w.run(t)
}

// astrayChild is a writer in its own process.
type astrayChild struct {
	number int
	rand   *rand.Rand
	store  *file.Store
	logs   map[string]store.Log // the handles, which stay open as long as they work
	seq    int
}

func (w *astrayChild) run(t *testing.T) {
	stop := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(stop)
	}()
	for {
		select {
		case <-stop:
			w.calm(t)
			return
		default:
		}
		name := astrayLogs[w.rand.IntN(len(astrayLogs))]
		for range 1 + w.rand.IntN(5) { // several in a row begin a lease
			if err := w.append(t, name); err != nil {
				fmt.Println("error", kindOf(err))
				time.Sleep(200 * time.Microsecond)
			}
		}
		// The more lines there are, the longer each look at them takes.
		time.Sleep(time.Duration(w.rand.IntN(3_000)) * time.Microsecond)
	}
}

// calm appends to each log when nobody meddles any more: it must work without
// anybody's help.
func (w *astrayChild) calm(t *testing.T) {
	for _, name := range astrayLogs {
		err := w.append(t, name)
		for start := time.Now(); err != nil && time.Since(start) < time.Minute; {
			time.Sleep(time.Millisecond) // another writer may still be bringing the log back
			err = w.append(t, name)
		}
		if err != nil {
			t.Errorf("writer %d cannot append to %s any more: %v", w.number, name, err)
		}
	}
}

// append appends a line and acknowledges it on standard output, with the moments
// before and after. A line whose outcome is unknown is not tried again.
func (w *astrayChild) append(t *testing.T, name string) error {
	log := w.logs[name]
	if log == nil {
		var err error
		if log, err = w.store.Open(t.Context(), name); err != nil {
			return err
		}
		w.logs[name] = log
	}
	w.seq++
	size := 100
	if w.seq%37 == 0 {
		size = 20_000
	}
	line, err := json.Marshal(astrayLine{fmt.Sprintf("%d/%d", w.number, w.seq), strings.Repeat("lorem ipsum ", size/12)})
	if err != nil {
		return err
	}
	for range 100 {
		var at store.Pos
		if at, err = log.End(t.Context()); err != nil {
			break
		}
		start := time.Now().UnixNano()
		if _, err = log.Append(t.Context(), at, line); err == nil {
			fmt.Println("acked", name, fmt.Sprintf("%d/%d", w.number, w.seq), start, time.Now().UnixNano())
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			break
		}
	}
	// Some programs go on with a handle that gave an error, some open another.
	if w.rand.IntN(3) > 0 || errors.Is(err, store.ErrClosed) {
		log.Close()
		delete(w.logs, name)
	}
	return err
}

// astrayLine is a line of a writer.
type astrayLine struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

func kindOf(err error) string {
	for _, kind := range []error{
		store.ErrConflict, store.ErrNotExist, store.ErrInvalid, store.ErrUnknown, store.ErrLocked, store.ErrClosed, store.ErrCorrupt, store.ErrReplaced, vfs.ErrSymlink,
	} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	return err.Error()
}

// astrayWriter is a writer as the test sees it.
type astrayWriter struct {
	cmd   *exec.Cmd
	stdin io.Closer
	tail  bytes.Buffer // what it said beside acknowledgements
	ended sync.WaitGroup

	// To be read after finish.
	acked  []astrayAppend
	errors map[string]int
}

func startAstrayWriter(t *testing.T, dir string, number int, seed uint64) *astrayWriter {
	t.Helper()
	p := &astrayWriter{
		cmd:    exec.Command(os.Args[0], "-test.run=^TestAstrayWriter$"),
		errors: make(map[string]int),
	}
	p.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d,%d %s", astrayEnv, number, seed, dir))
	p.cmd.Stderr = os.Stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.ended.Go(func() {
		for in := bufio.NewScanner(out); in.Scan(); {
			var a astrayAppend
			if _, err := fmt.Sscanf(in.Text(), "acked %s %s %d %d", &a.log, &a.line, &a.start, &a.end); err == nil {
				p.acked = append(p.acked, a)
			} else if kind, ok := strings.CutPrefix(in.Text(), "error "); ok {
				p.errors[kind]++
			} else {
				fmt.Fprintln(&p.tail, in.Text())
			}
		}
	})
	return p
}

// finish lets the writer make its last appends, and waits.
func (p *astrayWriter) finish(t *testing.T) {
	t.Helper()
	p.stdin.Close()
	p.ended.Wait()
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("writer: %v\n%s", err, &p.tail)
	}
	slices.SortFunc(p.acked, func(a, b astrayAppend) int { return int(a.start - b.start) })
}
