//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/soak"
)

// TestKills kills the worker, and what it has started, with SIGKILL at random
// moments of every operation. After each kill, what was acknowledged must be
// there, fsck must find no fault, and the work must go on by itself.
//
//	COPPICE_SOAK=250 go test ./bench/crash -run TestKills -v -timeout 2h
func TestKills(t *testing.T) {
	k := &killer{
		kills: make(map[string]int), began: make(map[string]int),
		took: make(map[string]time.Duration), rand: soak.Rand(t),
	}
	for n := 0; n < soak.N(8) && !t.Failed(); {
		if n%40 == 0 { // the longer a store is worked on, the longer each look at it takes
			k.dir, k.record = t.TempDir(), t.TempDir()
			k.last = -1
		}
		if k.kill(t) {
			n++
		}
		k.check(t)
	}
	for _, op := range slices.Sorted(maps.Keys(k.began)) {
		t.Logf("%-20s %4d killed of %5d", op, k.kills[op], k.began[op])
	}
	t.Logf("%-20s %4d", "between two", k.kills[between])
}

const between = ""

type killer struct {
	dir, record string
	last        int // the last step that was acknowledged
	rand        *rand.Rand

	began map[string]int           // by operation, how often it began
	kills map[string]int           // and how often it was killed
	took  map[string]time.Duration // and how long it takes, about
}

// kill starts a worker, kills it in an operation, and reports whether it did: the
// worker may have come to its end.
func (k *killer) kill(t *testing.T) bool {
	t.Helper()
	seed := k.rand.Uint64()
	cmd := exec.Command(os.Args[0], k.dir, "session")
	cmd.Env = append(os.Environ(), childEnv+"=1", "COPPICE_CRASH_GO_ON=1",
		"COPPICE_CRASH_RECORD="+k.record, fmt.Sprintf("COPPICE_CRASH_SEED=%d", seed))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	under, killed, since := between, false, time.Now()
	for in := bufio.NewScanner(out); in.Scan(); {
		var what, op string
		var step int
		if _, err := fmt.Sscanf(in.Text(), "%s %s %d", &what, &op, &step); err != nil {
			t.Errorf("the worker says %q", in.Text())
			continue
		}
		if what == "acked" {
			k.took[op] = (9*k.took[op] + time.Since(since)) / 10
			k.last, under = step, between
			continue
		}
		under, since = op, time.Now()
		k.began[op]++
		if !killed && k.chooses(op) {
			killed = true
			delay := min(50*time.Millisecond, k.took[op]*5/4)
			delay = time.Duration(k.rand.Int64N(int64(max(delay, time.Millisecond))))
			time.AfterFunc(delay, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		}
	}
	err = cmd.Wait()
	if err != nil && err.Error() != "signal: killed" {
		t.Errorf("seed %d: the worker says %v\n%s", seed, err, &stderr)
		k.keep(t)
	}
	if err != nil {
		k.kills[under]++
	}
	return err != nil
}

// chooses decides whether to kill in an operation: rather in one that was killed
// less often than others.
func (k *killer) chooses(op string) bool {
	total := 0
	for _, n := range k.kills {
		total += n
	}
	if k.kills[op]*len(operations) <= total {
		return k.rand.IntN(2) == 0
	}
	return k.rand.IntN(20) == 0
}

// check looks at what the worker left, and puts it on record for the next.
func (k *killer) check(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	before, err := load[snapshot](endPath(k.record, k.last))
	if err != nil {
		t.Fatal(err)
	}
	if before == nil {
		before = &snapshot{}
	}
	under, err := load[begin](beginPath(k.record, k.last+1))
	if err != nil {
		t.Fatal(err)
	}
	if under == nil {
		under = &begin{Op: "nothing", Targets: []string{}}
	}
	// What was put on record but not acknowledged may have been all that there was
	// left to do.
	next, err := load[snapshot](endPath(k.record, k.last+1))
	if err != nil {
		t.Fatal(err)
	}
	if next == nil && len(before.Logs) == 0 && under.Op == "nothing" {
		return // it had not begun
	}
	if err := checkStore(ctx, k.dir, before, under, next); err != nil {
		t.Errorf("killed in %s, after step %d: %v", under.Op, k.last, err)
		k.keep(t)
		return
	}
	now, err := goOn(ctx, k.dir, before, under)
	if err != nil {
		t.Errorf("going on after a kill in %s, after step %d: %v", under.Op, k.last, err)
		k.keep(t)
		return
	}
	k.last++
	if err := save(endPath(k.record, k.last), now); err != nil {
		t.Fatal(err)
	}
}

// keep saves the store that something is wrong with.
func (k *killer) keep(t *testing.T) {
	t.Helper()
	kept, err := os.MkdirTemp("", "killed")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("what was found is in %s", kept)
	for _, dir := range []string{k.dir, k.record} {
		if err := os.CopyFS(filepath.Join(kept, filepath.Base(dir)), os.DirFS(dir)); err != nil {
			t.Error(err)
		}
	}
}
