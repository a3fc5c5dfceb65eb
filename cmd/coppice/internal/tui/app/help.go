package app

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/list"
	"github.com/coppice-dev/coppice/render/terminal"
)

// help lists the keys of a room by groups, what cannot be done now last.
type help struct {
	listing
	of  room
	all []key
	at  int // the width that it was drawn for
}

func newHelp(a *App, of room) *help {
	h := &help{listing: listing{base: newBase(a)}, of: of, all: a.keys()}
	for i := range h.all {
		if h.all[i].why != "" {
			h.all[i].group = later
		}
	}
	slices.SortStableFunc(h.all, func(a, b key) int { return int(a.group - b.group) })
	h.list = list.New(h.rows)
	h.list.SetCount(len(h.all))
	return h
}

// rows draws a key, below the heading of its group if it is the first of it.
func (h *help) rows(i int) (rows []string) {
	k, s := h.all[i], h.style(h.at)
	if i == 0 || h.all[i-1].group != k.group {
		rows = append(rows, " "+s.Paint(terminal.Bold, groupWords[k.group]))
	}
	var names []string
	for _, name := range k.keys {
		names = append(names, keyName(name))
	}
	row := terminal.Pad("   "+strings.Join(names, ", "), 20) + k.help
	if k.why != "" {
		row = s.Paint(terminal.Dim, row+" – "+k.why)
	}
	return append(rows, s.selected(row, i == h.list.Cursor()))
}

func (h *help) title() string { return "keys: " + h.of.title() }

func (h *help) enter() tea.Cmd { return nil }

func (h *help) update(tea.Msg) tea.Cmd { return nil }

func (h *help) keys() []key {
	return append(listKeys(h.list), key{keys: []string{"enter"}, help: "use it", do: func() tea.Cmd {
		k := h.all[h.list.Cursor()]
		return tea.Batch(h.back(), h.use(k))
	}})
}

func (h *help) view(width, height int) ([]string, tea.Position) {
	h.at = width
	h.list.SetHeight(height)
	rows, y := h.list.View()
	if len(h.list.Rows(h.list.Cursor())) > 1 { // the heading
		y++
	}
	return rows, tea.Position{Y: min(y, height-1)}
}
