package app

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/tui/list"
	"github.com/coppice-dev/coppice/render/terminal"
)

// sessions is the first room: all conversations.
type sessions struct {
	base
	list  *list.List
	width int
	found []home.SessionInfo
}

func newSessions(a *App) *sessions {
	s := &sessions{base: newBase(a)}
	s.list = list.New(s.row)
	return s
}

func (s *sessions) title() string { return "sessions" }

func (s *sessions) session() string {
	if len(s.found) == 0 {
		return ""
	}
	return s.found[s.list.Cursor()].ID
}

func (s *sessions) enter() tea.Cmd {
	return s.call(func(ctx context.Context) tea.Msg {
		page, err := s.Home.Sessions.List(ctx, home.ListRequest{})
		if err != nil {
			return err
		}
		return page
	})
}

func (s *sessions) update(msg tea.Msg) tea.Cmd {
	if page, ok := msg.(*home.ListResult); ok {
		s.found = page.Sessions
		s.list.SetCount(len(s.found))
	}
	return nil
}

func (s *sessions) keys() []key {
	return append(listKeys(s.list),
		key{keys: []string{"enter"}, help: "open", do: func() tea.Cmd { return s.open(newTranscript(s.App, s.session(), "")) }},
		key{keys: []string{"t"}, help: "tree", do: func() tea.Cmd { return s.open(newTree(s.App, s.session(), "")) }},
		key{keys: []string{"x"}, help: "context", do: func() tea.Cmd { return s.open(newContext(s.App, s.session(), "")) }},
		key{keys: []string{"$"}, help: "stats", do: func() tea.Cmd { return s.open(newStats(s.App, "")) }},
	)
}

func (s *sessions) row(i int) []string {
	st := s.style(s.width)
	info := s.found[i]
	return []string{st.selected(" "+terminal.Pad(st.When(info.Updated), 14)+info.Title, i == s.list.Cursor())}
}

func (s *sessions) view(width, height int) ([]string, tea.Position) {
	s.width = width
	s.list.SetHeight(height)
	rows, y := s.list.View()
	return rows, tea.Position{Y: y}
}

// newSessionsFor shows the conversations that a query finds.
func newSessionsFor(a *App, query string) *sessions { return newSessions(a) }
