// Package list scrolls through any number of items of any height. It asks for the rows of those
// that are on the screen and of no others, so a list of a million items costs as much as one of
// fifty.
//
// A list remembers which item is at the top of the screen rather than a row number: the heights of
// the items above are not known, and the text must not jump when they change. When items on the
// screen change their heights, Keep leaves the selected one where it is.
package list

import "slices"

// List is a list with a cursor. The zero value has no items.
type List struct {
	draw   func(i int) []string
	count  int
	height int // rows of the screen
	cursor int
	top    int // the first item on the screen
	skip   int // how many of its rows are above the screen
}

// New returns a list whose items are drawn by a function. An item without rows belongs to the one
// before it: the cursor passes it by. The first item has rows.
func New(draw func(i int) []string) *List { return &List{draw: draw, height: 1} }

// Rows returns the rows of an item.
func (l *List) Rows(i int) []string { return l.rows(i) }

func (l *List) rows(i int) []string {
	if i >= l.count {
		return nil
	}
	if rows := l.draw(i); len(rows) > 0 || i > 0 {
		return rows
	}
	return []string{""}
}

// shown returns the nearest item that has rows, at or before an item.
func (l *List) shown(i int) int {
	for i = l.within(i); i > 0 && len(l.rows(i)) == 0; {
		i--
	}
	return i
}

// Count returns how many items there are.
func (l *List) Count() int { return l.count }

// Cursor returns the selected item, which is 0 if there is none.
func (l *List) Cursor() int { return l.cursor }

// SetCount says how many items there are. What is on the screen stays where it is.
func (l *List) SetCount(n int) {
	l.count = max(n, 0)
	l.cursor = l.within(l.cursor)
	if l.top > l.within(l.top) {
		l.top, l.skip = l.within(l.top), 0
	}
}

// Shift says that n items were added before the first one; a negative n takes them away. The
// cursor and the screen stay on the items they were on.
func (l *List) Shift(n int) {
	l.cursor, l.top = l.cursor+n, l.top+n
	l.SetCount(l.count + n)
	l.top = max(l.top, 0)
}

// SetHeight says how many rows the screen has.
func (l *List) SetHeight(rows int) {
	if rows = max(rows, 1); rows == l.height {
		return
	}
	l.height = rows
	l.Reveal()
}

func (l *List) within(i int) int { return max(min(i, l.count-1), 0) }

// Select moves the cursor to an item and shows its beginning.
func (l *List) Select(i int) {
	if l.cursor = l.shown(i); l.cursor == l.top {
		l.skip = 0
	}
	l.Reveal()
}

// SelectRow moves the cursor to an item and shows one of its rows, with some before it.
func (l *List) SelectRow(i, row int) {
	l.Select(i)
	if at := l.starts() + row; at >= 0 && at < l.height {
		return
	}
	l.top, l.skip = l.cursor, max(min(row, len(l.rows(l.cursor))-1), 0)
	l.up(l.height / 3)
}

// starts returns the row of the screen at which the selected item begins; it may be above it.
func (l *List) starts() int {
	used := -l.skip
	for i := l.top; i < l.cursor; i++ {
		used += len(l.rows(i))
	}
	return used
}

// Centre moves the cursor to an item and shows it with what is around it.
func (l *List) Centre(i int) {
	l.cursor = l.shown(i)
	l.showAt(max(l.height-len(l.rows(l.cursor)), 0) / 2)
}

// Keep makes a change after which items may have other heights. The selected item stays on its row
// of the screen if it can: the rows of items above it may come later than those of the item itself.
func (l *List) Keep(change func()) {
	row := l.starts()
	change()
	if l.count > 0 {
		l.cursor = l.shown(l.cursor)
		l.showAt(min(row, l.height-1))
		l.Reveal()
	}
}

// showAt scrolls so that the selected item begins on a row of the screen, or above it if the row is
// negative. Nothing is left empty below the last item.
func (l *List) showAt(row int) {
	l.top, l.skip = l.cursor, min(max(-row, 0), max(len(l.rows(l.cursor))-1, 0))
	l.up(row)
	used := -l.skip
	for i := l.top; i < l.count && used < l.height; i++ {
		used += len(l.rows(i))
	}
	l.up(l.height - used)
}

// Reveal scrolls as little as needed to show the selected item, or its beginning. Call it when
// the selected item has changed its height.
func (l *List) Reveal() {
	if l.count == 0 {
		return
	}
	l.skipHidden()
	l.cursor = l.shown(l.cursor)
	if l.cursor < l.top || l.cursor == l.top && l.skip > 0 && len(l.rows(l.cursor)) <= l.height {
		l.top, l.skip = l.cursor, 0
		return
	}
	if l.cursor == l.top {
		return
	}
	used := -l.skip
	for i := l.top; i <= l.cursor && used <= l.height; i++ {
		used += len(l.rows(i))
		if i == l.cursor && used <= l.height {
			return
		}
	}
	l.top, l.skip = l.cursor, 0
	l.up(l.height - len(l.rows(l.cursor)))
}

