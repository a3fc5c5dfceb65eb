package home

import (
	"context"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// Faces look at a conversation through windows: they ask for the rows that are on the screen, and
// for others when a person scrolls.
const (
	defaultRows = 100
	maxRows     = 1000
	maxBareRows = 10_000
	// defaultRowText is how much text a row has if the caller does not say.
	defaultRowText = 64 << 10
	// maxRowGist is how many columns of an entry's text are enough for a line on any screen.
	maxRowGist = 240
)

// RowsRequest says which part of a path to read.
type RowsRequest struct {
	Session string `json:"session"`        // as a person names it: see Resolve
	Link    bool   `json:"link,omitempty"` // only the session that is named
	Leaf    string `json:"leaf,omitempty"` // the end of the path, as a person names it; "" means the leaf
	// At is an entry, as a person names it, from which From counts. If it is not on the path to
	// Leaf, the path goes through it to where its branch was last worked on.
	At string `json:"at,omitempty"`
	// From is the index of the first row. Negative without At, it counts from the end.
	From  int `json:"from,omitempty"`
	Count int `json:"count,omitempty"` // how many rows, at most 1,000; 0 means 100
	// Limit is how many bytes of text, thinking, tool output and arguments each entry has at
	// most; 0 means 64 kB.
	Limit int `json:"limit,omitempty"`
}

// RowsResult is a part of a path as people see it. Entries that are only about the session (names,
// tags, labels) are left out; drafts of an unfinished answer, and what is queued, are messages.
type RowsResult struct {
	Session string `json:"session"` // its name or, if there are several sessions, the conversation's id
	Leaf    string `json:"leaf"`    // the id of the last entry of the path; "" if it is empty
	Total   int    `json:"total"`   // how many rows the path has
	From    int    `json:"from"`    // the index of the first row here, or where it would be
	Rows    []Row  `json:"rows"`
	// Messages is how many rows of the path are messages.
	Messages int `json:"messages"`
	// Roots are the other beginnings of the conversation, if the first row is here.
	Roots []Branch `json:"roots,omitempty"`
}

// Row is an entry on a path.
type Row struct {
	Index int `json:"index"` // from 0 at the root
	// Entry has at most as much text as was asked for. Images and files have their sizes, and their
	// blobs if they are kept apart, but never content.
	Entry     session.Entry `json:"entry"`
	Kind      string        `json:"kind"` // the role of a message, or a word for what else it is
	Gist      string        `json:"gist"` // what it says, on one line
	Label     string        `json:"label,omitempty"`
	Others    []Branch      `json:"others,omitempty"`    // what follows it on other paths
	Subagents []string      `json:"subagents,omitempty"` // the names of sessions that its calls started
	Cut       bool          `json:"cut,omitempty"`       // the entry has more text
}

// Branch is where a branch begins.
type Branch struct {
	Entry  string `json:"entry"`  // the id of its first entry
	Length int    `json:"length"` // how many entries there are from there to its end
}

// Rows returns a part of the path to a leaf, as people see it. What it costs depends on how many
// rows are asked for, and not on how long the conversation is: it stays open for a while.
func (e *Entries) Rows(ctx context.Context, r RowsRequest) (*RowsResult, error) {
	return call(ctx, e.home, "entries.rows", r, e.rows)
}

func (e *Entries) rows(ctx context.Context, r RowsRequest) (*RowsResult, error) {
	if err := notNegative("limit", r.Limit); err != nil {
		return nil, err
	}
	limit := r.Limit
	if limit == 0 {
		limit = defaultRowText
	}
	var result *RowsResult
	err := e.home.look(ctx, OpenRequest{r.Session, r.Link}, func(v *viewed, drawn render.Conversation) error {
		leaf, err := v.leafNamed(r.Leaf)
		if err != nil {
			return err
		}
		at, err := v.atNamed(r.At)
		if err != nil {
			return err
		}
		t := v.trailTo(r.Leaf, leaf, at)
		from, to, err := rowsFrom(slices.Index(t.Entries, at), r.From, r.Count, maxRows, len(t.Entries), r.At != "")
		if err != nil {
			return err
		}
		result = &RowsResult{Session: v.Handle, Total: len(t.Entries), From: from, Messages: v.sketch.Messages(t.Entries)}
		if n := len(t.Entries); n > 0 {
			result.Leaf = v.sketch.Shape().ID(t.Entries[n-1])
		}
		if from == 0 {
			result.Roots = v.others(-1, t.Entries[:min(to, 1)])
		}
		result.Rows, err = v.rows(ctx, drawn, t.Entries, from, to, limit)
		return err
	})
	return result, err
}

// rows reads a part of a path.
func (v *viewed) rows(ctx context.Context, drawn render.Conversation, path []int32, from, to, limit int) ([]Row, error) {
	entries, err := v.sketch.Read(ctx, drawn, path[from:to], render.MaxOutput)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(entries))
	for i := range rows {
		e, at := &entries[i], from+i
		rows[i] = Row{
			Index: at, Kind: render.Kind(e), Gist: render.Gist(e, maxRowGist), Label: v.sketch.Label(path[at]),
			Others: v.others(path[at], path[at+1:min(at+2, len(path))]), Subagents: drawn.SubagentsOf(e),
		}
		rows[i].Entry, rows[i].Cut = shortened(*e, limit)
	}
	return rows, nil
}

