package app

import (
	"context"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/list"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
)

// tree shows all branches of a conversation.
type tree struct {
	base
	id string
	at string // the entry to begin at; "" is the leaf

	list  *list.List
	pages pages[home.MapRow]
	known bool
	plan  int    // counts the drawings: what is read for an earlier one is not wanted
	going string // the entry that one goes to, until it is read
	fold  int    // as entries.map has it
	cols  int    // for the tree
	marks []string
	drawn map[int][]string // rows by index, as they look when they are not selected

	pane
}

const (
	treeFolded = -1 // as coppice tree does
	treeWhole  = 0
)

// newTree shows the tree of a conversation, and in it an entry; "" is its leaf.
func newTree(a *App, session, at string) *tree {
	r := &tree{base: newBase(a), id: session, at: at, pages: newPages[home.MapRow](pageRows), fold: treeFolded, drawn: make(map[int][]string)}
	r.list = list.New(r.item)
	return r
}

func (r *tree) title() string { return "tree" }

func (r *tree) session() string { return r.id }

func (r *tree) row() *home.MapRow { return r.pages.at(r.list.Cursor()) }

// entry returns the selected entry, or "".
func (r *tree) entry() string {
	if row := r.row(); row != nil {
		return row.Entry
	}
	return ""
}

// mapped is a part of a tree: around an entry that one goes to, or a page.
type mapped struct {
	plan, page int // page -1: around an entry
	at         string
	again      bool // nobody goes anywhere: the tree is read as it is now
	result     *home.MapResult
	err        error
}

func (r *tree) enter() tea.Cmd {
	if r.known {
		return r.again()
	}
	return tea.Batch(r.goTo(r.at), r.follow(r.id))
}

// goTo reads the tree again, and goes to an entry.
func (r *tree) goTo(at string) tea.Cmd {
	r.plan++
	if at == "" {
		at = home.Leaf
	}
	r.going = at
	return r.readMap(at, false)
}

// again reads the tree as it is now. One stays where one is, or gets to where one goes.
func (r *tree) again() tea.Cmd {
	if at := r.entry(); r.going == "" && at != "" {
		r.plan++
		return r.readMap(at, true)
	}
	return r.goTo(r.going)
}

func (r *tree) readMap(at string, again bool) tea.Cmd {
	plan, q := r.plan, home.MapRequest{Session: r.id, At: at, From: -pageRows / 2, Count: pageRows, Fold: &r.fold}
	return r.call(func(ctx context.Context) tea.Msg {
		result, err := r.Home.Entries.Map(ctx, q)
		return mapped{plan, -1, at, again, result, err}
	})
}

func (r *tree) load() tea.Cmd {
	r.layout(r.columns(), r.height-2)
	if !r.known {
		return nil
	}
	first, last := r.list.Window()
	cmds := []tea.Cmd{r.showBeside(r, &r.pane, r.wanted())}
	for _, page := range r.pages.want(first, last) {
		plan, fold := r.plan, r.fold
		cmds = append(cmds, r.call(func(ctx context.Context) tea.Msg {
			result, err := r.Home.Entries.Map(ctx, home.MapRequest{Session: r.id, From: page * pageRows, Count: pageRows, Fold: &fold})
			return mapped{plan, page, "", false, result, err}
		}))
	}
	return tea.Batch(cmds...)
}

func (r *tree) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case mapped:
		switch {
		case msg.plan != r.plan:
			return nil
		case msg.err != nil:
			delete(r.pages.asked, msg.page)
			return r.failIn(r, msg.err)
		}
		if now := r.entry(); msg.again && now != msg.at && now != "" { // one has moved meanwhile
			return r.again()
		}
		r.put(&msg)
	case wantedNow:
		if wanted(msg) == r.want {
			return r.read(wanted(msg))
		}
	case rewritten:
		return tea.Batch(r.enter(), r.follow(r.id))
	case arrived:
		return tea.Batch(r.again(), r.await(msg.arrivals))
	case foundInTree:
		return r.goToFound(msg)
	case forkFound:
		if msg.entry == "" {
			r.say(msg.words)
			return nil
		}
		return r.goTo(msg.entry)
	}
	return r.load()
}

