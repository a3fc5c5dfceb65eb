// Package screentest has a terminal for tests. It understands what package screen writes,
// and takes anything else for a fault.
package screentest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render/plain"
)

// Terminal shows what is written to it, and keeps what leaves its top. It may be used by
// several goroutines at once.
type Terminal struct {
	mu            sync.Mutex
	columns, rows int
	lines         []string // what has left the top, and the screen
	row, column   int      // of the cursor, in lines
	faults        []string
	bells         int
}

// New returns an empty terminal.
func New(columns, rows int) *Terminal {
	return &Terminal{columns: columns, rows: rows, lines: []string{""}}
}

// Size returns how many columns and rows there are.
func (t *Terminal) Size() (columns, rows int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.columns, t.rows
}

// Resize changes the number of columns. Lines that are too long are wrapped, as terminals
// do.
func (t *Terminal) Resize(columns int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	row := 0
	for i, line := range t.lines {
		if i == t.row {
			row = len(lines)
		}
		lines = append(lines, strings.Split(ansi.Hardwrap(line, columns, true), "\n")...)
	}
	t.columns, t.lines, t.row = columns, lines, row
}

// Cursor returns where the cursor is, counted from the first line ever written.
func (t *Terminal) Cursor() (row, column int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.row, t.column
}

// String returns all lines, without empty ones at the end.
func (t *Terminal) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimRight(strings.Join(t.lines, "\n"), "\n")
}

// Faults returns what was written and is no text, no colour and no known control.
func (t *Terminal) Faults() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.faults
}

// Bells returns how often the bell rang.
func (t *Terminal) Bells() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bells
}

// patience is how long Wait waits. Machines stall.
const patience = time.Minute

// Wait waits until what the terminal shows is as it should be.
func (t *Terminal) Wait(isRight func(text string) bool) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if isRight(t.String()) {
			return true
		}
	}
	return false
}

var control = regexp.MustCompile(`^\x1b\[\??([0-9;]*)([A-Za-z])`)

// Write shows text.
func (t *Terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if string(b) == "\a" { // anywhere else it is somebody's text
		t.bells++
		return len(b), nil
	}
	for text := string(b); text != ""; {
		n := 1
		switch text[0] {
		case '\r':
			t.column = 0
		case '\n':
			if t.row++; t.row >= len(t.lines) {
				t.lines = append(t.lines, "")
			}
		case '\x1b':
			if m := control.FindStringSubmatch(text); m != nil {
				n = len(m[0])
				t.control(m[2], m[1])
			} else {
				t.fault("an escape: %.20q", text)
			}
		default:
			if n = strings.IndexAny(text, "\r\n\x1b"); n < 0 {
				n = len(text)
			}
			t.write(text[:n])
		}
		text = text[n:]
	}
	return len(b), nil
}

func (t *Terminal) fault(format string, args ...any) {
	t.faults = append(t.faults, fmt.Sprintf(format, args...))
}

func (t *Terminal) control(verb, args string) {
	n, err := strconv.Atoi(args)
	if err != nil {
		n = 1
	}
	switch verb {
	case "A":
		t.row = max(t.row-n, len(t.lines)-t.rows, 0)
	case "B":
		t.row = min(t.row+n, len(t.lines)-1)
	case "C":
		t.column += n
	case "K":
		t.lines[t.row] = ansi.Truncate(t.lines[t.row], t.column, "")
	case "J":
		t.lines[t.row] = ansi.Truncate(t.lines[t.row], t.column, "")
		t.lines = t.lines[:t.row+1]
	case "H":
		t.row, t.column = max(0, len(t.lines)-t.rows), 0
	case "m", "h", "l":
	default:
		t.fault("the control %q", verb)
	}
}

func (t *Terminal) write(text string) {
	if plain.Text(text) != text {
		t.fault("%q", text)
	}
	line := t.lines[t.row]
	line += strings.Repeat(" ", max(0, t.column-ansi.StringWidth(line)))
	end := t.column + ansi.StringWidth(text)
	if end > t.columns {
		t.fault("%q does not fit", text)
	}
	t.lines[t.row] = ansi.Truncate(line, t.column, "") + text + ansi.TruncateLeft(line, end, "")
	t.column = end
}