// others returns the branches after an entry, without the one that begins with next.
func (v *viewed) others(at int32, next []int32) (list []Branch) {
	for _, child := range v.sketch.Children(at) {
		if !slices.Contains(next, child) {
			_, length := v.sketch.Tip(child)
			list = append(list, Branch{v.sketch.Shape().ID(child), length})
		}
	}
	return list
}

// rowsFrom returns which of total rows are asked for: count rows from one on, counted from at if
// there is such an entry.
func rowsFrom(at, from, count, most, total int, hasAt bool) (first, end int, err error) {
	if err := notNegative("count", count); err != nil {
		return 0, 0, err
	}
	switch {
	case count > most:
		return 0, 0, wrong("count", "{count} is %d; at most %d rows are read at a time", count, most)
	case count == 0:
		count = defaultRows
	}
	if from < 0 && !hasAt {
		at = total
	}
	first = min(max(max(at, 0)+from, 0), total)
	return first, min(first+count, total), nil
}

// MapRequest says which part of a conversation's tree to read.
type MapRequest struct {
	Session string `json:"session"`        // as a person names it: see Resolve
	Link    bool   `json:"link,omitempty"` // only the session that is named
	Leaf    string `json:"leaf,omitempty"` // the end of the live path, as a person names it; "" means the leaf
	At      string `json:"at,omitempty"`   // an entry, as a person names it, from which From counts
	// From is the index of the first row. Negative without At, it counts from the end.
	From  int `json:"from,omitempty"`
	Count int `json:"count,omitempty"` // how many rows, at most 1,000; 0 means 100
	// Fold folds runs of more than so many entries into one row; 0 folds nothing. Default: -1,
	// which folds runs of more than four if the tree is long.
	Fold *int `json:"fold,omitempty"`
	// Bare leaves out what the entries say, so that they need not be read: rows have ids, parents,
	// lanes and labels. Then a request may be for 10,000 rows.
	Bare bool `json:"bare,omitempty"`
}

// MapResult is a part of a tree, drawn from top to bottom.
type MapResult struct {
	Session string   `json:"session"` // its name or, if there are several sessions, the conversation's id
	Leaf    string   `json:"leaf"`    // the id of the last entry of the live path; "" if it is empty
	Total   int      `json:"total"`   // how many rows the tree has
	From    int      `json:"from"`    // the index of the first row here, or where it would be
	Rows    []MapRow `json:"rows"`
}

// MapRow is a row of a tree: an entry, or how many are folded away.
type MapRow struct {
	Index     int       `json:"index"`            // from 0 at the top
	Entry     string    `json:"entry"`            // its id; that of the first one if they are folded
	Parent    string    `json:"parent,omitempty"` // the id of the entry that it follows; "" for a root
	Lanes     string    `json:"lanes"`            // the lines of the branches before it
	Folded    int       `json:"folded,omitempty"` // how many entries are folded away; 0 means that it is an entry
	Kind      string    `json:"kind,omitempty"`   // the role of a message, or a word for what else it is
	Role      string    `json:"role,omitempty"`
	Gist      string    `json:"gist,omitempty"` // what it says, on one line
	Label     string    `json:"label,omitempty"`
	Live      bool      `json:"live,omitempty"` // it is on the path to the leaf
	Leaf      bool      `json:"leaf,omitempty"`
	Children  int       `json:"children"` // how many entries follow it directly
	Time      time.Time `json:"time,omitzero"`
	Subagents []string  `json:"subagents,omitempty"` // the names of sessions that its calls started
}

