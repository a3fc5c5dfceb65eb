package app

import tea "charm.land/bubbletea/v2"

// tree shows a conversation.
type tree struct {
	base
	id, at string
}

// newTree shows a conversation, and in it an entry; "" is its end.
func newTree(a *App, session, at string) *tree {
	return &tree{base: newBase(a), id: session, at: at}
}

func (r *tree) title() string                                   { return "tree" }
func (r *tree) session() string                                 { return r.id }
func (r *tree) enter() tea.Cmd                                  { return nil }
func (r *tree) update(tea.Msg) tea.Cmd                          { return nil }
func (r *tree) keys() []key                                     { return nil }
func (r *tree) view(width, height int) ([]string, tea.Position) { return nil, tea.Position{} }
