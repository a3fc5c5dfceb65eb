package screen_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/tui/screen"
	"github.com/coppice-dev/coppice/render/plain"
)

// glass is a small terminal: it understands what Screen writes, keeps what scrolls out
// of its top, and fails on anything else.
type glass struct {
	t             interface{ Fatalf(string, ...any) }
	columns, rows int
	lines         []string // scrollback and screen
	row, column   int      // of the cursor, in lines
	styles        int
}

var control = regexp.MustCompile(`^\x1b\[(\??)([0-9;]*)([A-Za-z])`)

func (g *glass) Write(b []byte) (int, error) {
	for text := string(b); text != ""; {
		switch {
		case text[0] == '\r':
			g.column = 0
			text = text[1:]
		case text[0] == '\n':
			g.down()
			text = text[1:]
		case text[0] == '\x1b':
			m := control.FindStringSubmatch(text)
			if m == nil {
				g.t.Fatalf("a control sequence that nobody wrote: %.20q", text)
			}
			g.control(m[3], m[2])
			text = text[len(m[0]):]
		default:
			n := strings.IndexAny(text, "\r\n\x1b")
			if n < 0 {
				n = len(text)
			}
			g.write(text[:n])
			text = text[n:]
		}
	}
	return len(b), nil
}

func (g *glass) top() int { return max(0, len(g.lines)-g.rows) }

func (g *glass) down() {
	if g.row++; g.row >= len(g.lines) {
		g.lines = append(g.lines, "")
	}
}

func (g *glass) control(verb, args string) {
	n, err := strconv.Atoi(args)
	if err != nil {
		n = 1
	}
	switch verb {
	case "A":
		g.row = max(g.row-n, g.top())
	case "B":
		g.row = min(g.row+n, len(g.lines)-1)
	case "C":
		g.column += n
	case "K":
		g.lines[g.row] = ansi.Truncate(g.lines[g.row], g.column, "")
	case "J":
		g.lines[g.row] = ansi.Truncate(g.lines[g.row], g.column, "")
		g.lines = g.lines[:g.row+1]
	case "m":
		g.styles++
	case "h", "l", "H":
	default:
		g.t.Fatalf("unknown control %q", verb)
	}
}

func (g *glass) write(text string) {
	line := g.lines[g.row]
	line += strings.Repeat(" ", max(0, g.column-ansi.StringWidth(line)))
	end := g.column + ansi.StringWidth(text)
	if end > g.columns {
		g.t.Fatalf("%q does not fit", text)
	}
	g.lines[g.row] = ansi.Truncate(line, g.column, "") + text + ansi.TruncateLeft(line, end, "")
	g.column = end
}

func newGlass(t interface{ Fatalf(string, ...any) }, columns, rows int) (*glass, *screen.Screen) {
	g := &glass{t: t, columns: columns, rows: rows, lines: []string{""}}
	return g, screen.New(g, func() (int, int) { return g.columns, g.rows })
}

// Whatever is finished stays, in order; below it are the live rows, with the cursor where
// it should be.
func TestFinishedRowsStayAndLiveRowsAreReplaced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, s := newGlass(t, 20, 8)
		var finished []string
		row := rapid.StringMatching(`[a-c日]{0,9}`)
		for range rapid.IntRange(1, 12).Draw(t, "updates") {
			done := rapid.SliceOfN(row, 0, 12).Draw(t, "finished")
			live := rapid.SliceOfN(row, 0, 7).Draw(t, "live")
			at := rapid.IntRange(0, max(len(live)-1, 0)).Draw(t, "at")
			s.Update(done, live, screen.Cursor{Row: at, Column: 2})
			finished = append(finished, done...)
			want := strings.TrimRight(strings.Join(slices.Concat(finished, live), "\n"), "\n")
			if got := strings.TrimRight(strings.Join(g.lines, "\n"), "\n"); got != want {
				t.Fatalf("the terminal has\n%s\nwant\n%s", got, want)
			}
			if wantRow := len(finished) + at; g.row != wantRow || len(live) > 0 && g.column != 2 {
				t.Fatalf("the cursor is at %d,%d, want row %d", g.row, g.column, wantRow)
			}
		}
	})
}

// A text that grows beyond the screen, row by row, loses no row.
func TestLiveRowsMayOutgrowTheScreen(t *testing.T) {
	g, s := newGlass(t, 20, 5)
	var rows []string
	for i := range 30 {
		rows = append(rows, fmt.Sprint("row ", i))
		s.Update(nil, rows, screen.Cursor{Column: -1})
	}
	s.Update(rows, nil, screen.Cursor{})
	s.Print("done")
	want := append(slices.Clone(rows), "done", "")
	if strings.Join(g.lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("the terminal has %q", g.lines)
	}
}

func TestNothingInARowActsOnTheTerminal(t *testing.T) {
	var out bytes.Buffer
	s := screen.New(&out, func() (int, int) { return 60, 10 })
	s.Update([]string{"a\x1b]0;x\x07\r\nb"}, []string{plain.Paint("31", "c\x1b[2Jd"), "\u202ee\x9b"}, screen.Cursor{})
	text := out.String()
	for _, bad := range []string{"\x1b]", "\x1b[2J", "\x07", "\u202e", "\x9b"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q reached the terminal: %q", bad, text)
		}
	}
	if !strings.Contains(text, "\x1b[31mc") {
		t.Errorf("our own colour did not: %q", text)
	}
}

func TestPrintKeepsThePromptBelow(t *testing.T) {
	g, s := newGlass(t, 30, 6)
	s.Update(nil, []string{"> hello"}, screen.Cursor{Column: 4})
	s.Print("news")
	if got := strings.Join(g.lines, "|"); got != "news|> hello" {
		t.Errorf("the terminal has %q", got)
	}
	g.columns = 5 // the terminal became narrower, and wrapped the row
	g.lines = []string{"news", "> hel", "lo"}
	g.row, g.column = 1, 4
	s.Update(nil, []string{"> he", "  llo"}, screen.Cursor{Row: 1, Column: 5})
	if got := strings.Join(g.lines, "|"); got != "news|> he|  llo" {
		t.Errorf("after a resize the terminal has %q", got)
	}
}
