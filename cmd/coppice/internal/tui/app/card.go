package app

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/card"
	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/list"
	"github.com/coppice-dev/coppice/home"
)

// cardPane is the card of the selected session. It is beside the list where there is no room for the
// conversation.
type cardPane struct {
	asked only
	of    cardOf
	card  *home.Card // of that one or, until it comes, of the one before
}

// cardOf is a session as it was when its card was asked for. The zero value is none.
type cardOf struct {
	id      string
	updated time.Time
	size    int64
}

// cardFound is a card that was asked for.
type cardFound struct {
	id   string
	card *home.Card
}

func (p *cardPane) forget() { p.of = cardOf{} }

func (p *cardPane) put(found cardFound) {
	if found.id == p.of.id {
		p.card = found.card
	}
}

// follow asks for the card of the selected session, if it is shown, and is another one or has
// changed.
func (p *cardPane) follow(s *sessions) tea.Cmd {
	var now cardOf
	if row := s.selected(); row != nil {
		now = cardOf{row.ID, row.Updated, row.Size}
	}
	if !s.hasCard() || now == p.of {
		return nil
	}
	if p.of = now; now.id == "" {
		p.card = nil
		return nil
	}
	id := now.id
	return s.callOnly(&p.asked, func(ctx context.Context) tea.Msg {
		wait(ctx, selectedFor, nil)
		found, err := s.Home.Sessions.Card(ctx, home.SessionRequest{Session: id})
		if err != nil {
			return nil // the session is gone, or opening it says what is wrong
		}
		return cardFound{id, found}
	})
}

func (p *cardPane) lines(st style) []string {
	if p.card == nil || p.of.id == "" {
		return nil
	}
	return card.Lines(p.card, st.Style)
}

// cardRoom is the card of a session on a screen of its own.
type cardRoom struct {
	listing
	id    string
	card  *home.Card
	lines []string
}

func newCard(a *App, id string) *cardRoom {
	r := &cardRoom{listing: listing{base: newBase(a)}, id: id}
	r.list = list.New(func(i int) []string {
		return []string{r.style(r.width).selected(" "+r.lines[i], i == r.list.Cursor())}
	})
	return r
}

func (r *cardRoom) title() string   { return "card" }
func (r *cardRoom) session() string { return r.id }

func (r *cardRoom) enter() tea.Cmd {
	return r.call(func(ctx context.Context) tea.Msg {
		found, err := r.Home.Sessions.Card(ctx, home.SessionRequest{Session: r.id})
		if err != nil {
			return err
		}
		return cardFound{r.id, found}
	})
}

func (r *cardRoom) update(msg tea.Msg) tea.Cmd {
	if found, ok := msg.(cardFound); ok {
		r.card = found.card
	}
	return nil
}

func (r *cardRoom) keys() []key {
	keys := append(listKeys(r.list),
		key{keys: []string{"enter"}, help: "open", do: func() tea.Cmd { return r.open(newTranscript(r.App, r.id, "")) }},
		key{keys: []string{"t"}, help: "tree", group: windows, do: func() tea.Cmd { return r.open(newTree(r.App, r.id, "")) }},
		key{keys: []string{"x"}, help: "context", group: windows, do: func() tea.Cmd { return r.open(newContext(r.App, r.id, "")) }},
		key{keys: []string{"tab", "i"}, help: "to the list", group: windows, do: r.back},
	)
	return append(keys, r.actions([]string{r.id})...)
}

func (r *cardRoom) view(width, height int) ([]string, tea.Position) {
	if r.card != nil {
		r.lines = card.Lines(r.card, r.style(width-2).Style)
	}
	r.list.SetCount(len(r.lines))
	r.list.SetHeight(height)
	rows, y := r.list.View()
	return rows, tea.Position{Y: y}
}
