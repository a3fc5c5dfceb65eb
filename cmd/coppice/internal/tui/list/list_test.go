package list_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/list"
	"github.com/coppice-dev/coppice/internal/soak"
)

// items is a list of items with known heights.
type items struct {
	heights []int
	drawn   int
}

func (x *items) draw(i int) []string {
	x.drawn++
	rows := make([]string, x.heights[i])
	for j := range rows {
		rows[j] = fmt.Sprintf("%d.%d", i, j)
	}
	return rows
}

func (x *items) all() (all []string) {
	for i := range x.heights {
		all = append(all, x.draw(i)...)
	}
	return all
}

// TestScreenIsAPartOfTheWhole does what people do, at random, and looks at the screen each time.
func TestScreenIsAPartOfTheWhole(t *testing.T) {
	t.Parallel()
	soak.Check(t, func(t *rapid.T) {
		x := &items{heights: rapid.SliceOfN(rapid.IntRange(0, 12), 0, 60).Draw(t, "heights")}
		if len(x.heights) > 0 {
			x.heights[0] = max(x.heights[0], 1)
		}
		height := rapid.IntRange(1, 9).Draw(t, "height")
		l := list.New(x.draw)
		l.SetCount(len(x.heights))
		l.SetHeight(height)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			selects := false
			switch rapid.IntRange(0, 10).Draw(t, "step") {
			case 0:
				l.Move(1)
			case 1:
				l.Move(-1)
			case 2:
				l.Page(1)
			case 3:
				l.Page(-1)
			case 4:
				l.First()
			case 5:
				l.Last()
			case 6:
				l.Scroll(rapid.IntRange(-20, 20).Draw(t, "rows"))
			case 7:
				l.Select(rapid.IntRange(0, 60).Draw(t, "item"))
				selects = true
			case 8:
				l.Centre(rapid.IntRange(0, 60).Draw(t, "item"))
				selects = true
			case 9:
				l.SelectRow(rapid.IntRange(0, 60).Draw(t, "item"), rapid.IntRange(0, 12).Draw(t, "row"))
			case 10:
				l.Keep(func() {
					for i := range x.heights {
						x.heights[i] = rapid.IntRange(min(i, 1)^1, 12).Draw(t, "height now")
					}
				})
			}
			check(t, l, x, height, selects)
		}
	})
}

func check(t *rapid.T, l *list.List, x *items, height int, selects bool) {
	rows, cursor := l.View()
	all := x.all()
	if len(rows) > height {
		t.Fatalf("%d rows on a screen of %d", len(rows), height)
	}
	if len(all) == 0 {
		return
	}
	if at := slices.Index(all, rows[0]); at < 0 || !slices.Equal(all[at:at+len(rows)], rows) {
		t.Fatalf("the screen is not a part of the whole: %v", rows)
	}
	selected := fmt.Sprintf("%d.", l.Cursor())
	if !strings.HasPrefix(rows[cursor], selected) {
		t.Fatalf("the cursor is on %s, and the selected item is %d: %v", rows[cursor], l.Cursor(), rows)
	}
	if selects && !slices.Contains(rows, selected+"0") {
		t.Fatalf("item %d was selected and does not show: %v", l.Cursor(), rows)
	}
	if l.At(cursor) != l.Cursor() {
		t.Fatalf("row %d has item %d, not %d", cursor, l.At(cursor), l.Cursor())
	}
}

// TestAllCanBeRead goes down item by item, and up again, and sees every row.
func TestAllCanBeRead(t *testing.T) {
	t.Parallel()
	x := &items{heights: []int{1, 30, 2, 0, 7, 11, 0, 0, 1, 16, 0}}
	l := list.New(x.draw)
	l.SetCount(len(x.heights))
	l.SetHeight(6)
	for _, step := range []int{1, -1} {
		seen := make(map[string]bool)
		for range 100 {
			rows, _ := l.View()
			for _, row := range rows {
				seen[row] = true
			}
			l.Move(step)
		}
		for _, row := range x.all() {
			if !seen[row] {
				t.Errorf("going by %d, row %s never shows", step, row)
			}
		}
		if rows, _ := l.View(); step > 0 && !slices.Contains(rows, "9.15") {
			t.Errorf("the end of the last item does not stay on the screen: %v", rows)
		}
	}
}

// TestLongListsCostLittle counts how many items are drawn.
func TestLongListsCostLittle(t *testing.T) {
	t.Parallel()
	x := &items{heights: slices.Repeat([]int{3}, 1_000_000)}
	l := list.New(x.draw)
	l.SetCount(len(x.heights))
	l.SetHeight(50)
	for _, step := range []func(){l.Last, func() { l.Page(-1) }, func() { l.Select(400_000) }, func() { l.Move(1) }, func() { l.Scroll(-40) }, func() { l.Shift(0) }} {
		x.drawn = 0
		step()
		l.View()
		if x.drawn > 2000 {
			t.Errorf("%d items were drawn for a screen of 50 rows", x.drawn)
		}
	}
}

func TestItemsBeforeTheScreen(t *testing.T) {
	t.Parallel()
	x := &items{heights: slices.Repeat([]int{2}, 40)}
	l := list.New(func(i int) []string { return x.draw(i)[:1] })
	l.SetCount(20)
	l.SetHeight(5)
	l.Select(10)
	before, _ := l.View()
	l.Shift(7)
	after, _ := l.View()
	if l.Cursor() != 17 || l.Count() != 27 || before[0] != "6.0" || after[0] != "13.0" {
		t.Errorf("cursor %d of %d, %v became %v", l.Cursor(), l.Count(), before, after)
	}
}

// TestLateRowsAboveKeepTheSelectedItem gives the items of a list their heights in any order, as
// pages of a long conversation come.
func TestLateRowsAboveKeepTheSelectedItem(t *testing.T) {
	t.Parallel()
	x := &items{heights: slices.Repeat([]int{1}, 40)}
	l := list.New(x.draw)
	l.SetCount(40)
	l.SetHeight(9)
	l.Centre(20)
	_, before := l.View()
	for _, part := range [][2]int{{20, 40}, {0, 20}} {
		l.Keep(func() {
			for i := part[0]; i < part[1]; i++ {
				x.heights[i] = 3
			}
		})
		rows, now := l.View()
		if now != before || !slices.Contains(rows, "21.0") {
			t.Errorf("item 20 moved from row %d to %d: %v", before, now, rows)
		}
	}
}

func TestARowOfAnItemCanBeShown(t *testing.T) {
	t.Parallel()
	x := &items{heights: []int{3, 80, 0, 4}}
	l := list.New(x.draw)
	l.SetCount(len(x.heights))
	l.SetHeight(9)
	for _, row := range []int{70, 0, 79, 40, 500} {
		l.SelectRow(2, row) // which belongs to the item before
		rows, _ := l.View()
		if want := fmt.Sprintf("1.%d", min(row, 79)); l.Cursor() != 1 || !slices.Contains(rows, want) {
			t.Errorf("item %d is selected, and row %s is not in %v", l.Cursor(), want, rows)
		}
	}
}
