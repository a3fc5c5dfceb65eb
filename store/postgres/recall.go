package postgres

import (
	"bytes"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// A program that opens a session reads the beginning and the end of its log several times within
// milliseconds. Lines never change, so a handle can use again those that it has just read; only
// whether the log was rewritten, and where it ends, can change. So pages are kept for as long as an
// answer of Current is valid, and the server is always asked for the end.

// fresh is how long an answer of Current is valid.
const fresh = 100 * time.Millisecond

// pages are those that were read last: often the first one of the log and the last one. The
// lines of each are in order.
type pages struct {
	lines   [2][]store.Line
	checked time.Time // when the log was last found not to be rewritten
	edits   int64     // what Store.edits was then
}

// isFresh reports whether the log was found unchanged a moment ago, and this program has rewritten
// none since. The caller holds the mutex.
func (l *log) isFresh() bool {
	return l.pages.edits == l.store.edits.Load() && time.Since(l.pages.checked) < fresh
}

// remember notes that the log was not rewritten when the server was asked, which was after the
// moment start, and keeps the lines of the answer, if they are few.
func (l *log) remember(start time.Time, edits int64, lines []store.Line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pages.checked, l.pages.edits = start, edits
	if len(lines) == 0 || lines[len(lines)-1].Next-lines[0].Pos > endPage {
		return
	}
	kept := make([]store.Line, len(lines))
	for i, line := range lines {
		line.Data = bytes.Clone(line.Data) // whose reader may change it
		kept[i] = line
	}
	l.pages.lines[1], l.pages.lines[0] = l.pages.lines[0], kept
	time.AfterFunc(2*fresh, l.forget)
}

// forget drops pages that may not be used any more.
func (l *log) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isFresh() {
		l.pages.lines = [2][]store.Line{}
	}
}

// recall returns copies of the kept lines from a position on, in order, or those before it.
func (l *log) recall(from store.Pos, before bool) []store.Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isFresh() {
		return nil
	}
	for _, lines := range l.pages.lines {
		for i, line := range lines {
			switch {
			case before && line.Next == from:
				return copies(lines[:i+1])
			case !before && line.Pos == from:
				return copies(lines[i:])
			}
		}
	}
	return nil
}

func copies(lines []store.Line) []store.Line {
	all := make([]store.Line, len(lines))
	for i, line := range lines {
		line.Data = bytes.Clone(line.Data)
		all[i] = line
	}
	return all
}
