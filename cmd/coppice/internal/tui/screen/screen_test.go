package screen_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/screen"
	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/screentest"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/render/plain"
)

func open(columns, rows int) (*screentest.Terminal, *screen.Screen) {
	t := screentest.New(columns, rows)
	return t, screen.New(t, t.Size)
}

// Whatever is finished stays, in order; below it are the live rows, with the cursor where
// it should be.
func TestFinishedRowsStayAndLiveRowsAreReplaced(t *testing.T) {
	soak.Check(t, func(t *rapid.T) {
		term, s := open(20, 8)
		var finished []string
		row := rapid.StringMatching(`[a-c日]{0,9}`)
		for range rapid.IntRange(1, 12).Draw(t, "updates") {
			done := rapid.SliceOfN(row, 0, 12).Draw(t, "finished")
			live := rapid.SliceOfN(row, 0, 7).Draw(t, "live")
			at := rapid.IntRange(0, max(len(live)-1, 0)).Draw(t, "at")
			s.Update(done, live, screen.Cursor{Row: at, Column: 2})
			finished = append(finished, done...)
			want := strings.TrimRight(strings.Join(slices.Concat(finished, live), "\n"), "\n")
			if got := term.String(); got != want {
				t.Fatalf("the terminal has\n%s\nwant\n%s", got, want)
			}
			gotRow, gotColumn := term.Cursor()
			if wantRow := len(finished) + at; gotRow != wantRow || len(live) > 0 && gotColumn != 2 {
				t.Fatalf("the cursor is at %d,%d, want row %d", gotRow, gotColumn, wantRow)
			}
		}
		if faults := term.Faults(); len(faults) > 0 {
			t.Fatalf("%q", faults)
		}
	})
}

// A text that grows beyond the screen, row by row, loses no row.
func TestLiveRowsMayOutgrowTheScreen(t *testing.T) {
	term, s := open(20, 5)
	var rows []string
	for i := range 30 {
		rows = append(rows, fmt.Sprint("row ", i))
		s.Update(nil, rows, screen.Cursor{Column: -1})
	}
	s.Update(rows, nil, screen.Cursor{})
	s.Print("done")
	if got, want := term.String(), strings.Join(append(rows, "done"), "\n"); got != want {
		t.Errorf("the terminal has %q", got)
	}
}

// What has left the screen at its top cannot be drawn again, and is not drawn twice.
func TestRowsAboveTheScreenStayAsTheyAre(t *testing.T) {
	term, s := open(20, 4)
	s.Update(nil, []string{"one", "two", "three", "four", "five", "six"}, screen.Cursor{Column: -1})
	s.Update(nil, []string{"ONE", "two", "three", "FOUR", "five", "six", "seven"}, screen.Cursor{Column: -1})
	if got := strings.ReplaceAll(term.String(), "\n", " "); got != "one two three FOUR five six seven" {
		t.Errorf("the terminal has %q", got)
	}
}

func TestARowIsOneRow(t *testing.T) {
	term, s := open(20, 4)
	s.Update([]string{"a\nb\tc"}, []string{"long " + strings.Repeat("x", 40)}, screen.Cursor{Column: -1})
	if got := term.String(); got != "a b c\nlong xxxxxxxxxxxxxxx" {
		t.Errorf("the terminal has %q", got)
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
	term, s := open(30, 6)
	s.Update(nil, []string{"> hello"}, screen.Cursor{Column: 4})
	s.Print("news")
	if got := term.String(); got != "news\n> hello" {
		t.Errorf("the terminal has %q", got)
	}
	term.Resize(5)
	s.Update(nil, []string{"> he", "  llo"}, screen.Cursor{Row: 1, Column: 5})
	if got := term.String(); got != "news\n> he\n  llo" {
		t.Errorf("after a resize the terminal has %q", got)
	}
}
