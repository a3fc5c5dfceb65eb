package app

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/list"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
)

// transcript shows a path through a conversation, entry by entry. It has the entries around the
// screen and asks for others when one comes near them.
type transcript struct {
	base
	id   string
	at   string // the entry to begin at; "" is the end
	info *home.SessionInfo

	list  *list.List
	pages pages[home.Row]
	known bool // something was read
	// opening says that the path is being read again.
	opening bool
	path    int // counts the paths that were shown: what is read for an earlier one is not wanted
	// via is an entry that the path goes through; "" is the live path. viaIndex is its index.
	via      string
	viaIndex int
	leaf     string
	roots    []home.Branch
	tail     map[int]string // the ids of the last rows, by index: to see whether the path only grew
	fresh    int            // how many rows came below the screen

	drawn    map[int][]string // rows of the screen by index, as they are drawn now
	drawnFor int              // the width
	tools    terminal.Fold
	thinking terminal.Fold
	open     map[string]bool // entries that are not drawn like the others: whole, or folded
	peeked   string          // the entry that was opened because one jumped to it

	going *target
	todo  []tea.Cmd // what to do with the next message
}

// newTranscript shows a conversation, and in it an entry; "" is its end.
func newTranscript(a *App, session, at string) *transcript {
	r := &transcript{
		base: newBase(a), id: session, at: at, pages: newPages[home.Row](pageRows), open: make(map[string]bool),
		drawn: make(map[int][]string), tools: terminal.Folded, thinking: terminal.Folded,
	}
	r.list = list.New(r.item)
	return r
}

func (r *transcript) title() string {
	return cmp.Or(r.titles[r.id], "transcript")
}

func (r *transcript) session() string { return r.id }

// entry returns the selected entry, or "".
func (r *transcript) entry() string {
	if row := r.pages.at(r.list.Cursor()); row != nil {
		return row.Entry.ID
	}
	return ""
}

// opened is the beginning of a path: what is around an entry, or its end.
type opened struct {
	path   int
	at     string // "" is the end
	turned bool   // the path was changed at the entry before
	going  bool   // one goes to the entry, wherever one is
	result *home.RowsResult
}

// rowsRead is a page of a path.
type rowsRead struct {
	path, page int
	result     *home.RowsResult
	err        error
}

func (r *transcript) enter() tea.Cmd {
	about := r.call(func(ctx context.Context) tea.Msg {
		info, err := r.Home.Sessions.Get(ctx, home.SessionRequest{Session: r.id})
		if err != nil {
			return err
		}
		return info
	})
	if r.known {
		return tea.Batch(about, r.reopen(r.entry(), false))
	}
	return tea.Batch(about, r.reopen(r.at, false))
}

// reopen reads the path again, around an entry. turned says that the path now goes through it, and
// one stays at the entry before.
func (r *transcript) reopen(at string, turned bool) tea.Cmd {
	return r.readAround(opened{at: at, turned: turned})
}

// readAround reads what the beginning of a path needs.
func (r *transcript) readAround(o opened) tea.Cmd {
	r.path++
	r.opening = true
	o.path = r.path
	q := home.RowsRequest{Session: r.id, At: o.at, From: -pageRows / 2, Count: pageRows}
	if o.at == "" {
		q.From = -pageRows
	}
	return r.call(func(ctx context.Context) tea.Msg {
		var err error
		if o.result, err = r.Home.Entries.Rows(ctx, q); err != nil {
			return err
		}
		return o
	})
}

// goTo goes to an entry, on whichever branch it is.
func (r *transcript) goTo(at string) tea.Cmd {
	for i, row := range r.pages.rows {
		if row.Entry.ID == at && !r.opening {
			r.list.Centre(i)
			return r.load()
		}
	}
	return r.readAround(opened{at: at, going: true})
}

