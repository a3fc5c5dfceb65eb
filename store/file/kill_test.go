package file_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

// killEnv, when set, makes the test binary a child that appends: directory, log,
// child's number, and how many lines (0 is until it is killed).
const killEnv = "COPPICE_KILL_CHILD"

// killLine is a line of a child. Its text follows from the rest, so that a torn
// or joined line cannot pass for a whole one.
type killLine struct {
	Child int    `json:"child"`
	Seq   int    `json:"seq"`
	Text  string `json:"text"`
}

func newKillLine(child, seq int) killLine {
	size := 200
	if seq%7 == 3 {
		size = 60_000 // several pages: takes longer to be written
	}
	word := fmt.Sprintf("%d/%d ", child, seq)
	return killLine{child, seq, strings.Repeat(word, size/len(word))}
}

// TestKillChild is the child. As a test of its own it has nothing to do.
func TestKillChild(t *testing.T) {
	var log string
	var child, lines int
	dir, rest, _ := strings.Cut(os.Getenv(killEnv), "|")
	if dir == "" {
		return
	}
	if _, err := fmt.Sscanf(rest, "%s %d %d", &log, &child, &lines); err != nil {
		t.Fatal(err)
	}
	if err := killChild(dir, log, child, lines); err != nil {
		t.Fatal(err)
	}
}

// killChild appends and acknowledges each line on standard output.
func killChild(dir, name string, child, lines int) error {
	ctx := context.Background()
	st, err := file.Open(dir, nil)
	if err != nil {
		return err
	}
	defer st.Close()
	log, err := st.Open(ctx, name)
	if err != nil {
		return err
	}
	for seq := 0; lines == 0 || seq < lines; seq++ {
		line, err := json.Marshal(newKillLine(child, seq))
		if err != nil {
			return err
		}
		if err := killAppend(ctx, log, line); err != nil {
			return err
		}
		fmt.Printf("acked %d\n", seq)
	}
	return nil
}

// killAppend appends where the log ends, until nobody else was faster.
func killAppend(ctx context.Context, log store.Log, line []byte) error {
	for {
		at, err := log.End(ctx)
		if err != nil {
			return err
		}
		_, err = log.Append(ctx, at, line)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// killProcess is a child process, and what it has acknowledged.
type killProcess struct {
	cmd   *exec.Cmd
	child int
	first chan struct{} // closed with the first acknowledgement
	ended chan struct{} // closed when there will be no more
	acked int           // the last line acknowledged, or -1; to be read after ended
}

func startKillChild(t *testing.T, dir, log string, child, lines int) *killProcess {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKillChild$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s %d %d", killEnv, dir, log, child, lines))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &killProcess{cmd: cmd, child: child, first: make(chan struct{}), ended: make(chan struct{}), acked: -1}
	go func() {
		defer close(p.ended)
		for in := bufio.NewScanner(out); in.Scan(); {
			if _, err := fmt.Sscanf(in.Text(), "acked %d", &p.acked); err == nil && p.acked == 0 {
				close(p.first)
			}
		}
	}()
	return p
}

// kill ends the process some milliseconds after its first acknowledgement.
func (p *killProcess) kill(t *testing.T, rng *rand.Rand) {
	t.Helper()
	select {
	case <-p.first:
	case <-p.ended:
		t.Fatalf("child %d ended by itself: %v", p.child, p.cmd.Wait())
	}
	time.Sleep(time.Duration(5_000+rng.IntN(35_000)) * time.Microsecond)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	_ = p.cmd.Wait() // says that it was killed
}

// wait lets the process finish.
func (p *killProcess) wait(t *testing.T) {
	t.Helper()
	<-p.ended
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("child %d: %v", p.child, err)
	}
}

// killReader reads a log on from where it was, and counts each child's lines.
type killReader struct {
	log  store.Log
	from store.Pos
	next map[int]int // by child, the line that must come next
}

// check makes sure that what a child acknowledged is there, and no more than the
// one line that was on its way.
func (r *killReader) check(t *testing.T, ended ...*killProcess) {
	t.Helper()
	// Only up to where the log ends now: another child may write faster than we
	// read, for ever.
	end, err := r.log.End(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for line, err := range r.log.Forward(context.Background(), r.from) {
		if err != nil {
			t.Fatal(err)
		}
		if line.Pos >= end {
			break
		}
		r.from = line.Next
		var got killLine
		if err := json.Unmarshal(line.Data, &got); err != nil {
			t.Fatalf("a damaged line at %d: %v: %.100q", line.Pos, err, line.Data)
		}
		if want := newKillLine(got.Child, r.next[got.Child]); got != want {
			t.Fatalf("at %d stands line %d of child %d, want line %d", line.Pos, got.Seq, got.Child, want.Seq)
		}
		r.next[got.Child]++
	}
	for _, p := range ended {
		if n := r.next[p.child]; n < p.acked+1 || n > p.acked+2 {
			t.Fatalf("child %d acknowledged %d lines, %d are there", p.child, p.acked+1, n)
		}
	}
}

// newKillLog makes a log on the real disk and returns where, and a reader of it.
func newKillLog(t *testing.T, name string) (dir string, r *killReader) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "sessions")
	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	log, err := st.Create(t.Context(), name, store.Lines())
	if err != nil {
		t.Fatal(err)
	}
	return dir, &killReader{log: log, next: make(map[int]int)}
}

// TestKill kills a writer again and again; each next one goes on in the same log.
func TestKill(t *testing.T) {
	t.Parallel()
	dir, r := newKillLog(t, "one")
	rounds, rng := soak.N(20), soak.Rand(t)
	for child := range rounds {
		p := startKillChild(t, dir, "one", child, 0)
		p.kill(t, rng)
		r.check(t, p)
	}
	torn, _ := os.ReadDir(filepath.Join(dir, ".coppice", "quarantine"))
	t.Logf("%d kills, %d bytes, %d torn ends put aside", rounds, r.from, len(torn))
}

// TestTwoProcesses has two writers in one log at once.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	dir, r := newKillLog(t, "two")
	lines := soak.N(50)
	a, b := startKillChild(t, dir, "two", 1, lines), startKillChild(t, dir, "two", 2, lines)
	a.wait(t)
	b.wait(t)
	r.check(t, a, b)
	if r.next[1] != lines || r.next[2] != lines {
		t.Errorf("%d and %d lines, want %d each", r.next[1], r.next[2], lines)
	}
}

// TestTwoProcessesKilled has two writers in one log, of which now one and now the
// other is killed.
func TestTwoProcessesKilled(t *testing.T) {
	t.Parallel()
	dir, r := newKillLog(t, "two")
	rounds, rng := soak.N(10), soak.Rand(t)
	for child := 0; child < rounds; child += 2 {
		one, two := startKillChild(t, dir, "two", child, 0), startKillChild(t, dir, "two", child+1, 0)
		one.kill(t, rng)
		two.kill(t, rng)
		r.check(t, one, two)
	}
	t.Logf("%d kills, %d bytes", rounds, r.from)
}
