package app

import tea "charm.land/bubbletea/v2"

// transcript shows a conversation.
type transcript struct {
	base
	id, at string
}

// newTranscript shows a conversation, and in it an entry; "" is its end.
func newTranscript(a *App, session, at string) *transcript {
	return &transcript{base: newBase(a), id: session, at: at}
}

func (r *transcript) title() string                                   { return "transcript" }
func (r *transcript) session() string                                 { return r.id }
func (r *transcript) enter() tea.Cmd                                  { return nil }
func (r *transcript) update(tea.Msg) tea.Cmd                          { return nil }
func (r *transcript) keys() []key                                     { return nil }
func (r *transcript) view(width, height int) ([]string, tea.Position) { return nil, tea.Position{} }