// load asks for the rows that are missing on the screen and next to it.
func (r *transcript) load() tea.Cmd {
	r.layout(r.columns(), r.height-2)
	if !r.known {
		return nil
	}
	if r.fresh > 0 && r.atEnd() {
		r.fresh = 0
	}
	first, last := r.list.Window()
	cmds := r.todo
	r.todo = nil
	for _, page := range r.pages.want(first, last) {
		path, q := r.path, r.request(page*pageRows)
		cmds = append(cmds, r.call(func(ctx context.Context) tea.Msg {
			result, err := r.Home.Entries.Rows(ctx, q)
			return rowsRead{path, page, result, err}
		}))
	}
	for i := first; i <= r.lastOf(last); i++ {
		cmds = append(cmds, r.lookAt(i)...)
	}
	if len(r.drawn) > 2*len(r.pages.rows) {
		maps.DeleteFunc(r.drawn, func(i int, _ []string) bool { return r.pages.at(i) == nil })
	}
	return tea.Batch(append(cmds, r.drawAhead(first, last))...)
}

// drawAhead draws what is next to the screen, so that it is there when one comes to it. It takes a
// little time and goes on after what else is to be done.
func (r *transcript) drawAhead(first, last int) tea.Cmd {
	const enough, budget = 100, 3 * time.Millisecond
	begun := time.Now()
	for n := 1; n <= enough; n++ {
		for _, i := range []int{last + n, first - n} {
			if _, ok := r.drawn[i]; ok || r.pages.at(i) == nil {
				continue
			}
			if time.Since(begun) > budget {
				return r.call(func(context.Context) tea.Msg { return aheadMsg{} })
			}
			r.item(i)
		}
	}
	return nil
}

// aheadMsg is the message that there is more to draw ahead.
type aheadMsg struct{}

// request asks for a page of the path from an index on.
func (r *transcript) request(from int) home.RowsRequest {
	q := home.RowsRequest{Session: r.id, From: from, Count: pageRows}
	if r.via != "" {
		q.At, q.From = r.via, from-r.viaIndex
	}
	return q
}

func (r *transcript) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case *home.SessionInfo:
		r.info = msg
		r.titles[r.id] = msg.Title
	case opened:
		if msg.path != r.path {
			return nil
		}
		r.opening = false
		if now := r.entry(); r.known && !msg.turned && !msg.going && now != "" && now != msg.at && (msg.at != "" || !r.atEnd()) {
			return r.reopen(now, false) // one has moved meanwhile
		}
		if !r.known {
			r.todo = append(r.todo, r.follow(r.id))
		}
		r.begin(&msg)
	case rowsRead:
		switch {
		case msg.path != r.path:
			return nil
		case msg.err != nil:
			delete(r.pages.asked, msg.page)
			return r.failIn(r, msg.err)
		}
		r.put(msg.result)
	case whole:
		if msg.path == r.path {
			r.putWhole(&msg)
		}
	case rewritten:
		return tea.Batch(r.enter(), r.follow(r.id))
	case arrived:
		return r.refresh(msg.arrivals)
	case grown:
		return tea.Batch(r.grow(msg), r.await(msg.arrivals))
	case found:
		return r.found(msg)
	case pictureMade:
		return r.sendPicture(msg)
	case pictureSent:
		r.showPicture(msg)
	}
	return r.load()
}

// begin shows a path for the first time, or as it is now.
func (r *transcript) begin(msg *opened) {
	result, at := msg.result, msg.at
	wasKnown, before := r.known, r.list.Cursor()
	r.pages = newPages[home.Row](pageRows)
	r.known, r.leaf, r.roots, r.tail, r.fresh = true, result.Leaf, result.Roots, nil, 0
	r.remember(result)
	r.pages.total = result.Total
	r.put(result)
	r.list.SetCount(result.Total)
	index := result.Total - 1
	if at != "" {
		index = min(result.From+pageRows/2, result.Total-1)
		if i := slices.IndexFunc(result.Rows, func(row home.Row) bool { return row.Entry.ID == at }); i >= 0 {
			index = result.Rows[i].Index
		}
	}
	r.via, r.viaIndex = "", 0
	if row := r.pages.at(index); at != "" && row != nil {
		r.via, r.viaIndex = row.Entry.ID, index
	}
	if msg.turned {
		index = max(index-1, 0)
	}
	switch {
	case at == "":
		r.list.Last()
	case !wasKnown || index != before:
		r.list.Centre(index)
	default:
		r.list.Reveal()
	}
}

