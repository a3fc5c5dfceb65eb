package app

import (
	"iter"
	"slices"

	"github.com/coppice-dev/coppice/home"
)

// shelf is a list of sessions of which only some are in memory: those that are always there (the
// pinned ones, those of a search, or those of a grouping), and some pages of the others. Below a
// session that was unfolded come those that came from it.
//
// A shelf is filled beside the UI, and then belongs to it.
type shelf struct {
	question question
	request  home.ListRequest
	isSearch bool
	fixed    []sessionRow
	pages    map[int]*shelfPage
	asking   map[int]bool
	total    int  // of the sessions that are not fixed or, in a search, of all hits
	known    bool // total is right; otherwise there are at least so many
	cut      bool // there are more than the list can have
	across   bool // no text has all that is searched for, but each session has it in several
	nothing  []string
	open     map[string][]home.SessionInfo // by the session that was unfolded
	spots    []spot
}

// sessionRow is a session in the list.
type sessionRow struct {
	home.SessionInfo
	hit   *home.Hit
	group string // its group, if that is not the day
	depth int    // 0: it is not below another one
}

// shelfPage is a page of the sessions that are not fixed, or of a search.
type shelfPage struct {
	of       *shelf
	n        int
	sessions []home.SessionInfo
	more     bool
	unknown  []home.UnknownFilter
	hits     *home.FindResult
}

// spot is where rows come in that belong to the one before.
type spot struct {
	at   int // the place of that one, not counting what is unfolded
	rows []sessionRow
}

const keptOnShelf = 12

// add puts a page on the shelf, and reports whether it belongs there.
func (f *shelf) add(p *shelfPage) bool {
	if p.of != f {
		return false
	}
	delete(f.asking, p.n)
	if p.hits != nil {
		if p.n == len(f.fixed) {
			f.addHits(p.hits)
		}
		return true
	}
	if f.pages == nil {
		f.pages = make(map[int]*shelfPage)
	}
	f.pages[p.n] = p
	if end := p.n*pageSize + len(p.sessions); !f.known || !p.more {
		f.total = max(f.total, end)
		if p.more {
			f.total = max(f.total, end+1)
		} else {
			f.total, f.known = end, true
		}
	}
	if len(f.fixed) == 0 && f.total == 0 {
		f.nothing = f.wordsFor(p.unknown)
	}
	for n := range f.pages { // those that are far away
		if len(f.pages) > keptOnShelf && (n < p.n-keptOnShelf/2 || n > p.n+keptOnShelf/2) {
			delete(f.pages, n)
		}
	}
	f.place()
	return true
}

// keep takes over what is still right from the shelf before, which answered the same question.
func (f *shelf) keep(old *shelf) {
	f.open = old.open
	costs := make(shelfCosts)
	for row := range old.all() {
		costs[row.ID] = sessionCost{row.Updated, row.Cost}
	}
	if old.known && !f.known {
		f.total = max(old.total, f.total)
		f.known = slices.Equal(f.ids(), old.ids()) // probably no other has come or gone either
	}
	f.price(costs)
	f.place()
}

// ids returns the sessions at the beginning.
func (f *shelf) ids() (ids []string) {
	for i := range f.fixed {
		ids = append(ids, f.fixed[i].ID)
	}
	if p := f.pages[0]; p != nil {
		for i := range p.sessions {
			ids = append(ids, p.sessions[i].ID)
		}
	}
	return ids
}

// all yields the sessions in memory that can have a cost.
func (f *shelf) all() iter.Seq[*home.SessionInfo] {
	return func(yield func(*home.SessionInfo) bool) {
		for i := range f.fixed {
			if !yield(&f.fixed[i].SessionInfo) {
				return
			}
		}
		for _, p := range f.pages {
			for i := range p.sessions {
				if !yield(&p.sessions[i]) {
					return
				}
			}
		}
	}
}

// price fills in what sessions cost, unless they have changed since the cost was added up. A cost
// that is newer than the list is fine; insisting on the same moment would mean asking for a busy
// session's cost forever.
func (f *shelf) price(costs shelfCosts) {
	for info := range f.all() {
		if c, ok := costs[info.ID]; ok && !c.updated.Before(info.Updated) {
			info.Cost = c.cost
		}
	}
}

// unpriced returns requests for sessions among some rows of which it is not known what they cost.
func (f *shelf) unpriced(first, last int) (requests []home.ListRequest) {
	isUnpriced := func(info home.SessionInfo) bool { return info.Cost == nil }
	inFixed := slices.ContainsFunc(f.fixed, func(r sessionRow) bool { return isUnpriced(r.SessionInfo) })
	switch {
	case f.isSearch:
		return nil
	case inFixed && f.question.byProject:
		requests = append(requests, f.groupRequest())
	case inFixed:
		requests = append(requests, f.pinnedRequest())
	}
	for _, n := range f.pagesOf(first, last) {
		if p := f.pages[n]; p != nil && slices.ContainsFunc(p.sessions, isUnpriced) {
			requests = append(requests, f.pageRequest(n))
		}
	}
	return requests
}

