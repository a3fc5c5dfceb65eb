package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// branch moves the leaf to and fro in a short and in a long session.
func branch(b *bench) []row {
	many := 1_000_000
	if b.quick {
		many = 200_000
	}
	const n = 100
	brancher := func(entries int) func() {
		var early, late string
		path := b.writeSession(func(w *writer) {
			messages(5)(w)
			early = w.last
			messages(entries - 5)(w)
			late = w.last
		})
		s := load(path, file.Never)
		_, err := s.MessageCount()
		check(err)
		return func() {
			check(s.Branch(early))
			early, late = late, early
		}
	}
	t := inTurns(b.rounds(150), each(n, brancher(10)), each(n, brancher(many)))
	return []row{atMost(fmt.Sprintf("Branch at 10 → %d entries, Sync: Never", many), t[0], t[1], 1.2)}
}

// fork copies a branch into a new session, beside copying the bytes.
func fork(b *bench) []row {
	var rows []row
	var perByte [2]float64
	for i, entries := range []int{10_000, 100_000} {
		path := b.writeSession(messages(entries))
		info, err := os.Stat(path)
		check(err)
		s := load(path, file.Always)
		leaf := s.LeafID()
		_, err = s.MessageCount()
		check(err)
		t := inTurns(b.rounds(9),
			once(func() { copyFile(path) }),
			func() time.Duration { return forkOnce(s, leaf) })
		check(s.Close())
		perByte[i] = float64(t[1]) / float64(info.Size())
		rows = append(rows, atMost(fmt.Sprintf("fork to a new file, %d MB, beside a synced copy", info.Size()>>20), t[0], t[1], 0))
	}
	ratio := perByte[1] / perByte[0]
	return append(rows, row{
		work: "– cost of a byte, large beside small", ratio: fmt.Sprintf("%.2f ×", ratio),
		goal: "≤ 1.2 ×", met: ratio <= 1.2,
	})
}

func forkOnce(s *session.Session, leaf string) time.Duration {
	var path string
	d := once(func() {
		var err error
		path, err = s.CreateBranchedSession(leaf)
		check(err)
	})()
	check(os.Remove(path))
	return d
}

// copyFile copies a file and makes the copy durable.
func copyFile(path string) {
	src, err := os.Open(path)
	check(err)
	defer src.Close()
	dst, err := os.Create(filepath.Join(filepath.Dir(path), "copy"))
	check(err)
	// Not dst.ReadFrom, which shares the blocks where the file system can.
	_, err = io.CopyBuffer(struct{ io.Writer }{dst}, struct{ io.Reader }{src}, make([]byte, 256<<10))
	check(err)
	check(dst.Sync())
	check(dst.Close())
	check(os.Remove(dst.Name()))
}