// put shows rows that were read.
func (r *transcript) put(result *home.RowsResult) {
	r.list.Keep(func() { r.keepRows(result) })
	r.arrive()
}

// keepRows keeps rows that were read.
func (r *transcript) keepRows(result *home.RowsResult) {
	if result.From == 0 {
		r.roots = result.Roots
	}
	for i := range result.Rows { // what was fetched as a whole stays so
		row := &result.Rows[i]
		if old := r.pages.at(row.Index); old != nil && old.Entry.ID == row.Entry.ID && row.Cut && !old.Cut {
			row.Entry, row.Cut = old.Entry, false
		}
	}
	r.pages.put(result.From, result.Rows)
	r.forget(result.From, result.From+len(result.Rows))
}

// forget lets rows be drawn again, with those around them whose drawing depends on them.
func (r *transcript) forget(from, to int) {
	for i := from - near; i < to+near; i++ {
		delete(r.drawn, i)
	}
}

// remember keeps the ids of the last rows.
func (r *transcript) remember(result *home.RowsResult) {
	if r.tail == nil {
		r.tail = make(map[int]string)
	}
	r.tail[result.Total-1] = result.Leaf
	for i := range result.Rows {
		if row := &result.Rows[i]; row.Index >= result.Total-tailRows {
			r.tail[row.Index] = row.Entry.ID
		}
	}
}

func (r *transcript) layout(width, height int) {
	if width != r.drawnFor {
		clear(r.drawn)
		r.drawnFor = width
		r.list.Reveal()
	}
	r.list.SetHeight(max(height-1, 1))
}

func (r *transcript) view(width, height int) ([]string, tea.Position) {
	r.layout(width, height)
	s := r.style(width)
	if r.pages.total == 0 {
		return s.nothing(r.known), tea.Position{}
	}
	rows, y := r.list.View()
	from, to := r.list.Span()
	shown := make([]string, 0, height)
	for i, row := range rows {
		shown = append(shown, s.gutter(i >= from && i < to, i == from)+row)
	}
	return above(r.status(s), shown, height), tea.Position{Y: y}
}

// gutter is what is before a row: a bar beside the selected item.
func (s style) gutter(selected, first bool) string {
	switch {
	case selected && s.Color && s.quiet:
		return s.Paint(terminal.Dim, "▌") + " "
	case selected && s.Color:
		return s.Paint(terminal.Yellow, "▌") + " "
	case selected && first && s.quiet:
		return "- "
	case selected && first:
		return "> "
	case selected:
		return "| "
	}
	return "  "
}

// status is the last row: where one is, and what is known about it.
func (r *transcript) status(s style) string {
	left := render.Thousands(r.list.Cursor()+1) + " of " + render.Thousands(r.pages.total)
	if row := r.pages.at(r.list.Cursor()); row != nil {
		left += " · " + row.Kind
		if at := row.Entry.Timestamp; !at.IsZero() {
			left += " " + s.When(at)
		}
		if m := row.Entry.Message; m != nil {
			for _, fact := range render.MessageFacts(m) {
				left += " · " + fact
			}
		}
	}
	if b := r.fork(); b != nil && b.now >= 0 {
		left += " · branch " + render.Thousands(b.now+1) + " of " + render.Thousands(len(b.ids))
	}
	right := ""
	if r.info != nil && r.info.Context > 0 {
		right += "context " + render.Count(r.info.Context) + "  "
	}
	if r.info != nil && r.info.Tokens > 0 {
		right += "tokens " + render.Count(r.info.Tokens) + "  "
	}
	switch {
	case r.find.busy:
		right = s.Paint(terminal.Yellow, "looking for "+r.find.what()+" … Esc stops  ")
	case r.fresh > 0:
		right = s.Paint(terminal.Yellow, render.Thousands(r.fresh)+" new below, G goes there  ")
	}
	return s.ends(" "+left, right)
}

func (r *transcript) wheel(_, _, rows int) tea.Cmd {
	r.list.Scroll(rows)
	return r.load()
}

func (r *transcript) click(_, y int) tea.Cmd {
	if i := r.list.At(y); i == r.list.Cursor() {
		r.fold()
	} else if i >= 0 {
		r.list.Select(i)
	}
	return r.load()
}
