package app

import "maps"

const (
	pageRows  = 64 // how many rows are asked for at a time
	keptPages = 4  // how many pages are kept on either side of the screen
)

// pages has the rows of something long that are on the screen or near it. The others are asked for
// when one comes near them, page by page.
type pages[T any] struct {
	size  int // of a page
	total int
	rows  map[int]*T
	asked map[int]bool // by page
	alone bool         // those beside the screen are not asked for: each takes a while
}

func newPages[T any](size int) pages[T] {
	return pages[T]{size: size, rows: make(map[int]*T), asked: make(map[int]bool)}
}

// at returns a row, or nil if it is not known.
func (p *pages[T]) at(i int) *T { return p.rows[i] }

// put adds rows from an index on.
func (p *pages[T]) put(from int, rows []T) {
	for i := range rows {
		p.rows[from+i] = &rows[i]
	}
	for page := from / p.size; page <= (from+max(len(rows), 1)-1)/p.size; page++ {
		delete(p.asked, page)
	}
}

// want returns the pages that are missing, given which rows are on the screen: those of the screen
// first, and then those that are next to them, unless the pages are alone. It forgets what is far away.
func (p *pages[T]) want(first, last int) (missing []int) {
	from, to := first/p.size, last/p.size
	near := between(from, to)
	if !p.alone {
		near = append(near, from-1, to+1)
	}
	for _, page := range near {
		if p.isMissing(page) && !p.asked[page] {
			p.asked[page] = true
			missing = append(missing, page)
		}
	}
	if len(p.rows) > (2*keptPages+to-from+2)*p.size {
		maps.DeleteFunc(p.rows, func(i int, _ *T) bool {
			return i/p.size < from-keptPages || i/p.size > to+keptPages
		})
	}
	return missing
}

func between(from, to int) (numbers []int) {
	for n := from; n <= to; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

func (p *pages[T]) isMissing(page int) bool {
	for i := max(page*p.size, 0); i < min((page+1)*p.size, p.total); i++ {
		if p.rows[i] == nil {
			return true
		}
	}
	return false
}