// Map returns a part of a conversation's tree as coppice tree draws it: the path to the leaf runs
// straight down, and what branches off is indented. What it costs depends on how many rows are
// asked for, and not on how long the conversation is: it stays open for a while.
func (e *Entries) Map(ctx context.Context, r MapRequest) (*MapResult, error) {
	return call(ctx, e.home, "entries.map", r, e.drawMap)
}

func (e *Entries) drawMap(ctx context.Context, r MapRequest) (*MapResult, error) {
	fold := render.FoldIfLong
	if r.Fold != nil {
		fold = *r.Fold
	}
	if fold < render.FoldIfLong {
		return nil, wrong("fold", "{fold} is %d; it must be -1 or more", fold)
	}
	var result *MapResult
	err := e.home.look(ctx, OpenRequest{r.Session, r.Link}, func(v *viewed, drawn render.Conversation) error {
		leaf, err := v.leafNamed(r.Leaf)
		if err != nil {
			return err
		}
		at, err := v.atNamed(r.At)
		if err != nil {
			return err
		}
		if v.chart == nil || !v.chart.IsOf(v.sketch, fold) {
			v.chart = render.NewChart(v.sketch, fold)
		}
		if err := v.chart.Update(ctx, drawn, leaf); err != nil {
			return err
		}
		line := -1
		if at >= 0 {
			line = v.chart.Index(at)
		}
		most := maxRows
		if r.Bare {
			most = maxBareRows
		}
		from, to, err := rowsFrom(line, r.From, r.Count, most, v.chart.Len(), r.At != "")
		if err != nil {
			return err
		}
		result = &MapResult{Session: v.Handle, Total: v.chart.Len(), From: from}
		if leaf >= 0 {
			result.Leaf = v.sketch.Shape().ID(leaf)
		}
		if r.Bare {
			result.Rows = v.rowsWithoutText(from, to)
			return nil
		}
		result.Rows, err = v.mapRows(ctx, drawn, from, to)
		return err
	})
	return result, err
}

// rowsWithoutText returns a part of the chart without the text of the entries.
func (v *viewed) rowsWithoutText(from, to int) []MapRow {
	k := v.sketch
	rows := make([]MapRow, 0, to-from)
	for i := from; i < to; i++ {
		l := v.chart.Line(i)
		row := MapRow{Index: i, Entry: k.Shape().ID(l.Entry), Lanes: l.Lanes, Folded: l.Folded, Live: l.Live}
		if parent := k.At(k.Shape().Parent(l.Entry)); parent >= 0 {
			row.Parent = k.Shape().ID(parent)
		}
		if l.Folded == 0 {
			row.Label, row.Leaf, row.Children = k.Label(l.Entry), l.Entry == v.chart.Leaf(), len(k.Children(l.Entry))
		}
		rows = append(rows, row)
	}
	return rows
}

// mapRows reads a part of the chart.
func (v *viewed) mapRows(ctx context.Context, drawn render.Conversation, from, to int) ([]MapRow, error) {
	k := v.sketch
	var shown []int32
	for i := from; i < to; i++ {
		if l := v.chart.Line(i); l.Folded == 0 {
			shown = append(shown, l.Entry)
		}
	}
	entries, err := k.Read(ctx, drawn, shown, render.MaxOutput)
	if err != nil {
		return nil, err
	}
	rows := v.rowsWithoutText(from, to)
	for i := range rows {
		row := &rows[i]
		if row.Folded > 0 {
			continue
		}
		e := &entries[0]
		entries = entries[1:]
		row.Kind, row.Gist, row.Time = render.Kind(e), render.Gist(e, maxRowGist), e.Timestamp.UTC()
		row.Subagents = drawn.SubagentsOf(e)
		if e.Message != nil {
			row.Role = e.Message.Role
		}
	}
	return rows, nil
}
