package app

import (
	"context"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
)

// seeker is a room in which / finds a text.
type seeker interface {
	room
	finder() *finding
	// next goes to where the text is next, or asks for one.
	next(back bool) tea.Cmd
}

// finding is what is looked for in a room.
type finding struct {
	text  string // what / found last; n finds the next one
	kind  string // what a jump looks for; "" while a text is looked for
	back  bool
	busy  bool
	asked only
	// at is the item of the list in which the text was found last, and row the row of it.
	at, row int
}

// inOpened is where the text was found that was looked for before: in the entry that was opened.
const inOpened = -1

func (f *finding) what() string {
	if f.kind != "" {
		return kindWords[f.kind]
	}
	return `"` + f.text + `"`
}

// kindWords say what one can jump to.
var kindWords = map[string]string{
	"prompt": "a prompt", "error": "an error", "edit": "an edit", "compaction": "a compaction", "branch": "a fork", "label": "a label",
}

// found is what entries.seek brought back.
type found struct {
	result *home.SeekResult
	err    error
}

// target is an entry to go to. It may have to be read first.
type target struct {
	index int
	open  bool   // all of it is shown
	text  string // it is shown where it has this text
	whole bool   // what was cut off of it was asked for
}

// seek looks for the next entry of a kind, or with the text.
func (r *transcript) seek(kind string, back bool) tea.Cmd {
	r.find.kind, r.find.back, r.find.busy = kind, back, true
	q := home.SeekRequest{Session: r.id, Leaf: r.leaf, From: r.last() + 1, Back: back, Kind: kind}
	if kind == "" {
		q.Text = r.find.text
	}
	if back {
		q.From = r.list.Cursor() - 1
	}
	if q.From < 0 || q.From >= r.pages.total {
		return r.found(found{result: &home.SeekResult{}})
	}
	return r.callOnly(&r.find.asked, func(ctx context.Context) tea.Msg {
		result, err := r.Home.Entries.Seek(ctx, q)
		return found{result, err}
	})
}

// stop ends a search.
func (b *base) stop() tea.Cmd {
	b.find.asked.stop()
	b.find.busy = false
	b.say("stopped looking for " + b.find.what())
	return nil
}

// sayNotFound says that the search came to an end.
func (b *base) sayNotFound() {
	where := "below"
	if b.find.back {
		where = "above"
	}
	what := strings.TrimPrefix(strings.TrimPrefix(b.find.what(), "a "), "an ")
	switch {
	case b.find.kind != "":
	case b.find.back:
		where += "; n looks below"
	default:
		where += "; N looks above"
	}
	b.say("no " + what + " " + where)
}

func (r *transcript) found(f found) tea.Cmd {
	r.find.busy = false
	switch {
	case f.err != nil:
		return r.failIn(r, f.err)
	case !f.result.Found:
		r.sayNotFound()
		return nil
	}
	r.going = &target{index: f.result.Index, open: r.find.kind == "error" || r.find.kind == "edit"}
	if r.find.kind == "" {
		r.going.text = r.find.text
	}
	r.list.Centre(f.result.Index)
	r.arrive()
	return r.load()
}

// arrive shows the entry that one goes to, once it is known.
func (r *transcript) arrive() {
	t := r.going
	if t == nil || r.pages.at(t.index) == nil {
		return
	}
	at := t.index
	if owner := r.owner(at); owner >= 0 {
		at = owner
	}
	row := r.pages.at(at)
	r.unpeek(row.Entry.ID)
	line := findRow(r.item(at), t.text, 0, false)
	if (t.open || t.text != "" && line < 0) && !r.isOpen(row) {
		r.open[row.Entry.ID], r.peeked = true, row.Entry.ID
		r.forget(at, at+1)
		line = findRow(r.item(at), t.text, 0, false)
	}
	if r.list.Cursor() != at {
		r.list.Centre(at)
	}
	r.list.SelectRow(at, max(line, 0))
	r.find.row, r.find.at = line, at
	if t.text == "" || line >= 0 || !r.isCut(at) {
		r.going = nil
	} else if !t.whole { // it is in what was cut off
		t.whole = true
		r.todo = append(r.todo, r.fetch(at))
	}
}