func (r *tree) put(m *mapped) {
	clear(r.drawn)
	if m.page >= 0 {
		r.pages.put(m.result.From, m.result.Rows)
		r.list.Reveal()
		return
	}
	before, wasKnown := r.list.Cursor(), r.known
	r.pages, r.known, r.going = newPages[home.MapRow](pageRows), true, ""
	r.pages.total = m.result.Total
	r.pages.put(m.result.From, m.result.Rows)
	r.list.SetCount(m.result.Total)
	index := min(m.result.From+pageRows/2, m.result.Total-1)
	at := m.at
	if at == home.Leaf {
		at = m.result.Leaf
	}
	if i := slices.IndexFunc(m.result.Rows, func(row home.MapRow) bool { return row.Entry == at }); i >= 0 {
		index = m.result.Rows[i].Index
	}
	if !wasKnown || index != before {
		r.list.Centre(index)
	}
	if r.find.text != "" && !m.again { // the next one is below it
		r.find.at, r.find.row = index, 0
	}
}

// panesFrom implements guide.
func (r *tree) panesFrom() int { return besideWidth }

// wanted is what the conversation beside the tree shows.
func (r *tree) wanted() wanted {
	if r.entry() == "" {
		return wanted{}
	}
	return wanted{session: r.id, entry: r.entry()}
}

// read shows an entry in the conversation beside the tree.
func (r *tree) read(w wanted) tea.Cmd {
	if r.conversation == nil {
		return r.begin(&r.pane, w).enter()
	}
	return r.conversation.goTo(w.entry)
}

func (r *tree) layout(width, height int) {
	if width != r.cols {
		r.cols = width
		clear(r.drawn)
	}
	r.list.SetHeight(max(height-1, 1))
}

func (r *tree) item(i int) []string {
	if rows, ok := r.drawn[i]; ok {
		return rows
	}
	row := r.pages.at(i)
	if row == nil {
		return []string{" ⋮"}
	}
	rows := r.rowsOf(row)
	r.drawn[i] = rows
	return rows
}

// rowsOf draws a row of the tree, and below it the sessions of subagents.
func (r *tree) rowsOf(row *home.MapRow) []string {
	s := r.style(r.cols - 1)
	mark := " "
	if slices.Contains(r.marks, row.Entry) {
		mark = s.Paint(terminal.Yellow, "*")
	}
	if row.Folded > 0 {
		return []string{mark + s.Paint(terminal.Dim, row.Lanes+"⋮ "+render.Counted(row.Folded, "entry", "entries"))}
	}
	line := s.TreeRow(terminal.TreeRow{
		Lanes: row.Lanes, Kind: row.Kind, Label: row.Label, Live: row.Live, Leaf: row.Leaf,
		Gist: func(room int) string { return render.OneLine(row.Gist, room) },
	})
	rows := []string{mark + line}
	for _, name := range row.Subagents {
		rows = append(rows, " "+s.SubagentRow(row.Lanes, name))
	}
	return rows
}

func (r *tree) view(width, height int) ([]string, tea.Position) {
	r.layout(width, height)
	s := r.style(width)
	if r.pages.total == 0 {
		return s.nothing(r.known), tea.Position{}
	}
	rows, y := r.list.View()
	rows[y] = s.selected(rows[y], true)
	return above(r.status(s), rows, height), tea.Position{Y: y}
}

func (r *tree) status(s style) string {
	left := " row " + render.Thousands(r.list.Cursor()+1) + " of " + render.Thousands(r.pages.total)
	if row := r.row(); row != nil && row.Folded == 0 {
		left += " · " + render.OneLine(render.ShortID(row.Entry), 0)
		if !row.Time.IsZero() {
			left += " · " + s.When(row.Time)
		}
		if row.Children > 1 {
			left += " · " + render.Thousands(row.Children) + " branches begin here"
		}
	}
	right := ""
	if n := len(r.marks); n > 0 {
		right = s.Paint(terminal.Yellow, render.Thousands(n)+" marked, = compares  ")
	}
	if r.find.busy {
		right = s.Paint(terminal.Yellow, "looking for "+r.find.what()+" … Esc stops  ")
	}
	return s.ends(left, right)
}

func (r *tree) wheel(_, _, rows int) tea.Cmd {
	r.list.Scroll(rows)
	return r.load()
}

func (r *tree) click(_, y int) tea.Cmd {
	i := r.list.At(y)
	if i < 0 {
		return nil
	}
	if i == r.list.Cursor() {
		return r.openEntry()
	}
	r.list.Select(i)
	return r.load()
}