// up moves the screen towards the first item.
func (l *List) up(rows int) {
	for rows > 0 {
		if l.skip > 0 {
			n := min(rows, l.skip)
			l.skip, rows = l.skip-n, rows-n
			continue
		}
		if l.top == 0 {
			return
		}
		l.top--
		l.skip = len(l.rows(l.top))
	}
}

// down moves the screen towards the last item, until its end is at the bottom.
func (l *List) down(rows int) {
	for ; rows > 0 && l.below(1) > 0; rows-- {
		if l.skip++; l.skip >= len(l.rows(l.top)) {
			l.top, l.skip = l.top+1, 0
			l.skipHidden()
		}
	}
}

// skipHidden puts an item at the top that has rows.
func (l *List) skipHidden() {
	for l.top < l.count-1 && len(l.rows(l.top)) == 0 {
		l.top, l.skip = l.top+1, 0
	}
}

// below returns how many rows there are below the screen, up to a number that is enough.
func (l *List) below(enough int) int {
	found := -l.skip - l.height
	for i := l.top; i < l.count && found < enough; i++ {
		found += len(l.rows(i))
	}
	return max(found, 0)
}

// Scroll moves the screen by rows, down if n is positive. The cursor stays on the screen.
func (l *List) Scroll(n int) {
	if l.count == 0 {
		return
	}
	if n < 0 {
		l.up(-n)
	} else {
		l.down(n)
	}
	first, last := l.Window()
	l.cursor = l.shown(max(min(l.cursor, last), first))
}

// Move moves the cursor by items. An item that is larger than the screen is first scrolled
// through, so that all of it can be read.
func (l *List) Move(n int) {
	switch {
	case n > 0 && l.ends() > l.height:
		l.down(min(l.ends()-l.height, l.height/2))
	case n < 0 && l.cursor == l.top && l.skip > 0:
		l.up(min(l.skip, l.height/2))
	case l.next(n) != l.cursor:
		before := l.cursor
		l.Select(l.next(n))
		if l.cursor < before && len(l.rows(l.cursor)) > l.height { // come in at its end
			l.skip = len(l.rows(l.cursor)) - l.height
		}
	}
}

// next returns the item that is n after the selected one, of those that have rows.
func (l *List) next(n int) int {
	at := l.cursor
	for i := at; n > 0 && i < l.count-1; {
		if i++; len(l.rows(i)) > 0 {
			at, n = i, n-1
		}
	}
	for ; n < 0 && at > 0; n++ {
		at = l.shown(at - 1)
	}
	return at
}

// ends returns the row of the screen at which the selected item ends.
func (l *List) ends() int {
	used := -l.skip
	for i := l.top; i <= l.cursor && i < l.count && used <= l.height; i++ {
		used += len(l.rows(i))
	}
	return used
}

// Page moves the cursor by screens.
func (l *List) Page(n int) {
	step := max(l.height-1, 1)
	for range max(n, -n) {
		if n < 0 {
			if l.top == 0 && l.skip == 0 {
				l.cursor = 0
			}
			l.Scroll(-step)
			first, _ := l.Window()
			l.cursor = first
			continue
		}
		l.Scroll(step)
		_, last := l.Window()
		l.cursor = l.shown(last)
	}
	if l.count == 0 {
		l.cursor = 0
	}
}

// Span returns the rows of the screen from which to which the selected item is shown.
func (l *List) Span() (from, to int) { return max(l.starts(), 0), min(l.ends(), l.height) }

// First selects the first item.
func (l *List) First() { l.Select(0) }

// Last selects the last item, and shows its end.
func (l *List) Last() {
	l.Select(l.count - 1)
	if n := len(l.rows(l.cursor)); n > l.height {
		l.top, l.skip = l.cursor, n-l.height
	}
}

// AtEnd reports whether the end of the last item is on the screen.
func (l *List) AtEnd() bool { return l.below(1) == 0 }

// Window returns the first and the last item of which rows are on the screen; the last is -1 if
// there are none.
func (l *List) Window() (first, last int) {
	first, last = l.top, l.top-1
	used := -l.skip
	for i := l.top; i < l.count && used < l.height; i++ {
		used += len(l.rows(i))
		last = i
	}
	return first, last
}

// At returns the item on a row of the screen, or -1.
func (l *List) At(row int) int {
	if row < 0 || row >= l.height {
		return -1
	}
	used := -l.skip
	for i := l.top; i < l.count; i++ {
		if used += len(l.rows(i)); row < used {
			return i
		}
	}
	return -1
}

// View returns the rows of the screen, which may be fewer than its height, and the row on which the
// selected item begins or goes on.
func (l *List) View() (rows []string, cursor int) {
	for i := l.top; i < l.count && len(rows) < l.height+l.skip; i++ {
		if i == l.cursor {
			cursor = max(len(rows)-l.skip, 0)
		}
		rows = append(rows, l.rows(i)...)
	}
	rows = rows[min(l.skip, len(rows)):]
	return slices.Clip(rows[:min(len(rows), l.height)]), cursor
}
