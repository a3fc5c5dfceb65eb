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
	// defaultRowText is how much text a row has if the caller does not say.
	defaultRowText = 64 << 10
	// maxRowGist is how many columns of what an entry says are enough for a line on any screen.
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
	v, err := e.view(ctx, r.Session, r.Link, r.Leaf, r.At)
	if err != nil {
		return nil, err
	}
	defer v.close()
	path := v.out.Path()
	result := &RowsResult{Session: v.c.Handle, Total: len(path)}
	if len(path) > 0 {
		result.Leaf = path[len(path)-1].Entry.ID
	}
	at := 0
	if r.At != "" {
		at = max(slices.Index(path, v.out.Node(v.at)), 0)
	}
	from, to, err := rowsFrom(at, r.From, r.Count, len(path), r.At != "")
	if err != nil {
		return nil, err
	}
	if result.From = from; from == 0 {
		result.Roots = branches(v.out.OtherRoots())
	}
	limit := r.Limit
	if limit == 0 {
		limit = defaultRowText
	}
	if err := v.drawn.Read(ctx, path[from:to], render.MaxOutput); err != nil {
		return nil, err
	}
	result.Rows = make([]Row, 0, to-from)
	for i, n := range path[from:to] {
		row := Row{
			Index: from + i, Kind: render.Kind(&n.Entry), Gist: render.Gist(&n.Entry, maxRowGist), Label: n.Label,
			Subagents: v.drawn.SubagentsOf(&n.Entry),
		}
		row.Others = branches(n.Others())
		if n == v.out.Leaf {
			row.Others = branches(n.Children)
		}
		row.Entry, row.Cut = shortened(n.Entry, limit)
		result.Rows = append(result.Rows, row)
		n.Forget()
	}
	return result, nil
}

func branches(nodes []*render.Node) (list []Branch) {
	for _, n := range nodes {
		list = append(list, Branch{n.Entry.ID, n.Length})
	}
	return list
}

// rowsFrom returns which of total rows are asked for: count rows from one on, counted from at if
// there is such an entry.
func rowsFrom(at, from, count, total int, hasAt bool) (first, end int, err error) {
	if err := notNegative("count", count); err != nil {
		return 0, 0, err
	}
	switch {
	case count > maxRows:
		return 0, 0, wrong("count", "{count} is %d; at most %d rows are read at a time", count, maxRows)
	case count == 0:
		count = defaultRows
	}
	if from < 0 && !hasAt {
		at = total
	}
	first = min(max(at+from, 0), total)
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
}

// MapResult is a part of a tree as it is drawn, from top to bottom.
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
// straight down, and what branches off is indented. What it costs depends on how many rows are asked
// for, and not on how long the conversation is: it stays open for a while.
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
	v, err := e.view(ctx, r.Session, r.Link, r.Leaf, "")
	if err != nil {
		return nil, err
	}
	defer v.close()
	lines, err := v.drawn.Plan(ctx, v.out, fold)
	if err != nil {
		return nil, err
	}
	at := 0
	if r.At != "" {
		id, err := v.c.Resolve(r.At)
		if err != nil {
			return nil, err
		}
		want := v.out.Node(id)
		at = max(slices.IndexFunc(lines, func(l render.TreeLine) bool { return l.Node == want && l.Folded == 0 }), 0)
	}
	from, to, err := rowsFrom(at, r.From, r.Count, len(lines), r.At != "")
	if err != nil {
		return nil, err
	}
	result := &MapResult{Session: v.c.Handle, Total: len(lines), From: from, Rows: make([]MapRow, 0, to-from)}
	if v.out.Leaf != nil {
		result.Leaf = v.out.Leaf.Entry.ID
	}
	var nodes []*render.Node
	for _, l := range lines[from:to] {
		if l.Folded == 0 {
			nodes = append(nodes, l.Node)
		}
	}
	if err := v.drawn.Read(ctx, nodes, render.MaxOutput); err != nil {
		return nil, err
	}
	for i, l := range lines[from:to] {
		row := MapRow{Index: from + i, Entry: l.Node.Entry.ID, Lanes: l.Lanes, Folded: l.Folded, Live: l.Node.Live}
		if n := l.Node; l.Folded == 0 {
			row.Kind, row.Gist, row.Label = render.Kind(&n.Entry), render.Gist(&n.Entry, maxRowGist), n.Label
			row.Leaf, row.Children, row.Time = n == v.out.Leaf, len(n.Children), n.Entry.Timestamp.UTC()
			row.Subagents = v.drawn.SubagentsOf(&n.Entry)
			if n.Entry.Message != nil {
				row.Role = n.Entry.Message.Role
			}
		}
		result.Rows = append(result.Rows, row)
	}
	return result, nil
}

// viewing is a conversation that is looked at.
type viewing struct {
	c     *Conversation
	drawn render.Conversation
	out   *render.Outline
	at    string // the id of the entry that was asked for, or ""
}

func (e *Entries) view(ctx context.Context, name string, link bool, leaf, at string) (_ *viewing, err error) {
	c, err := e.home.openFor(ctx, OpenRequest{Session: name, Link: link})
	if err != nil {
		return nil, err
	}
	v := &viewing{c: c, drawn: c.drawn()}
	defer func() {
		if err != nil {
			v.close()
		}
	}()
	o := render.OutlineOptions{Leaf: c.LeafID()}
	if leaf != "" {
		if o.Leaf, err = c.Resolve(leaf); err != nil {
			return nil, err
		}
	}
	if at != "" {
		if o.At, err = c.Resolve(at); err != nil {
			return nil, err
		}
		v.at = o.At
	}
	if v.drawn.Subagents, err = c.subagents(ctx); err != nil {
		return nil, err
	}
	v.out, err = render.NewOutline(v.drawn, o)
	return v, err
}

func (v *viewing) close() { _ = v.c.Close() } // we only read
