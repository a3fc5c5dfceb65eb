package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

const kept = 200 // messages in the context of a compacted session

// compacted returns a function that writes a session with a system message, a number of
// bytes of history, a compaction that replaces it as our writer records one, and the
// messages after.
func compacted(size int64) func(*writer) {
	return func(w *writer) {
		at := w.bytes
		w.system()
		state := &session.State{Provider: "provider", Model: "model-1", Kept: []session.KeptEntry{{ID: w.last, At: store.Pos(at)}}}
		for w.bytes < size {
			w.message()
		}
		w.compaction(state)
	}
}

// foreign is compacted as another program writes it: the compaction does not say
// what was in force. If the messages do not say either, all of the path is looked
// at.
func foreign(size int64, models bool) func(*writer) {
	return func(w *writer) {
		w.anonymous = !models
		w.system()
		for w.bytes < size {
			w.message()
		}
		w.compaction(nil)
	}
}

func (w *writer) system() {
	w.write(w.line(session.Message(session.RoleSystem, content...)))
}

func (w *writer) compaction(state *session.State) {
	w.write(w.line(session.Entry{Type: session.TypeCompaction, Compaction: &session.CompactionEntry{
		Summary: text, TokensBefore: 100_000, State: state,
	}}))
	for range kept {
		w.message()
	}
}

func resume(b *bench) []row {
	sizes := []int64{1 << 20, 10 << 20, 100 << 20, 1 << 30}
	if b.quick {
		sizes = sizes[:3]
	}
	var measures []func() time.Duration
	for _, size := range sizes {
		path := b.writeSession(compacted(size))
		defer os.Remove(path)
		measures = append(measures, once(func() { resumeOnce(path) }))
	}
	archived := b.writeSession(compacted(100 << 20))
	st, err := file.Open(filepath.Dir(archived), nil)
	check(err)
	check(st.Archive(context.Background(), strings.TrimSuffix(filepath.Base(archived), ".jsonl")))
	measures = append(measures, once(func() { resumeOnce(archived) }))
	t := inTurns(b.rounds(15), measures...)
	var rows []row
	for i, size := range sizes {
		rows = append(rows, within(fmt.Sprintf("resume a compacted session of %d MB", size>>20), t[i], 10*time.Millisecond))
	}
	last := len(sizes) - 1
	flat := atMost(fmt.Sprintf("– %d MB beside %d MB", sizes[last]>>20, sizes[0]>>20), t[0], t[last], 2)
	zst := atMost("– 100 MB, archived, beside 100 MB", t[2], t[last+1], 0)
	return append(rows, flat, zst)
}

func resumeOnce(path string) {
	s := load(path, file.Always)
	entries, err := s.GetContext()
	check(err)
	if len(entries) != kept+2 {
		check(fmt.Errorf("the context has %d entries", len(entries)))
	}
	check(s.Close())
}

// resumeForeign measures compactions that record nothing, beside a look at the
// first bytes of all lines.
func resumeForeign(b *bench) []row {
	size := int64(480 << 20)
	if b.quick {
		size = 48 << 20
	}
	named, silent := b.writeSession(foreign(size, true)), b.writeSession(foreign(size, false))
	defer os.Remove(named)
	defer os.Remove(silent)
	first := func(path string) func() {
		return func() {
			s := load(path, file.Always)
			contextOf(s)
			check(s.Close())
		}
	}
	whole := func(path string) func() { return func() { check(loadWhole(path).Close()) } }
	again := load(silent, file.Always)
	contextOf(again)
	scanTook, scanBusy := both(whole(named))
	firstTook, firstBusy := both(first(named))
	silentScanTook, silentScanBusy := both(whole(silent))
	silentTook, silentBusy := both(first(silent))
	t := inTurns(b.rounds(7),
		scanTook, firstTook, silentScanTook, silentTook, scanBusy, firstBusy, silentScanBusy, silentBusy,
		once(func() {
			check(again.Append(session.Entry{Type: session.TypeMessage, Message: message(0)}))
			contextOf(again)
		}))
	check(again.Close())
	name := fmt.Sprintf("resume %d MB, compacted without a state", size>>20)
	return []row{
		atMost(name+", beside a scan of the heads", t[0], t[1], 1),
		atMost("– processor time", t[4], t[5], 0),
		atMost("– and no message names its model", t[2], t[3], 1),
		atMost("– processor time", t[6], t[7], 0),
		within("– the next context, after an append", t[8], 10*time.Millisecond),
	}
}

func contextOf(s *session.Session) {
	c, err := s.Context(session.ContextOptions{})
	check(err)
	if len(c.Entries) < kept+2 {
		check(fmt.Errorf("the context has %d entries", len(c.Entries)))
	}
}

// scan reads a file and counts its lines: what every reader must do at least.
func scan(path string) (lines int) {
	f, err := os.Open(path)
	check(err)
	defer f.Close()
	buf := make([]byte, 1<<20)
	for {
		n, err := f.Read(buf)
		for rest := buf[:n]; ; lines++ {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				break
			}
			rest = rest[i+1:]
		}
		if errors.Is(err, io.EOF) {
			return lines
		}
		check(err)
	}
}

func fullLoad(b *bench) []row {
	const entries = 100_000
	path := b.writeSession(messages(entries))
	mixed := b.writeSession(func(w *writer) {
		w.mixed = true
		messages(entries)(w)
	})
	info, err := os.Stat(path)
	check(err)
	t := inTurns(b.rounds(15),
		once(func() {
			if n := scan(path); n != entries+1 {
				check(fmt.Errorf("%d lines", n))
			}
		}),
		once(func() { check(loadWhole(path).Close()) }),
		once(func() { check(loadWhole(mixed).Close()) }))
	before := heap()
	s := loadWhole(path)
	held := heap() - before
	check(s.Close())
	share := float64(held) / float64(info.Size())
	return []row{
		atMost(fmt.Sprintf("load %d entries, %d MB, as a whole", entries, info.Size()>>20), t[0], t[1], 3),
		atMost("– with ids in no order", t[0], t[2], 0),
		{
			work: "– memory that it keeps, beside the file",
			raw:  fmt.Sprintf("%.1f MB", float64(info.Size())/1e6), ours: fmt.Sprintf("%.1f MB", float64(held)/1e6),
			ratio: fmt.Sprintf("%.2f ×", share), goal: "≤ 1.3 ×", met: share <= 1.3,
		},
	}
}

// loadWhole loads a session and makes it read the shape of its whole tree.
func loadWhole(path string) *session.Session {
	s := load(path, file.Always)
	leaves, err := s.Leaves()
	check(err)
	if len(leaves) != 1 {
		check(fmt.Errorf("%d leaves", len(leaves)))
	}
	return s
}

// heap returns the bytes of the pages that the heap has in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers released
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}
