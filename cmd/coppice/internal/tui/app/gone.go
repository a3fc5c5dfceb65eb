package app

import (
	"context"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/render/terminal"
)

// vanished is the message that the session of a room is not in the home any more.
type vanished string

// failIn tells the user what went wrong in a room. If that is because its session is gone, another
// room says so in its place.
func (a *App) failIn(r room, err error) tea.Cmd {
	id := topicOf(r)
	if id == "" || home.KindOf(err) != home.KindNotFound {
		a.fail(err)
		return nil
	}
	return func() tea.Msg {
		if len(a.missing(a.ctx, []string{id})) > 0 {
			return vanished(id)
		}
		return err
	}
}

// vanish leaves the rooms about a session that is gone, and says so.
func (a *App) vanish(id string) tea.Cmd {
	if !slices.Contains(a.topics(), id) {
		return nil // they were left
	}
	a.leave([]string{id})
	a.prompt = nil // it was about the session
	return a.open(&gone{base: newBase(a), id: id})
}

// gone is where rooms about a session were until it was removed elsewhere.
type gone struct {
	base
	id   string
	fate *fate // nil until it is known
}

func (g *gone) title() string   { return "gone" }
func (g *gone) session() string { return g.id }

// fate is what became of a session.
type fate struct {
	isBack  bool
	removal *home.Removal // in the trash; nil if it is not there
}

func (g *gone) enter() tea.Cmd {
	return g.call(func(ctx context.Context) tea.Msg {
		if len(g.missing(ctx, []string{g.id})) == 0 {
			return &fate{isBack: true}
		}
		trash, err := g.Home.Upkeep.Trash(ctx, home.TrashRequest{})
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(trash.Removals, func(r home.Removal) bool { return r.Session == g.id }); i >= 0 {
			return &fate{removal: &trash.Removals[i]}
		}
		return &fate{}
	})
}

func (g *gone) update(msg tea.Msg) tea.Cmd {
	if g.fate, _ = msg.(*fate); g.fate != nil && g.fate.isBack {
		g.leave([]string{g.id})
		return g.open(newTranscript(g.App, g.id, ""))
	}
	return nil
}

func (g *gone) keys() []key {
	if g.fate == nil || g.fate.removal == nil {
		return []key{{keys: []string{"enter", "r"}, help: "restore", why: "it is not in the trash"}}
	}
	return []key{{keys: []string{"enter", "r"}, help: "restore", do: func() tea.Cmd { return g.restore(g.fate.removal) }}}
}

func (g *gone) view(width, _ int) ([]string, tea.Position) {
	words := []string{"This session was removed by another program."}
	switch {
	case g.fate == nil:
	case g.fate.removal != nil:
		words = append(words, "It is in the trash: Enter restores it.")
	default:
		words = append(words, "It is not in the trash.")
	}
	rows := []string{""}
	for _, line := range words {
		for _, row := range terminal.Wrap(plain.Line(line), max(width-4, 16)) {
			rows = append(rows, "  "+row)
		}
	}
	return rows, tea.Position{Y: 1}
}
