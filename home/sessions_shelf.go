package home

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render"
)

// ShelfRequest says which rows of the shelf to return. The zero value asks for the first 100.
type ShelfRequest struct {
	Filter    string `json:"filter,omitempty"`     // as in sessions.list
	Sort      string `json:"sort,omitempty"`       // as in sessions.list
	Reverse   bool   `json:"reverse,omitempty"`    // as in sessions.list
	ByProject bool   `json:"by_project,omitempty"` // group the latest 1,000 by project, and leave out the others
	Empty     bool   `json:"empty,omitempty"`      // include conversations without messages
	From      int    `json:"from,omitempty"`       // the first row to return; 0 is the first of all
	Limit     int    `json:"limit,omitempty"`      // how many rows; 0 means 100
	// Now is the time of the reader, which says what today is. A day begins at midnight in its
	// time zone. Default: the time of the machine with the home.
	Now time.Time `json:"now,omitzero"`

	Cost  bool `json:"cost,omitempty"`  // say what each conversation cost, which takes longer
	Total bool `json:"total,omitempty"` // count all rows, which takes longer if there are very many
	AsIs  bool `json:"as_is,omitempty"` // answer at once from the index, without bringing it up to date
}

// ShelfRow is a conversation on the shelf.
type ShelfRow struct {
	SessionInfo
	// Group is the name of the group, which is the same in all its rows: "pinned", a project, or
	// a day or month. It is "" if the order has no groups.
	Group string `json:"group,omitempty"`
}

// ShelfResult has rows of the shelf.
type ShelfResult struct {
	Rows    []ShelfRow      `json:"rows"`
	Count   int             `json:"count"`             // how many rows there are in all, or at least, if they were not counted
	Counted bool            `json:"counted"`           // Count is exact
	Cut     bool            `json:"cut"`               // there are more conversations than can be grouped by project
	Unknown []UnknownFilter `json:"unknown,omitempty"` // if there are no rows: see sessions.list
}

// maxGrouped is how many conversations are grouped by project: each request reads that many.
const maxGrouped = 1000

// Shelf returns rows of the list that people scroll through. The pinned conversations come
// first. Forks and subagents are below the conversation that they came from, which `sessions.list`
// has by `parent`; but if only subagents pass the filter, they are the rows.
func (s *Sessions) Shelf(ctx context.Context, r ShelfRequest) (*ShelfResult, error) {
	return call(ctx, s.home, "sessions.shelf", r, s.shelf)
}

func (s *Sessions) shelf(ctx context.Context, r ShelfRequest) (*ShelfResult, error) {
	if err := cmp.Or(notNegative("from", r.From), notNegative("limit", r.Limit)); err != nil {
		return nil, err
	}
	r.Limit = cmp.Or(r.Limit, 100)
	if r.Now.IsZero() {
		r.Now = time.Now()
	}
	list := ListRequest{Sort: r.Sort, Reverse: r.Reverse, Roots: true, Nonempty: !r.Empty}
	if err := list.NarrowBy(r.Filter, r.Now); err != nil {
		return nil, err
	}
	list.CWD, list.File = absolutePaths(ctx, list.CWD, list.File)
	o, err := list.options()
	if err != nil {
		return nil, err
	}
	f := shelf{ShelfRequest: r, o: o, result: ShelfResult{Rows: []ShelfRow{}}}
	if f.ix, err = s.home.shelfIndex(ctx, r.AsIs); err != nil {
		return nil, err
	}
	if err = f.read(ctx); err != nil {
		return nil, err
	}
	if r.Cost {
		if err := addCosts(ctx, f.ix, f.result.Rows, func(row *ShelfRow) *SessionInfo { return &row.SessionInfo }); err != nil {
			return nil, err
		}
	}
	return &f.result, nil
}

// shelfIndex returns the index. With asIs, it does not bring the index up to date, unless that was
// never complete.
func (h *Home) shelfIndex(ctx context.Context, asIs bool) (*index.Index, error) {
	if asIs {
		if ix, err := h.openedIndex(ctx); err == nil && ix.IsComplete(ctx) {
			return ix, nil
		}
	}
	return h.index(ctx)
}

// shelf answers a request.
type shelf struct {
	ShelfRequest
	ix     *index.Index
	o      index.ListOptions // of all rows
	result ShelfResult
}

