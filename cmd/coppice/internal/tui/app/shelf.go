package app

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// shelf is a list of sessions, as the home orders them or as a search finds them. Below a session
// that was unfolded come those that came from it.
//
// A shelf is filled beside the UI, and then belongs to it.
type shelf struct {
	question          question
	now               time.Time // when it was asked for
	isSearch          bool
	pages[sessionRow]          // without what is unfolded
	known             bool     // total is right; otherwise there are at least so many
	cut               bool     // there are more than the list can have
	across            bool     // no text has all that is searched for, but each session has it in several
	nothing           []string // why there are none
	open              map[string][]home.SessionInfo
	spots             []spot
}

// sessionRow is a session in the list.
type sessionRow struct {
	home.ShelfRow
	hit       *home.Hit
	depth     int // 0: it is not below another one
	costAsked bool
}

// shelfRows are rows that were read.
type shelfRows struct {
	of      *shelf
	from    int
	rows    []sessionRow
	total   int
	known   bool
	cut     bool
	across  bool
	nothing []string
}

// spot is where rows come in that belong to the one before.
type spot struct {
	at   int // the place of that one, not counting what is unfolded
	rows []sessionRow
}

func newShelf(q question, now time.Time, isSearch bool) *shelf {
	f := &shelf{question: q, now: now, isSearch: isSearch, pages: newPages[sessionRow](pageRows)}
	if isSearch {
		f.size, f.alone = foundAtATime, true
	}
	return f
}

// read fills a shelf with the rows that are on the screen, and returns the message with it.
func (f *shelf) read(ctx context.Context, h *home.Home, first, last int, asIs bool) any {
	from := first / f.size * f.size
	found, err := f.ask(ctx, h, home.ShelfRequest{From: from, Limit: (last/f.size+1)*f.size - from, AsIs: asIs})
	switch {
	case err == nil:
		f.add(found)
	case errors.Is(err, context.Canceled) || !errors.Is(err, session.ErrInvalid) && home.KindOf(err) != home.KindInvalid:
		return err
	default: // a query that is still being typed may make no sense yet
		f.nothing, f.known = []string{err.Error()}, true
	}
	return f
}

// ask reads rows of a shelf. r says which, and what is asked about them.
func (f *shelf) ask(ctx context.Context, h *home.Home, r home.ShelfRequest) (*shelfRows, error) {
	if f.isSearch {
		return f.search(ctx, h, r)
	}
	q := f.question
	r.Filter, r.ByProject, r.Empty, r.Sort, r.Reverse, r.Now = q.text, q.byProject, q.withEmpty, q.order.by, q.order.reverse, f.now
	found, err := h.Sessions.Shelf(ctx, r)
	if err != nil {
		return nil, err
	}
	rows := &shelfRows{of: f, from: r.From, total: found.Count, known: found.Counted, cut: found.Cut, nothing: unknownWords(found.Unknown)}
	for i := range found.Rows {
		rows.rows = append(rows.rows, sessionRow{ShelfRow: found.Rows[i]})
	}
	return rows, nil
}

// search finds sessions by what was said in them.
func (f *shelf) search(ctx context.Context, h *home.Home, r home.ShelfRequest) (*shelfRows, error) {
	found, err := h.Search.Find(ctx, home.FindRequest{Query: f.question.text, BySession: true, Limit: r.Limit, Offset: r.From})
	if err != nil {
		return nil, err
	}
	rows := &shelfRows{of: f, from: r.From, total: found.Matches, known: true, cut: found.Bounded, across: found.Across, nothing: unknownWords(found.Unknown)}
	for _, words := range found.DidYouMean {
		rows.nothing = append(rows.nothing, "did you mean: "+words)
	}
	for _, name := range found.NotFilters {
		rows.nothing = append(rows.nothing, name+": is not a filter; there are "+strings.Join(searchFilters, ", "))
	}
	for i := range found.Hits {
		hit := &found.Hits[i]
		rows.rows = append(rows.rows, sessionRow{hit: hit, ShelfRow: home.ShelfRow{SessionInfo: home.SessionInfo{
			ID: hit.Session, Title: hit.Title, CWD: hit.CWD, Agent: hit.Agent, Project: hit.Project, Updated: hit.Updated,
		}}})
	}
	return rows, nil
}