// place finds out where the unfolded sessions are.
func (f *shelf) place() {
	f.spots = nil
	if len(f.open) == 0 {
		return
	}
	look := func(at int, id string) {
		if rows := f.below(id, 1, nil); len(rows) > 0 {
			f.spots = append(f.spots, spot{at, rows})
		}
	}
	for i := range f.fixed {
		look(i, f.fixed[i].ID)
	}
	for n, p := range f.pages {
		for i := range p.sessions {
			look(len(f.fixed)+n*pageSize+i, p.sessions[i].ID)
		}
	}
	slices.SortFunc(f.spots, func(a, b spot) int { return a.at - b.at })
}

// below returns what is unfolded below a session. above are the sessions that it is below of: a
// session that claims to come from itself is not unfolded again.
func (f *shelf) below(id string, depth int, above []string) (rows []sessionRow) {
	if slices.Contains(above, id) {
		return nil
	}
	for _, info := range f.open[id] {
		rows = append(rows, sessionRow{SessionInfo: info, depth: depth})
		rows = append(rows, f.below(info.ID, depth+1, append(slices.Clip(above), id))...)
	}
	return rows
}

func (f *shelf) isOpen(id string) bool { return f.open[id] != nil }

func (f *shelf) unfold(id string, found []home.SessionInfo) {
	if f.open == nil {
		f.open = make(map[string][]home.SessionInfo)
	}
	f.open[id] = found
	f.place()
}

func (f *shelf) fold(id string) {
	delete(f.open, id)
	f.place()
}

// count returns how many rows there are.
func (f *shelf) count() int {
	n := f.plain()
	for _, s := range f.spots {
		n += len(s.rows)
	}
	return n
}

// plain is count without what is unfolded.
func (f *shelf) plain() int {
	if f.isSearch {
		if len(f.fixed) < f.total {
			return len(f.fixed) + 1
		}
		return len(f.fixed)
	}
	return len(f.fixed) + f.total
}

// row returns a row, or nil if it is not in memory.
func (f *shelf) row(i int) *sessionRow {
	at, under := f.resolve(i)
	if under != nil {
		return under
	}
	return f.plainRow(at)
}

// resolve returns the place of a row without what is unfolded, or the row if it is.
func (f *shelf) resolve(i int) (at int, under *sessionRow) {
	for _, s := range f.spots {
		if i <= s.at {
			break
		}
		if i -= len(s.rows); i <= s.at {
			return s.at, &s.rows[i+len(s.rows)-s.at-1]
		}
	}
	return i, nil
}

func (f *shelf) plainRow(at int) *sessionRow {
	if at < 0 {
		return nil
	}
	if at < len(f.fixed) {
		return &f.fixed[at]
	}
	at -= len(f.fixed)
	if p := f.pages[at/pageSize]; p != nil && at%pageSize < len(p.sessions) {
		return &sessionRow{SessionInfo: p.sessions[at%pageSize]}
	}
	return nil
}

// find returns the place of a session among the rows in memory, or -1.
func (f *shelf) find(id string) int {
	before := 0 // unfolded rows
	spots := f.spots
	is := func(at int, row *sessionRow) int {
		if row.ID == id {
			return at + before
		}
		if len(spots) > 0 && spots[0].at == at {
			for k := range spots[0].rows {
				if spots[0].rows[k].ID == id {
					return at + before + 1 + k
				}
			}
			before += len(spots[0].rows)
			spots = spots[1:]
		}
		return -1
	}
	for i := range f.fixed {
		if at := is(i, &f.fixed[i]); at >= 0 {
			return at
		}
	}
	pages := make([]int, 0, len(f.pages))
	for n := range f.pages {
		pages = append(pages, n)
	}
	slices.Sort(pages)
	for _, n := range pages {
		for i := range f.pages[n].sessions {
			if at := is(len(f.fixed)+n*pageSize+i, &sessionRow{SessionInfo: f.pages[n].sessions[i]}); at >= 0 {
				return at
			}
		}
	}
	return -1
}

// pagesOf returns the pages on which some rows are.
func (f *shelf) pagesOf(first, last int) (pages []int) {
	at, _ := f.resolve(first)
	to, _ := f.resolve(last)
	for n := max(at-len(f.fixed), 0) / pageSize; n <= max(to-len(f.fixed), 0)/pageSize; n++ {
		pages = append(pages, n)
	}
	return pages
}

// missing returns the pages that the screen needs, or will need next, and notes that they are
// asked for.
func (f *shelf) missing(first, last int) (pages []int) {
	if f.asking == nil {
		f.asking = make(map[int]bool)
	}
	if f.isSearch {
		if n := len(f.fixed); n < f.total && last >= n-foundAtATime/2 && !f.asking[n] {
			f.asking[n] = true
			pages = []int{n}
		}
		return pages
	}
	if f.pages == nil {
		return nil // it is grouped, or nothing was read yet
	}
	ahead := pageSize / 4
	for _, n := range f.pagesOf(max(first-ahead, 0), last+ahead) {
		if n*pageSize < f.total && f.pages[n] == nil && !f.asking[n] {
			f.asking[n] = true
			pages = append(pages, n)
		}
	}
	return pages
}
