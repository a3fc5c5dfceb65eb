// Package screen draws at the end of a terminal's scrollback. What is finished stays
// there, as the output of any program does. Below it are the live rows, such as a prompt
// or a text that still grows, which are drawn again when they change.
//
// bubbletea, which draws the terminal UI, has a mode for this, too. But it draws live rows again
// and again into the scrollback once they outgrow the screen, and scrolls empty rows there to make
// room for finished ones. Here a row that has left the screen stays as it is, and comes once.
//
// Every row passes through [plain.Writer], so text by strangers cannot act on the
// terminal. The few control sequences that move the cursor are written here and nowhere
// else.
package screen

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render/plain"
)

// Screen is a terminal. Several goroutines may use it at once.
type Screen struct {
	out  io.Writer
	size func() (columns, rows int)

	mu    sync.Mutex // guards the rest
	buf   bytes.Buffer
	clean *plain.Writer // writes to buf
	// live are the rows that are drawn and may change, and at is the one that the
	// cursor is in. Without live rows, the cursor is at the beginning of an empty row.
	live    []string
	at      int
	columns int // when they were drawn
}

// Cursor is a place in the live rows.
type Cursor struct{ Row, Column int }

// New returns a screen on a terminal in raw mode. size asks how large it is.
func New(out io.Writer, size func() (columns, rows int)) *Screen {
	s := &Screen{out: out, size: size}
	s.clean = plain.NewWriter(&s.buf)
	return s
}

// The size that is assumed of a terminal that does not know its own.
const (
	defaultColumns = 80
	defaultRows    = 24
)

// Size returns how many columns and rows there are.
func (s *Screen) Size() (columns, rows int) {
	columns, rows = s.size()
	if columns <= 0 {
		columns = defaultColumns
	}
	if rows <= 0 {
		rows = defaultRows
	}
	return columns, rows
}

// Print adds finished rows above the live ones.
func (s *Screen) Print(rows ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draw(rows, s.live, Cursor{Row: s.at, Column: -1})
}

// Update adds finished rows and replaces the live ones. Only rows that differ from what
// is on the screen are drawn, so a row that was live and is finished now does not
// flicker. A column of -1 puts the cursor behind the last live row.
func (s *Screen) Update(finished, live []string, c Cursor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draw(finished, live, c)
}

// Mode switches a mode of the terminal on or off, such as bracketed paste.
func (s *Screen) Mode(number int, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := 'l'
	if on {
		end = 'h'
	}
	fmt.Fprintf(&s.buf, "\x1b[?%d%c", number, end)
	s.flush()
}

// Bell rings the bell of the terminal.
func (s *Screen) Bell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf.WriteByte('\a')
	s.flush()
}

// Wipe clears the screen and draws the live rows at its top.
func (s *Screen) Wipe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	live, at := s.live, s.at
	s.live, s.at = nil, 0
	s.buf.WriteString("\x1b[H\x1b[2J")
	s.draw(nil, live, Cursor{Row: at, Column: -1})
}

// draw is the one place that draws. It keeps the rows that are there already, moves to
// the first one that differs, and writes from there on.
func (s *Screen) draw(finished, live []string, c Cursor) {
	columns, height := s.Size()
	next := slices.Concat(finished, live)
	for i := range next {
		next[i] = ansi.Truncate(plain.Flat(next[i]), columns, "")
	}
	first := s.firstToDraw(next, columns, height)
	now := s.at // the row that the cursor is in
	if first < len(next) || first < len(s.live) {
		s.moveTo(first, columns)
		if len(next) < len(s.live) || columns != s.columns {
			s.buf.WriteString("\x1b[J")
		}
		for i, row := range next[first:] {
			if i > 0 {
				s.buf.WriteString("\r\n")
			}
			s.buf.WriteString("\x1b[K")
			_, _ = s.clean.Write([]byte(row)) // to memory
			_ = s.clean.Flush()
		}
		now = max(len(next)-1, first)
	}
	s.live, s.columns = slices.Clone(next[len(finished):]), columns
	s.putCursor(now-len(finished), c)
	s.flush()
}

// firstToDraw returns the first row that is not on the screen as it should be. Rows that
// have left the screen at its top can no longer be changed.
func (s *Screen) firstToDraw(next []string, columns, height int) int {
	gone := 0
	for s.lines(gone, len(s.live), columns) > height {
		gone++
	}
	if gone >= len(next) { // what is left begins below what is gone
		s.live, s.at = s.live[gone:], max(s.at-gone, 0)
		gone = 0
	}
	first := 0
	if columns == s.columns {
		for first < len(s.live) && first < len(next) && s.live[first] == next[first] {
			first++
		}
	}
	return max(first, gone)
}

// lines returns how many lines some of the live rows take. After the terminal became
// narrower, a row takes several.
func (s *Screen) lines(from, to, columns int) int {
	n := 0
	for _, row := range s.live[from:to] {
		n += max(1, (ansi.StringWidth(row)+columns-1)/columns)
	}
	return n
}

// moveTo moves the cursor to the beginning of a live row, or of the row below them.
func (s *Screen) moveTo(row, columns int) {
	switch {
	case len(s.live) == 0:
	case row <= s.at:
		s.up(s.lines(row, s.at, columns))
		s.buf.WriteByte('\r')
	default:
		last := len(s.live) - 1
		s.up(-s.lines(s.at, min(row, last), columns))
		if row > last {
			s.buf.WriteString("\r\n")
		} else {
			s.buf.WriteByte('\r')
		}
	}
}

// up moves the cursor up, or down for a negative number.
func (s *Screen) up(n int) {
	switch {
	case n > 0:
		fmt.Fprintf(&s.buf, "\x1b[%dA", n)
	case n < 0:
		fmt.Fprintf(&s.buf, "\x1b[%dB", -n)
	}
}

// putCursor puts the cursor where it belongs; row is the live row that it is in.
func (s *Screen) putCursor(row int, c Cursor) {
	if len(s.live) == 0 {
		if row < 0 { // it is in a finished row
			s.up(row + 1)
			s.buf.WriteString("\r\n")
		}
		s.at = 0
		return
	}
	last := len(s.live) - 1
	if c.Column < 0 {
		c = Cursor{last, ansi.StringWidth(s.live[last])}
	}
	s.at = max(min(c.Row, last), 0)
	s.up(row - s.at)
	s.buf.WriteByte('\r')
	if c.Column > 0 {
		fmt.Fprintf(&s.buf, "\x1b[%dC", c.Column)
	}
}

func (s *Screen) flush() {
	_, _ = s.out.Write(s.buf.Bytes()) // a terminal that is gone is noticed by its reader
	s.buf.Reset()
}
