package chat

import (
	"context"
	"errors"
	"strings"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/line"
	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/screen"
	"github.com/coppice-dev/coppice/render"
)

// recallEarlier adds to the history what was said in other conversations, once. It reports
// whether that was done.
func (u *ui) recallEarlier(ctx context.Context) bool {
	if u.recalled {
		return false
	}
	u.recalled = true
	earlier, err := u.chat.Earlier(ctx)
	if err != nil {
		u.fail(err)
		return false
	}
	u.editor.Precede(earlier...)
	return true
}

// finding is a search in the history that is going on.
type finding struct {
	query string
	place int    // of what was found in the history; -1 if nothing was
	found string // that
}

func (f *finding) prompt() string {
	return "  search " + render.OneLine(f.query, 40) + " ›"
}

// row is an editor that shows what was found.
func (f *finding) row() *line.Editor {
	var e line.Editor
	e.Set(f.found)
	return &e
}

// find takes a key of a search. It returns false if the search has ended and the key is for
// the prompt, which has what was found then.
func (u *ui) find(k line.Key) (taken bool) {
	f := u.finding
	switch k.Kind {
	case line.Text, line.Paste:
		f.query += strings.ReplaceAll(k.Text, "\n", " ")
		f.place, f.found = u.editor.Find(f.query, -1)
	case line.Backspace:
		if r := []rune(f.query); len(r) > 0 {
			f.query = string(r[:len(r)-1])
		}
		f.place, f.found = u.editor.Find(f.query, -1)
	case line.Search:
		if place, found := u.editor.Find(f.query, f.place); place >= 0 {
			f.place, f.found = place, found
		}
	case line.Interrupt, line.Escape:
		u.finding = nil
	default:
		u.finding = nil
		if f.place >= 0 {
			u.editor.Set(f.found)
		}
		return k.Kind == line.Enter || k.Kind == line.Tab
	}
	return true
}

var errNoEditor = errors.New("there is no editor here")

// edit has the person write the message in an editor.
func (u *ui) edit(text string) {
	if u.o.Edit == nil {
		u.fail(errNoEditor)
		return
	}
	u.screen.Update(u.pending, nil, screen.Cursor{}) // the editor writes where the live rows are
	u.pending = nil
	text, err := u.o.Edit(text)
	if err != nil {
		u.fail(err)
		return
	}
	u.editor.Set(strings.TrimRight(text, " \n"))
}

func (u *ui) cmdEdit(_ context.Context, text string) error {
	u.edit(text)
	return nil
}
