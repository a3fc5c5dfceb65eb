package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/bench/shapes"
)

// growths run commands on sessions of extreme shapes, and on such that are ten
// times as large. They look at the processor time of a process of its own, which
// differs less than the time on the clock on a machine that does other things too.
func growths() []work {
	var all []work
	for _, shape := range shapes.All {
		all = append(all, work{"growth: " + shape.Name, func(b *bench) []row { return b.growth(shape) }})
	}
	return all
}

func (b *bench) growth(shape shapes.Shape) []row {
	const n = 1_000
	program, small, large := b.build(), b.storeOf(shape.Lines(n)), b.storeOf(shape.Lines(10*n))
	var rows []row
	for _, command := range growing {
		rows = append(rows, grown(program, command, small, large, fmt.Sprintf("%s: %d → %d %s", strings.Join(command, " "), n, 10*n, shape.Name)))
	}
	check(os.RemoveAll(small))
	check(os.RemoveAll(large))
	return rows
}

// growing are the commands that are run on each shape.
var growing = [][]string{
	{"context", shapes.ID},
	{"context", shapes.ID, "--window", "2000"},
	{"show", shapes.ID},
	{"tree", shapes.ID},
	{"tag", shapes.ID},
	{"export", shapes.ID, "--format", "html"},
	{"fsck", shapes.ID},
	{"repair", shapes.ID, "--dry-run"},
	{"ls"},
}

const (
	// tenfold is by how much the time may grow with ten times the input.
	tenfold = 12.0
	// noise is how much time a process takes more or less for no reason. What
	// takes less than that says nothing.
	noise = 100 * time.Millisecond
	// maxCopies is how many times as much memory as the largest entry may be needed.
	maxCopies = 3.0
)

func grown(program string, command []string, small, large, work string) row {
	cpu := func(dir string) func() time.Duration {
		return func() time.Duration {
			return run(program, dir, command)
		}
	}
	times := inTurns(3, cpu(small), cpu(large))
	before, after := times[0], times[1]
	r := atMost(work, before, after, tenfold)
	r.met = r.met || after < noise
	return r
}

// growthOfOutput measures the memory that one large output of a tool needs.
func growthOfOutput(b *bench) []row {
	program := b.build()
	size := 48 << 20 // an entry has at most 64 MB
	if b.quick {
		size = 30 << 20
	}
	dir := b.newDir()
	call := `{"type":"message","message":{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"c","name":"run","input":{}}}]}}`
	_, id := b.output(program, dir, nil, "new")
	b.output(program, dir, nil, "append", id, "--entry", call)
	output := bytes.Repeat([]byte("some words of output\n"), size/21)
	b.output(program, dir, bytes.NewReader(output), "append", id, "--role", "tool", "--call", "c", "-")
	var rows []row
	for _, command := range [][]string{
		{"show", id},
		{"show", id, "--full"},
		{"context", id},
		{"context", id, "--json"},
		{"context", id, "--window", "10000"},
		{"export", id, "--format", "html"},
		{"export", id, "--format", "md"},
		{"tree", id},
		{"fsck", id},
	} {
		peak := peakOf(inStore(program, dir, command))
		name := strings.Replace(strings.Join(command, " "), id, shapes.ID, 1)
		copies := float64(peak-idle(program, dir)) / float64(size)
		rows = append(rows, row{
			work: fmt.Sprintf("%s: memory, beside an output of %d MB", name, size>>20), raw: fmt.Sprintf("%d MB", size>>20),
			ours: fmt.Sprintf("%d MB", peak>>20), ratio: fmt.Sprintf("%.2f ×", copies), goal: fmt.Sprintf("≤ %.1f ×", maxCopies), met: copies <= maxCopies,
		})
	}
	return rows
}

// idle is the memory that the program needs for nothing.
func idle(program, dir string) int64 { return peakOf(inStore(program, dir, []string{"version"})) }

// build compiles the program, once.
func (b *bench) build() string {
	if b.program != "" {
		return b.program
	}
	program := filepath.Join(b.newDir(), "coppice.exe") // for Windows; others do not mind
	out, err := exec.Command("go", "build", "-o", program, "github.com/coppice-dev/coppice/cmd/coppice").CombinedOutput()
	if err != nil {
		panic(fmt.Sprintf("%v: %s", err, out))
	}
	b.program = program
	return program
}

// storeOf makes a store with one session.
func (b *bench) storeOf(lines string) string {
	dir := b.newDir()
	check(os.WriteFile(filepath.Join(dir, shapes.ID+".jsonl"), []byte(lines), 0o600))
	return dir
}

// run runs a command and returns its processor time. Its exit code says what it
// found, which does not matter here.
func run(program, dir string, command []string) time.Duration {
	cmd := inStore(program, dir, command)
	if err := cmd.Run(); cmd.ProcessState == nil {
		panic(err)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func (b *bench) output(program, dir string, in *bytes.Reader, command ...string) (time.Duration, string) {
	cmd := inStore(program, dir, command)
	if in != nil {
		cmd.Stdin = in
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	check(cmd.Run())
	return cmd.ProcessState.UserTime(), strings.TrimSpace(out.String())
}

// inStore makes a command that keeps everything in a directory, its index too.
func inStore(program, dir string, command []string) *exec.Cmd {
	cmd := exec.Command(program, append([]string{"--dir", dir}, command...)...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CACHE_HOME="+dir+"/.cache", "XDG_CONFIG_HOME="+dir+"/.config", "XDG_DATA_HOME="+dir+"/.data")
	return cmd
}