// unpeek folds what was opened because one jumped to it, unless it is an entry that one stays at.
func (r *transcript) unpeek(stay string) {
	if r.peeked == "" || r.peeked == stay {
		return
	}
	delete(r.open, r.peeked)
	clear(r.drawn)
	r.peeked = ""
}

// findRow returns the first row from one on that has a text, or the last one up to it; -1 if there
// is none.
func findRow(rows []string, text string, from int, back bool) int {
	if text == "" {
		return -1
	}
	step := 1
	if back {
		step = -1
	}
	text = strings.ToLower(text)
	for i := from; i >= 0 && i < len(rows); i += step {
		if strings.Contains(strings.ToLower(ansi.Strip(rows[i])), text) {
			return i
		}
	}
	return -1
}

// askText asks for a text to find in a room.
func (a *App) askText(r seeker) tea.Cmd {
	f := r.finder()
	p := a.ask("find:", "", func(text string) tea.Cmd {
		if text == "" {
			text = f.text
		}
		if f.text, f.row = text, -1; text == "" {
			return nil
		}
		return r.next(false)
	})
	before := f.text
	p.changed = func(text string) tea.Cmd {
		f.text = text // what is on the screen shows it
		return nil
	}
	p.left = func() tea.Cmd {
		f.text = before
		return nil
	}
	return nil
}

// findKeys returns the keys of the finder: those that come before the keys of a room, while
// something is looked for, and the one that begins.
func (a *App) findKeys(r seeker) (first []key, begin key) {
	f := r.finder()
	if f.busy {
		first = append(first, key{keys: []string{"esc"}, help: "stop looking", group: reading, do: r.core().stop})
	} else if f.text != "" {
		first = append(first, key{keys: []string{"esc"}, help: "end the search", group: reading, rare: true, do: func() tea.Cmd { f.text = ""; return nil }})
	}
	if f.text != "" {
		first = append(first,
			key{keys: []string{"n"}, help: "next", group: reading, do: func() tea.Cmd { return r.next(false) }},
			key{keys: []string{"N"}, help: "previous", group: reading, rare: true, do: func() tea.Cmd { return r.next(true) }})
	}
	return first, key{keys: []string{"/"}, help: "find", group: reading, do: func() tea.Cmd { return a.askText(r) }}
}

// start is the row of the selected item at which to go on looking.
func (f *finding) start(cursor int) int {
	switch {
	case f.at == cursor && f.back:
		return f.row - 1
	case f.at == cursor:
		return f.row + 1
	case f.back:
		return -1
	}
	return 0
}

// next goes to the next item of a list that shows the text.
func (l *listing) next(back bool) tea.Cmd {
	f := l.find
	f.kind, f.back = "", back
	step, from := 1, f.start(l.list.Cursor())
	if back {
		step = -1
	}
	for i := l.list.Cursor(); i >= 0 && i < l.list.Count(); i += step {
		rows := l.list.Rows(i)
		if back && i != l.list.Cursor() {
			from = len(rows) - 1
		}
		if line := findRow(rows, f.text, from, back); line >= 0 {
			l.list.SelectRow(i, line)
			f.at, f.row = i, line
			return nil
		}
		from = 0
	}
	l.sayNotFound()
	return nil
}

// next goes to where the text is found next: in the selected entry, or in another one.
func (r *transcript) next(back bool) tea.Cmd {
	r.going, r.find.back = nil, back
	cursor := r.list.Cursor()
	if r.find.at == inOpened {
		r.find.at = cursor
		return r.seek("", back)
	}
	if line := findRow(r.item(cursor), r.find.text, r.find.start(cursor), back); line >= 0 {
		r.find.kind = ""
		r.list.SelectRow(cursor, line)
		r.find.row, r.find.at = line, cursor
		return r.load()
	}
	return r.seek("", back)
}

// foundInTree is a row that was found.
type foundInTree struct {
	entry  string // "" if there is none
	folded bool   // it is only drawn if the whole tree is
	err    error
}

// treeRowsAtATime is how many rows of a tree are looked at with one request.
const treeRowsAtATime = 1000