func (f *shelf) read(ctx context.Context) error {
	err := f.rows(ctx)
	if r := &f.result; err == nil && !r.Counted && (f.Total || len(r.Rows) == 0) {
		r.Counted = true
		r.Count, err = f.ix.Count(ctx, f.o)
	}
	switch {
	case err != nil || f.result.Count > 0:
		return err
	case f.Filter != "" && f.o.Fold:
		f.o.Roots, f.o.Fold, f.result.Counted = false, false, false
		return f.read(ctx)
	}
	f.result.Unknown, err = f.ix.UnknownFilters(ctx, f.o)
	return err
}

func (f *shelf) rows(ctx context.Context) error {
	if f.ByProject {
		return f.projects(ctx)
	}
	is, not := true, false
	list, err := f.list(ctx, &is, f.From, f.Limit+1) // one more says whether there are more
	if err != nil {
		return err
	}
	f.add("pinned", list[:min(len(list), f.Limit)])
	from, isMore := 0, len(list) > f.Limit
	if len(list) == 0 && f.From > 0 {
		o := f.o
		o.Pinned = &is
		before, err := f.ix.Count(ctx, o)
		if err != nil {
			return err
		}
		from = max(f.From-before, 0)
	}
	if room := f.Limit - len(list); room >= 0 {
		if list, err = f.list(ctx, &not, from, room+1); err != nil {
			return err
		}
		f.add("", list[:min(len(list), room)])
		isMore = len(list) > room
	}
	n := f.From + len(f.result.Rows)
	f.result.Count, f.result.Counted = n, len(f.result.Rows) > 0 || f.From == 0
	if isMore {
		f.result.Count, f.result.Counted = n+1, false
	}
	return nil
}

func (f *shelf) list(ctx context.Context, pinned *bool, from, limit int) ([]index.Session, error) {
	o := f.o
	o.Pinned, o.Offset, o.Limit = pinned, from, limit
	list, _, err := f.ix.List(ctx, o)
	return list, err
}

// add adds rows of a group, or else of the days.
func (f *shelf) add(group string, list []index.Session) {
	for i := range list {
		row := ShelfRow{sessionInfo(&list[i]), group}
		switch {
		case group != "":
		case f.o.Sort == index.ByUpdated:
			row.Group = dayOf(row.Updated, f.Now)
		case f.o.Sort == index.ByCreated:
			row.Group = dayOf(row.Created, f.Now)
		}
		f.result.Rows = append(f.result.Rows, row)
	}
}

// projects groups the latest conversations by project, in the order of the first conversation of
// each.
func (f *shelf) projects(ctx context.Context) error {
	list, err := f.list(ctx, nil, 0, maxGrouped+1)
	if err != nil {
		return err
	}
	f.result.Cut = len(list) > maxGrouped
	list = list[:min(len(list), maxGrouped)]
	const pinned, none = "pinned", "no project"
	dirs := []string{pinned, none} // no directory may have the short name of another group
	for i := range list {
		dirs = append(dirs, list[i].CWD)
	}
	names := render.ShortDirs(dirs)
	first := make(map[string]int) // of each directory
	rows := make([]ShelfRow, len(list))
	for i := range list {
		dir := list[i].CWD
		rows[i] = ShelfRow{sessionInfo(&list[i]), cmp.Or(names.Name(dir), none)}
		if list[i].Pinned {
			rows[i].Group = pinned
		} else if _, ok := first[dir]; !ok {
			first[dir] = i
		}
	}
	place := func(row *ShelfRow) int {
		if row.Pinned {
			return -1
		}
		return first[row.CWD]
	}
	slices.SortStableFunc(rows, func(a, b ShelfRow) int { return place(&a) - place(&b) })
	from := min(f.From, len(rows))
	f.result.Rows = rows[from : from+min(f.Limit, len(rows)-from)]
	f.result.Count, f.result.Counted = len(rows), true
	return nil
}

// dayOf returns the name of the day of a time, or of its month if that day is more than a week ago.
func dayOf(at, now time.Time) string {
	at = at.In(now.Location())
	day := func(t time.Time) string { return t.Format(time.DateOnly) }
	switch {
	case day(at) == day(now):
		return "today"
	case day(at) == day(now.AddDate(0, 0, -1)):
		return "yesterday"
	case now.Sub(at) < 7*24*time.Hour && now.After(at):
		return at.Format("Monday, 2 January")
	}
	return at.Format("January 2006")
}
