//go:build linux

// Faces measures the terminal UI as a person feels it: the real program on a pseudo terminal, from
// a key to the first byte of its answer, in a home with very many sessions and in a very large
// session. It prints a table, and what is larger than its goal is marked.
//
//	go run ./bench/faces [-dir DIR] [-sessions 100000] [-entries 1000000]
//
// DIR keeps the homes for the next time.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	columns, rows = 120, 40
	patience      = 5 * time.Second
)

func main() {
	dir := flag.String("dir", "", "where the homes are kept")
	sessions := flag.Int("sessions", 100_000, "of the home with many sessions")
	entries := flag.Int("entries", 1_000_000, "of the large session, each of about a kilobyte")
	flag.Parse()
	if err := run(*dir, *sessions, *entries); err != nil {
		fmt.Fprintln(os.Stderr, "faces:", err)
		os.Exit(1)
	}
}

func run(dir string, sessions, entries int) error {
	if dir == "" {
		temporary, err := os.MkdirTemp("", "faces")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temporary)
		dir = temporary
	}
	program := filepath.Join(dir, "coppice")
	if out, err := exec.Command("go", "build", "-o", program, "./cmd/coppice").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	many, large := filepath.Join(dir, "many"), filepath.Join(dir, "large")
	if err := makeHome(program, many, func(dir string) error { return writeMany(dir, sessions) }); err != nil {
		return err
	}
	if err := makeHome(program, large, func(dir string) error { return writeLarge(dir, entries) }); err != nil {
		return err
	}
	fmt.Printf("%-52s %10s %10s %10s %10s\n", "", "median", "p99", "most", "goal")
	return errors.Join(measureEcho(), measureMany(program, many, sessions), measureLarge(program, large, entries))
}

// makeHome fills a home and builds its index, unless it is there.
func makeHome(program, dir string, fill func(dir string) error) error {
	if _, err := os.Stat(filepath.Join(dir, "ready")); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := fill(dir); err != nil {
		return err
	}
	if out, err := exec.Command(program, "--dir", dir, "ls", "-n", "1").CombinedOutput(); err != nil {
		return fmt.Errorf("coppice ls: %w\n%s", err, out)
	}
	return os.WriteFile(filepath.Join(dir, "ready"), nil, 0o600)
}

// measureEcho measures what the machine takes for a program that does nothing with a key but print it.
func measureEcho() error {
	t, err := start(exec.Command("sh", "-c", "stty raw -echo; echo ready; exec cat"))
	if err != nil {
		return err
	}
	_, err = t.shows("ready")
	echoes, keyErr := t.keys(slices.Repeat([]string{"x"}, 300)...)
	report("a key that cat echoes, for comparison", echoes.first, 0)
	return errors.Join(err, keyErr, t.close())
}

// measureMany measures how long the first screen takes, and search as one types.
func measureMany(program, dir string, sessions int) error {
	var paints []time.Duration
	for range 20 {
		t, err := open(program, dir)
		if err != nil {
			return err
		}
		took, err := t.shows("session ")
		paints = append(paints, took)
		if err := errors.Join(err, t.close()); err != nil {
			return err
		}
	}
	report(fmt.Sprintf("first screen, %d sessions", sessions), paints, 100*time.Millisecond)
	t, err := open(program, dir)
	if err != nil {
		return err
	}
	if _, err := t.shows("session "); err != nil {
		return errors.Join(err, t.close())
	}
	moves, err := t.keys(slices.Repeat([]string{down}, 300)...)
	reportKeys("down in the list", moves, 16*time.Millisecond)
	pages, pageErr := t.keys(slices.Repeat([]string{pageDown}, 100)...)
	reportKeys("a page down in the list", pages, 16*time.Millisecond)
	typed, typeErr := t.keys(append([]string{"/"}, strings.Split("hazel coppice", "")...)...)
	reportKeys("a letter of a search", typed, 16*time.Millisecond)
	fmt.Println("memory:", t.memory())
	return errors.Join(err, pageErr, typeErr, t.close())
}