// next goes to the next row that shows the text, among all that the tree has: those that are folded
// away, too.
func (r *tree) next(back bool) tea.Cmd {
	at, from, cursor := r.entry(), 0, r.list.Cursor()
	f := r.find
	switch {
	case back:
		from = -treeRowsAtATime
	case f.at == cursor && f.row >= 0:
		from = 1
	}
	f.kind, f.back, f.busy = "", back, true
	text, fold := strings.ToLower(f.text), r.fold
	return r.callOnly(&f.asked, func(ctx context.Context) tea.Msg {
		if at == "" { // the selected row is still being read
			here, err := r.Home.Entries.Map(ctx, home.MapRequest{Session: r.id, From: cursor, Count: 1, Fold: &fold})
			if err != nil || len(here.Rows) == 0 {
				return foundInTree{err: err}
			}
			at = here.Rows[0].Entry
		}
		entry, err := r.seekRow(ctx, at, from, text, back)
		if err != nil || entry == "" {
			return foundInTree{err: err}
		}
		shown, err := r.Home.Entries.Map(ctx, home.MapRequest{Session: r.id, At: entry, Count: 1, Fold: &fold})
		if err != nil {
			return foundInTree{err: err}
		}
		isShown := len(shown.Rows) > 0 && shown.Rows[0].Entry == entry && shown.Rows[0].Folded == 0
		return foundInTree{entry: entry, folded: !isShown}
	})
}

// seekRow looks through a tree from a row on, counted from an entry. It returns the entry of the row
// that has a text, or "".
func (r *tree) seekRow(ctx context.Context, at string, from int, text string, back bool) (string, error) {
	whole := treeWhole
	q := home.MapRequest{Session: r.id, At: at, From: from, Count: treeRowsAtATime, Fold: &whole}
	for {
		part, err := r.Home.Entries.Map(ctx, q)
		if err != nil {
			return "", err
		}
		rows := part.Rows
		if back {
			if i := slices.IndexFunc(rows, func(row home.MapRow) bool { return row.Entry == at }); i >= 0 {
				rows = rows[:i]
			}
			slices.Reverse(rows)
		}
		if i := slices.IndexFunc(rows, func(row home.MapRow) bool { return strings.Contains(strings.ToLower(rowText(&row)), text) }); i >= 0 {
			return rows[i].Entry, nil
		}
		next := part.From + len(part.Rows)
		if back {
			next = part.From - treeRowsAtATime
			q.Count = min(treeRowsAtATime, part.From)
		}
		if len(part.Rows) == 0 || next >= part.Total || q.Count == 0 {
			return "", nil
		}
		q.At, q.From = "", max(next, 0)
	}
}

// rowText is what a row of a tree shows.
func rowText(row *home.MapRow) string {
	return render.OneLine(strings.Join(append([]string{row.Kind, row.Gist, row.Label}, row.Subagents...), " "), 0)
}

// goToFound goes to the row that was found.
func (r *tree) goToFound(f foundInTree) tea.Cmd {
	r.find.busy = false
	switch {
	case f.err != nil:
		return r.failIn(r, f.err)
	case f.entry == "":
		r.sayNotFound()
		return nil
	case f.folded:
		r.fold = treeWhole
	}
	return r.goTo(f.entry)
}

// mark shows where a row has the text that was looked for.
func (f *finding) mark(s style, row string) string {
	if f.text == "" || !s.Color {
		return row
	}
	text, bare := strings.ToLower(f.text), ansi.Strip(row)
	low := strings.ToLower(bare)
	if len(low) != len(bare) || !strings.Contains(low, text) {
		return row
	}
	var b strings.Builder
	done, column := 0, 0 // of the bare row
	for {
		at := strings.Index(low[done:], text)
		if at < 0 {
			break
		}
		from := column + ansi.StringWidth(bare[done:done+at])
		done += at
		hit := bare[done : done+len(text)]
		b.WriteString(ansi.Cut(row, column, from))
		b.WriteString(plain.Paint("7", hit))
		done += len(text)
		column = from + ansi.StringWidth(hit)
	}
	b.WriteString(ansi.Cut(row, column, ansi.StringWidth(bare)))
	return b.String()
}
