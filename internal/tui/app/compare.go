package app

import tea "charm.land/bubbletea/v2"

// compare shows two branches side by side.
type compare struct {
	base
	id, a, b string
}

func newCompare(app *App, session, a, b string) *compare {
	return &compare{base: newBase(app), id: session, a: a, b: b}
}

func (r *compare) title() string                                   { return "compare" }
func (r *compare) session() string                                 { return r.id }
func (r *compare) enter() tea.Cmd                                  { return nil }
func (r *compare) update(tea.Msg) tea.Cmd                          { return nil }
func (r *compare) keys() []key                                     { return nil }
func (r *compare) view(width, height int) ([]string, tea.Position) { return nil, tea.Position{} }