// measureLarge measures moving in a large session and in its tree.
func measureLarge(program, dir string, entries int) error {
	t, err := open(program, dir)
	if err != nil {
		return err
	}
	if _, err := t.shows("session "); err != nil {
		return errors.Join(err, t.close())
	}
	begun := time.Now()
	if err := t.write(enter); err != nil {
		return err
	}
	_, err = t.shows(lastWords)
	report(fmt.Sprintf("opening a session of %d entries", entries), []time.Duration{time.Since(begun)}, 0)
	moves, moveErr := t.keys(slices.Repeat([]string{up}, 300)...)
	reportKeys("up in it", moves, 16*time.Millisecond)
	pages, pageErr := t.keys(slices.Repeat([]string{pageUp}, 100)...)
	reportKeys("a page up in it", pages, 16*time.Millisecond)
	jumps, jumpErr := t.keys(slices.Repeat([]string{"P"}, 50)...)
	reportKeys("the prompt before", jumps, 16*time.Millisecond)
	ends, endErr := t.keys(slices.Repeat([]string{"g", "G"}, 20)...)
	reportKeys("its beginning and its end", ends, 16*time.Millisecond)
	first, firstErr := t.keys("t")
	reportKeys("opening the tree", first, 0)
	tree, treeErr := t.keys(slices.Repeat([]string{pageUp, "g", "G"}, 30)...)
	reportKeys("a jump in the tree", tree, 50*time.Millisecond)
	fmt.Println("memory (goal: 100 MB):", t.memory())
	return errors.Join(err, moveErr, pageErr, jumpErr, endErr, firstErr, treeErr, t.close())
}

// reportKeys prints how long keys took: until they were answered, for which there is a goal, and until
// all that they led to was drawn.
func reportKeys(what string, took timings, goal time.Duration) {
	report(what, took.first, goal)
	report("  and all of it", took.last, 0)
}

// report prints a row. A goal of 0 is none.
func report(what string, took []time.Duration, goal time.Duration) {
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	at := func(share float64) time.Duration { return took[min(int(share*float64(len(took))), len(took)-1)] }
	line := fmt.Sprintf("%-52s %10s %10s %10s", what, ms(at(0.5)), ms(at(0.99)), ms(at(1)))
	if goal > 0 {
		line += fmt.Sprintf(" %10s", ms(goal))
		if at(0.99) > goal {
			line += "  missed"
		}
	}
	fmt.Println(line)
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)) }

// lastWords is what the last entry of the large session says.
const lastWords = "and that was the last one"

// writeMany writes sessions of three lines.
func writeMany(dir string, n int) error {
	for i := range n {
		id := fmt.Sprintf("019a0000-0000-7000-8000-%012d", i)
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Minute)
		w := &log{id: id, at: at}
		w.header(fmt.Sprintf(`,"cwd":"/home/you/project%d"`, i%50))
		w.message("user", fmt.Sprintf("session %d: how do I coppice hazel number %d?", i, i%977))
		w.message("assistant", "Cut it down to the ground in winter.")
		if err := os.WriteFile(filepath.Join(dir, id+".jsonl"), []byte(w.String()), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// writeLarge writes a session in which every hundredth entry begins a branch that was left.
func writeLarge(dir string, n int) error {
	id := "019a0000-0000-7000-8000-0000000000ff"
	f, err := os.Create(filepath.Join(dir, id+".jsonl"))
	if err != nil {
		return err
	}
	filler := strings.Repeat("Hazel grows again from the root. ", 22)
	w := &log{id: id, at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	w.header("")
	for i := 0; i < n; i++ {
		before := w.last
		switch {
		case i == n-1:
			w.message("assistant", lastWords)
		case i%10 == 0:
			w.message("user", fmt.Sprintf("session question %d: %s", i, filler))
		default:
			w.message("assistant", fmt.Sprintf("Answer %d. %s", i, filler))
		}
		if i%100 == 50 {
			w.last = before // the next one begins another branch
		}
		if w.Len() > 1<<20 || i == n-1 {
			if _, err := f.WriteString(w.String()); err != nil {
				return errors.Join(err, f.Close())
			}
			w.Reset()
		}
	}
	return f.Close()
}

// log writes the lines of a session.
type log struct {
	strings.Builder
	id    string
	at    time.Time
	last  string
	count int
}

func (w *log) header(more string) {
	fmt.Fprintf(w, `{"type":"session","id":%q,"version":1,"timestamp":%q%s}`+"\n", w.id, w.at.Format(time.RFC3339), more)
}

func (w *log) message(role, text string) {
	w.count++
	w.at = w.at.Add(time.Second)
	id := fmt.Sprintf("019a%04x-%04x-7000-8000-%s", w.count>>16, w.count&0xffff, w.id[24:])
	parent := "null"
	if w.last != "" {
		parent = fmt.Sprintf("%q", w.last)
	}
	fmt.Fprintf(w, `{"type":"message","id":%q,"parent_id":%s,"timestamp":%q,"message":{"role":%q,"content":[{"type":"text","text":{"content":%q}}]}}`+"\n",
		id, parent, w.at.Format(time.RFC3339), role, text)
	w.last = cmp.Or(id, w.last)
}
