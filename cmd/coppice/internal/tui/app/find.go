package app

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render/plain"
)

// finding is what is looked for in a conversation.
type finding struct {
	text  string // what / found last; n finds the next one
	kind  string // what a jump looks for; "" while a text is looked for
	back  bool
	busy  bool
	place only
	// at is the entry in which the text was found last, and row the row of it.
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
	return r.callOnly(&r.find.place, func(ctx context.Context) tea.Msg {
		result, err := r.Home.Entries.Seek(ctx, q)
		return found{result, err}
	})
}

// stop ends a search.
func (r *transcript) stop() tea.Cmd {
	r.find.place.cancel()
	r.find.busy = false
	r.say("stopped looking for " + r.find.what())
	return nil
}

func (r *transcript) found(f found) tea.Cmd {
	r.find.busy = false
	where := "below"
	if r.find.back {
		where = "above"
	}
	switch {
	case f.err != nil:
		return r.failIn(r, f.err)
	case !f.result.Found:
		r.say("no " + strings.TrimPrefix(strings.TrimPrefix(r.find.what(), "a "), "an ") + " " + where)
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

// ask asks for a text to find.
func (r *transcript) askText() tea.Cmd {
	p := r.ask("find:", "", func(text string) tea.Cmd {
		if text == "" {
			text = r.find.text
		}
		r.find.text, r.find.row = text, -1
		return r.next(false)
	})
	before := r.find.text
	p.changed = func(text string) tea.Cmd {
		r.find.text = text // what is on the screen shows it
		return nil
	}
	p.left = func() tea.Cmd {
		r.find.text = before
		return nil
	}
	return nil
}

// next goes to where the text is found next: in the selected entry, or in another one.
func (r *transcript) next(back bool) tea.Cmd {
	if r.find.text == "" {
		return r.askText()
	}
	cursor, from := r.list.Cursor(), r.find.row+1
	if r.find.at == inOpened {
		r.find.at = cursor
		return r.seek("", back)
	}
	if back {
		from = r.find.row - 1
	}
	if r.find.at != cursor {
		from = 0
		if back {
			from = -1
		}
	}
	if line := findRow(r.item(cursor), r.find.text, from, back); line >= 0 {
		r.list.SelectRow(cursor, line)
		r.find.row, r.find.at = line, cursor
		return r.load()
	}
	return r.seek("", back)
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
