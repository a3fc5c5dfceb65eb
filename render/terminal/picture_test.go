package terminal_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
)

// drawnPicture is a picture of a context that grows, is compacted and grows again.
func drawnPicture() *render.Picture {
	p := &render.Picture{Window: 10_000, Failed: []render.Tool{{Name: "bash\x1b[31m", Calls: 5, Errors: 2}}}
	for i := range 30 {
		at := render.Point{Entry: fmt.Sprint("e", i), Requests: 1, Context: int64(300 * (1 + i%20)), Input: 20, CacheRead: int64(300 * (i % 20)), Output: 7, CostMicroUSD: 20_000, SoFar: int64(20_000 * (i + 1))}
		switch i {
		case 3, 4, 17:
			at.Errors = render.Mark{Entry: "x", N: 1}
		case 8:
			at.Branches = render.Mark{Entry: "x", N: 2}
		case 20:
			at.Compactions = render.Mark{Entry: "x", N: 1}
		case 25:
			at.Misses = render.Mark{Entry: "x", N: 1}
		}
		p.Sent += at.Input + at.CacheRead
		p.Cached += at.CacheRead
		p.Points = append(p.Points, at)
	}
	p.Sum = render.Point{
		Requests: 30, Context: 6000, CostMicroUSD: 600_000, Spent: render.Elapsed{Model: 240_000, Tools: 90_000, Person: 7_500_000},
		Errors: render.Mark{N: 3}, Branches: render.Mark{N: 2}, Compactions: render.Mark{N: 1}, Misses: render.Mark{N: 1},
	}
	return p
}

func TestPicture(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, s := range []terminal.Style{{Width: 40}, {Width: 80, Color: true}, {}} {
		fmt.Fprintf(&all, "== %+v\n", s)
		all.WriteString(drawn(t, func(w io.Writer) error {
			_, err := io.WriteString(w, strings.Join(s.Picture(drawnPicture()), "\n")+"\n")
			return err
		}))
		for _, line := range s.Picture(drawnPicture()) {
			if n := ansi.StringWidth(line); s.Width > 0 && n > s.Width {
				t.Errorf("%d columns of %d: %q", n, s.Width, line)
			}
		}
	}
	golden(t, "picture.txt", all.String())
	if lines := (terminal.Style{Width: 80}).Picture(&render.Picture{}); lines != nil {
		t.Errorf("a picture of nothing: %q", lines)
	}
}

func TestYear(t *testing.T) {
	t.Parallel()
	today := time.Date(2026, 11, 19, 23, 0, 0, 0, time.UTC)
	level := func(day string) int {
		return map[string]int{"2026-11-19": 4, "2026-11-16": 1, "2025-11-17": 2, "2026-06-30": 3}[day]
	}
	var all strings.Builder
	for _, width := range []int{30, 80, 120} {
		fmt.Fprintf(&all, "== %d columns\n%s\n", width, strings.Join(terminal.Style{Width: width}.Year(today, level), "\n"))
	}
	golden(t, "year.txt", all.String())
	if lines := (terminal.Style{Width: 5}).Year(today, level); lines != nil {
		t.Errorf("a year in five columns: %q", lines)
	}
}

// The parts of a bar are told apart without colours, and their sum has the length of the sum.
func TestStack(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		parts []int64
		most  int64
		want  string
	}{
		{[]int64{5, 0, 5}, 10, "█████▒▒▒▒▒"},
		{[]int64{1, 1, 1}, 9, "█▓▒"},
		{[]int64{1}, 1000, "█"},
		{[]int64{0, 1}, 1000, "▓"},
		{[]int64{0, 0}, 10, ""},
		{nil, 0, ""},
	} {
		if got := terminal.Stack(test.parts, test.most, 10); got != test.want {
			t.Errorf("%v of %d: %q, want %q", test.parts, test.most, got, test.want)
		}
	}
}