// unknownWords says why nothing passes filters.
func unknownWords(unknown []home.UnknownFilter) (words []string) {
	for _, u := range unknown {
		words = append(words, u.Text(nil))
	}
	return words
}

// add puts rows on the shelf that they were read for.
func (f *shelf) add(found *shelfRows) {
	f.put(found.from, found.rows)
	switch {
	case found.known:
		f.total, f.known = found.total, true
	case !f.known:
		f.total = max(f.total, found.total)
	}
	f.cut, f.across, f.nothing = found.cut, found.across, found.nothing
	f.findSpots()
}

// keep takes over what is still right from the shelf before, which answered the same question.
func (f *shelf) keep(old *shelf) {
	f.open = old.open
	before := make(map[string]bool) // at the same places: if one went, another came up to them
	for at := range f.rows {
		if row := old.at(at); row != nil {
			before[row.ID] = true
		}
	}
	if old.known && !f.known {
		f.total, f.known = max(old.total, f.total), true // probably no other has come or gone either
		for _, row := range f.rows {
			f.known = f.known && before[row.ID]
		}
	}
	f.price(slices.Collect(maps.Values(old.rows)))
	f.findSpots()
}

// price fills in what sessions cost, unless they have changed since the cost was added up. A cost
// that is newer than the list is fine; insisting on the same moment would mean asking for a busy
// session's cost forever.
func (f *shelf) price(rows []*sessionRow) {
	costs := make(map[string]*sessionRow)
	for _, row := range rows {
		costs[row.ID] = row
	}
	for _, row := range f.rows {
		if c := costs[row.ID]; c != nil && c.Cost != nil && !c.Updated.Before(row.Updated) {
			row.Cost = c.Cost
		}
	}
}

// unpriced returns the sessions whose costs are neither known nor asked for.
func (f *shelf) unpriced(first, last int) (rows []*sessionRow) {
	for i := first; i <= last; i++ {
		if row := f.at(i); row != nil && row.Cost == nil && !row.costAsked && !f.isSearch {
			rows = append(rows, row)
		}
	}
	return rows
}

// findSpots finds out where the unfolded sessions are.
func (f *shelf) findSpots() {
	f.spots = nil
	for at, row := range f.rows {
		if rows := f.below(row.ID, 1, nil); len(rows) > 0 {
			f.spots = append(f.spots, spot{at, rows})
		}
	}
	slices.SortFunc(f.spots, func(a, b spot) int { return a.at - b.at })
}

// below returns what is unfolded below a session. above are the sessions it is nested under: a
// session that claims to come from itself is not unfolded again.
func (f *shelf) below(id string, depth int, above []string) (rows []sessionRow) {
	if slices.Contains(above, id) {
		return nil
	}
	for _, info := range f.open[id] {
		rows = append(rows, sessionRow{ShelfRow: home.ShelfRow{SessionInfo: info}, depth: depth})
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
	f.findSpots()
}

func (f *shelf) fold(id string) {
	delete(f.open, id)
	f.findSpots()
}

// shownAt returns the place of a row among all, with what is unfolded before it.
func (f *shelf) shownAt(at int) int {
	n := at
	for _, s := range f.spots {
		if s.at < at {
			n += len(s.rows)
		}
	}
	return n
}

// count returns how many rows there are, with what is unfolded.
func (f *shelf) count() int { return f.shownAt(f.total) }

// row returns a row, or nil if it is not in memory.
func (f *shelf) row(i int) *sessionRow {
	at, under := f.resolve(i)
	if under != nil {
		return under
	}
	return f.at(at)
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

// window returns the places of some rows without what is unfolded.
func (f *shelf) window(first, last int) (from, to int) {
	from, _ = f.resolve(first)
	to, _ = f.resolve(max(last, first))
	return from, to
}

// find returns the place of a session among the rows in memory, or -1.
func (f *shelf) find(id string) int {
	for at, row := range f.rows {
		if row.ID == id {
			return f.shownAt(at)
		}
	}
	for _, s := range f.spots {
		if i := slices.IndexFunc(s.rows, func(row sessionRow) bool { return row.ID == id }); i >= 0 {
			return f.shownAt(s.at) + 1 + i
		}
	}
	return -1
}
