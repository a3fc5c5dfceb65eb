package app

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/list"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/render/terminal"
	"github.com/coppice-dev/coppice/upkeep"
)

// redact is where secrets are looked at before they are taken out.
type redact struct {
	listing
	ids   []string
	found *upkeep.RedactResult
	kept  map[string]bool // the ids of secrets that stay
	width int
	rows  []redactRow
}

// redactRow is a secret, or a place where it is.
type redactRow struct {
	secret *upkeep.Secret
	place  *upkeep.Place // nil for the secret itself
}

func newRedact(a *App, ids []string) *redact {
	r := &redact{listing: listing{base: newBase(a), head: 2}, ids: ids, kept: map[string]bool{}}
	r.list = list.New(r.row)
	return r
}

func (r *redact) title() string { return "redact" }

func (r *redact) session() string {
	if at := r.list.Cursor(); at < len(r.rows) && r.rows[at].place != nil {
		return r.rows[at].place.Session
	}
	return r.ids[0]
}

func (r *redact) enter() tea.Cmd {
	return r.call(func(ctx context.Context) tea.Msg {
		found, err := r.Home.Upkeep.Redact(ctx, home.RedactRequest{Sessions: r.ids})
		if err != nil {
			return err
		}
		return found
	})
}

func (r *redact) update(msg tea.Msg) tea.Cmd {
	if found, ok := msg.(*upkeep.RedactResult); ok {
		was := r.kept
		r.found, r.rows, r.kept = found, nil, map[string]bool{}
		for i := range found.Secrets {
			s := &found.Secrets[i]
			if was[s.ID] {
				r.kept[s.ID] = true
			}
			r.rows = append(r.rows, redactRow{secret: s})
			for k := range s.Places {
				r.rows = append(r.rows, redactRow{secret: s, place: &s.Places[k]})
			}
		}
		r.list.SetCount(len(r.rows))
	}
	return nil
}

func (r *redact) keys() []key {
	none, why, at := "", "", ""
	switch {
	case r.found == nil:
		none = "it is still looking"
	case len(r.found.Secrets) == 0:
		none = "nothing was found"
	case len(r.kept) == len(r.found.Secrets):
		why = "all of them are kept"
	}
	row := redactRow{}
	if i := r.list.Cursor(); i < len(r.rows) {
		row = r.rows[i]
	}
	if row.place == nil || row.place.Session == "" || row.place.Entry == "" {
		at = "no place is selected"
	}
	keep := key{keys: []string{"space"}, help: "keep", why: none, do: r.toggle}
	if row.secret != nil && r.kept[row.secret.ID] {
		keep.help = "take"
	}
	return append(listKeys(r.list),
		key{keys: []string{"X"}, help: "take them out", why: cmp.Or(none, why), do: r.askApply},
		keep,
		key{keys: []string{"enter"}, help: "show it", why: at, do: func() tea.Cmd {
			return r.open(newTranscript(r.App, row.place.Session, row.place.Entry))
		}},
	)
}

// toggle keeps the secret of the row, or takes it after all.
func (r *redact) toggle() tea.Cmd {
	if id := r.rows[r.list.Cursor()].secret.ID; r.kept[id] {
		delete(r.kept, id)
	} else {
		r.kept[id] = true
	}
	return nil
}

func (r *redact) askApply() tea.Cmd {
	words := "take out " + render.Counted(len(r.found.Secrets)-len(r.kept), "secret", "secrets")
	if len(r.kept) > 0 {
		words += fmt.Sprintf(" and keep %d", len(r.kept))
	}
	words += ", from the whole home? This cannot be undone"
	keep := slices.Sorted(maps.Keys(r.kept))
	r.confirm(words, "take out", func() tea.Cmd {
		return r.act(func(ctx context.Context) (done, error) {
			result, err := r.Home.Upkeep.Redact(ctx, home.RedactRequest{Sessions: r.ids, Keep: keep, Apply: true})
			if err != nil {
				return done{}, err
			}
			what := "took out " + render.Counted(len(result.Secrets), "secret", "secrets")
			if result.Receipt != nil && len(result.Receipt.Left) > 0 {
				what += fmt.Sprintf("; %d places still have one: :redact says which", len(result.Receipt.Left))
			}
			return done{what: what, why: "secrets are taken out for good"}, nil
		})
	})
	return nil
}

func (r *redact) row(i int) []string {
	st, row := r.style(r.width), r.rows[i]
	text := ""
	if row.place == nil {
		choice, colour := " take  ", terminal.Yellow
		if r.kept[row.secret.ID] {
			choice, colour = " keep  ", terminal.Dim
		}
		text = st.Paint(colour, choice+render.OneLine(row.secret.Kind, 30)) + "  " + render.OneLine(row.secret.Preview, 0) +
			st.Paint(terminal.Dim, "  "+render.Counted(row.secret.Count, "time", "times"))
	} else {
		text = "         " + render.ShortID(row.place.Session) + "  " + render.ShortID(row.place.Entry) + "  " +
			st.Paint(terminal.Dim, render.OneLine(placeWords(row.place), 0))
	}
	return []string{st.selected(text, i == r.list.Cursor())}
}

// placeWords says where a secret is.
func placeWords(p *upkeep.Place) string {
	words := plain.Line(p.Path)
	switch {
	case p.Session == "":
		words = "content that nothing refers to"
	case p.File != "":
		words += " in the copy " + plain.Line(p.File)
	case p.Kept:
		words += " in what an import kept of its source"
	case words == "":
		words = "a damaged line"
	}
	if p.Count > 1 {
		words += fmt.Sprintf(" ×%d", p.Count)
	}
	return words
}

func (r *redact) view(width, height int) ([]string, tea.Position) {
	r.width = width
	st := r.style(width)
	head := "looking for secrets …"
	if r.found != nil {
		head = render.Counted(len(r.found.Secrets), "secret", "secrets") + " found in " + render.Counted(len(r.ids), "session", "sessions")
		if len(r.found.Secrets) > 0 {
			head += "; Space keeps one, X takes the others out of everything in this home"
		}
	}
	r.list.SetHeight(max(height-2, 1))
	rows, y := r.list.View()
	return append([]string{" " + st.Paint(terminal.Bold, head), ""}, rows...), tea.Position{Y: y + 2}
}
