package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// firstContext measures how long it takes from a file to what a model is sent,
// when nothing was compacted.
func firstContext(b *bench) []row {
	var rows []row
	for _, size := range []struct {
		messages int
		limit    time.Duration
	}{{10_000, 20 * time.Millisecond}, {100_000, 200 * time.Millisecond}} {
		path := b.writeSession(messages(size.messages))
		scanTook, scanBusy := both(func() { scan(path) })
		openTook, openBusy := both(func() { firstOf(path, getContext) })
		t := inTurns(b.rounds(9),
			scanTook, openTook, once(func() { firstOf(path, viewContext) }), scanBusy, openBusy)
		name := fmt.Sprintf("open and first context, %d messages", size.messages)
		rows = append(rows, beside(name, t[0], t[1], size.limit), atMost("– shared, with fingerprints", t[0], t[2], 0),
			atMost("– processor time", t[3], t[4], 0))
		check(os.Remove(path))
	}
	return rows
}

func firstOf(path string, ask func(*session.Session)) {
	s := load(path, file.Always)
	ask(s)
	check(s.Close())
}

// contextAgain measures the context when it was asked for before: of a session in
// which nothing happened since, and in the turn of an agent, after one append. The
// raw column is the first time.
func contextAgain(b *bench) []row {
	return append(
		again(b, 100_000, "context again, nothing changed", 10*time.Millisecond, false),
		again(b, 10_000, "context after one append", 2*time.Millisecond, true)...)
}

func again(b *bench, entries int, name string, limit time.Duration, grow bool) []row {
	path := b.writeSession(messages(entries))
	var first, later []time.Duration
	for _, ask := range []func(*session.Session){viewContext, getContext} {
		s := load(path, file.Never)
		first = append(first, once(func() { ask(s) })())
		add := appender(s)
		later = append(later, inTurns(b.rounds(9), func() time.Duration {
			if grow {
				add()
			}
			return once(func() { ask(s) })()
		})[0])
		check(s.Close())
	}
	check(os.Remove(path))
	return []row{
		beside(fmt.Sprintf("%s, %d messages, only read", name, entries), first[0], later[0], limit),
		atMost("– as a copy that may be changed", first[1], later[1], 0),
	}
}

func getContext(s *session.Session) {
	_, err := s.GetContext()
	check(err)
}

// viewContext asks as those do who only read.
func viewContext(s *session.Session) {
	_, err := s.Context(session.ContextOptions{Shared: true})
	check(err)
}

// contextMemory measures the memory of processes that ask for a long context,
// beside the memory of what they are given.
func contextMemory(b *bench) []row {
	const entries = 50_000
	path := b.writeSession(messages(entries))
	returned := sizeOfContext(path)
	program, self := b.build(), executable()
	id, dir := filepath.Base(path)[:8], filepath.Dir(path)
	asked := peakOf(exec.Command(self, "-ask", path)) - peakOf(exec.Command(self, "-ask", ""))
	shown := peakOf(inStore(program, dir, []string{"context", id})) - idle(program, dir)
	rows := []row{
		memory(fmt.Sprintf("context of %d messages: memory, beside what is returned", entries), returned, asked),
		memory("– of coppice context", returned, shown),
	}
	check(os.Remove(path))
	return rows
}

// sizeOfContext returns how much memory a context keeps.
func sizeOfContext(path string) int64 {
	s := load(path, file.Always)
	before := heap()
	c, err := s.Context(session.ContextOptions{Shared: true})
	check(err)
	check(s.Close()) // it gives up everything else
	held := heap() - before
	if c.Leaf == "" { // and c is still in use
		panic("no context")
	}
	return held
}

// memory is a row that compares memory.
func memory(work string, raw, ours int64) row {
	ratio := float64(ours) / float64(raw)
	return row{
		work: work, raw: fmt.Sprintf("%.0f MB", float64(raw)/1e6), ours: fmt.Sprintf("%.0f MB", float64(ours)/1e6),
		ratio: fmt.Sprintf("%.2f ×", ratio), goal: "≤ 2.0 ×", met: ratio <= 2,
	}
}
