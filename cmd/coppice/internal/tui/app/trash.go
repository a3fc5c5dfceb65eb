package app

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/list"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
)

// trashRoom shows what is in the trash.
type trashRoom struct {
	listing
	found *home.TrashResult
	cols  int
}

func newTrash(a *App) *trashRoom {
	r := &trashRoom{listing: listing{base: newBase(a), head: 1}}
	r.list = list.New(func(i int) []string { return []string{r.row(i)} })
	return r
}

func (r *trashRoom) title() string { return "trash" }

func (r *trashRoom) enter() tea.Cmd {
	return r.call(func(ctx context.Context) tea.Msg {
		found, err := r.Home.Upkeep.Trash(ctx, home.TrashRequest{})
		if err != nil {
			return err
		}
		return found
	})
}

func (r *trashRoom) update(msg tea.Msg) tea.Cmd {
	if found, ok := msg.(*home.TrashResult); ok {
		r.found = found
		r.list.SetCount(len(found.Removals))
	}
	return nil
}

// selected returns the selected removal, or nil.
func (r *trashRoom) selected() *home.Removal {
	if i := r.list.Cursor(); r.found != nil && i >= 0 && i < len(r.found.Removals) {
		return &r.found.Removals[i]
	}
	return nil
}

func (r *trashRoom) keys() []key {
	one := r.selected()
	restore := key{keys: []string{"enter", "r"}, help: "restore", do: func() tea.Cmd { return r.restore(one) }}
	empty := key{keys: []string{"E"}, help: "empty the trash", do: r.askEmpty}
	if one == nil {
		restore.why, empty.why = "the trash is empty", "it is empty"
	}
	return append(listKeys(r.list), restore, empty)
}

// restore brings a removal back.
func (a *App) restore(one *home.Removal) tea.Cmd {
	return a.act(func(ctx context.Context) (done, error) {
		back, err := a.Home.Upkeep.Restore(ctx, home.RestoreRequest{Session: one.ID})
		if err != nil {
			return done{}, err
		}
		return done{what: "restored " + calledInQuotes(one.Title), changed: []part{{back.Session, ""}}, undo: &undo{
			now: "it is in the trash again",
			do: func(ctx context.Context) error {
				_, err := a.Home.Sessions.Remove(ctx, home.RemoveRequest{Session: back.Session})
				return err
			},
		}}, nil
	})
}

// askEmpty asks before it deletes what is in the trash, and deletes only what was there then.
func (r *trashRoom) askEmpty() tea.Cmd {
	return r.call(func(ctx context.Context) tea.Msg {
		would, err := r.Home.Upkeep.EmptyTrash(ctx, home.EmptyTrashRequest{All: true, DryRun: true})
		if err != nil {
			return err
		}
		return onward(func() tea.Cmd {
			words := "delete " + render.Counted(len(would.Removals), "session", "sessions") + ", " + render.Bytes(would.Size) + ", for good?"
			r.confirm(words, "delete", func() tea.Cmd {
				return r.act(func(ctx context.Context) (done, error) {
					gone, err := r.Home.Upkeep.EmptyTrash(ctx, home.EmptyTrashRequest{Before: would.Before})
					if err != nil {
						return done{}, err
					}
					return done{what: "deleted " + render.Counted(len(gone.Removals), "session", "sessions"), why: "they are gone for good"}, nil
				})
			})
			return nil
		})
	})
}

func (r *trashRoom) row(i int) string {
	s, one := r.style(r.cols), r.found.Removals[i]
	left := " " + s.Paint(terminal.Dim, terminal.Pad(ageOf(one.Removed, r.Now()), 8)) + " "
	right := " " + render.Bytes(one.Size) + " "
	room := max(r.cols-len(right)-10, 8)
	title := render.OneLine(one.Title, room)
	if title == "" {
		title = render.Untitled
	}
	return s.selected(left+terminal.Pad(title, room)+right, i == r.list.Cursor())
}

func (r *trashRoom) view(width, height int) ([]string, tea.Position) {
	r.cols = width
	r.list.SetHeight(max(height-1, 1))
	s := r.style(width)
	switch {
	case r.found == nil:
		return []string{"", s.Paint(terminal.Dim, "  Reading …")}, tea.Position{}
	case len(r.found.Removals) == 0:
		return []string{"", "  The trash is empty."}, tea.Position{Y: 1}
	}
	var size int64
	for _, one := range r.found.Removals {
		size += one.Size
	}
	head := s.ends(" removed   session", render.Counted(len(r.found.Removals), "session", "sessions")+", "+render.Bytes(size)+" ")
	rows, y := r.list.View()
	return append([]string{head}, rows...), tea.Position{Y: y + 1}
}
