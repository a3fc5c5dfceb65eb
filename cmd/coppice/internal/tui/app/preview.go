package app

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render/terminal"
)

// previewColumns is the width from which on there is room for a preview.
const previewColumns = 120

// preview shows the selected entry beside a tree.
type preview struct {
	asked string // the entry that was asked for last
	place only
	found *home.Row
	drawn []string
	width int
}

// previewed is an entry to preview.
type previewed struct {
	id  string
	row *home.Row
}

func (p *preview) hasPreview(width int) bool { return width >= previewColumns }

// look reads an entry, unless that was done.
func (p *preview) look(b *base, session, id string) tea.Cmd {
	if id == p.asked || id == "" || !p.hasPreview(b.width) {
		return nil
	}
	p.asked = id
	return b.callOnly(&p.place, func(ctx context.Context) tea.Msg {
		result, err := b.Home.Entries.Rows(ctx, home.RowsRequest{Session: session, At: id, Count: 1, Limit: 16 << 10})
		if err != nil || len(result.Rows) == 0 {
			return nil // the tree says enough
		}
		return previewed{id, &result.Rows[0]}
	})
}

func (p *preview) put(msg previewed) {
	if msg.id == p.asked {
		p.found, p.drawn = msg.row, nil
	}
}

// rows draws the entry.
func (p *preview) rows(s style) []string {
	if p.found == nil {
		return nil
	}
	if p.drawn == nil || p.width != s.Width {
		p.width = s.Width
		p.drawn = terminal.Entry(s.Style, &p.found.Entry, terminal.EntryOptions{
			Label: p.found.Label, Subagents: p.found.Subagents, Thinking: terminal.Folded,
		})
		for i := range p.drawn {
			p.drawn[i] = " " + p.drawn[i]
		}
	}
	return p.drawn
}
