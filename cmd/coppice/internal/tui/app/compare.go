package app

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/list"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
)

// compare shows two branches side by side: what they add up to, and what was done on them, step by
// step.
type compare struct {
	listing
	id    string
	ends  [2]string // the entries whose paths are compared
	found *home.CompareResult
	rows  []comparedRow
	cols  int
	right bool // the selected side
}

// comparedRow is a row with two sides.
type comparedRow struct {
	name  string // of a sum; "" for a step
	sides [2]string
	entry [2]string // what Enter opens
	same  bool
}

func newCompare(app *App, session, a, b string) *compare {
	r := &compare{listing: listing{base: newBase(app), head: 2}, id: session, ends: [2]string{a, b}}
	r.list = list.New(r.item)
	return r
}

func (r *compare) title() string { return "compare" }

func (r *compare) session() string { return r.id }

func (r *compare) enter() tea.Cmd {
	return r.call(func(ctx context.Context) tea.Msg {
		found, err := r.Home.Entries.Compare(ctx, home.CompareRequest{Session: r.id, A: r.ends[0], B: r.ends[1], Brief: true})
		if err != nil {
			return err
		}
		return found
	})
}

func (r *compare) update(msg tea.Msg) tea.Cmd {
	if found, ok := msg.(*home.CompareResult); ok {
		isFirst := r.found == nil
		r.found, r.rows = found, comparedRows(found)
		r.list.SetCount(len(r.rows))
		r.list.SetHeight(max(r.height-4, 1))
		if isFirst {
			r.nextDifference(1)
		}
	}
	return nil
}

// comparedRows returns the sums and then the steps.
func comparedRows(c *home.CompareResult) (rows []comparedRow) {
	two := [2]*home.CompareSide{c.SideA, c.SideB}
	add := func(name string, say func(s *home.CompareSide) (text, entry string)) {
		row := comparedRow{name: name}
		for i, side := range two {
			row.sides[i], row.entry[i] = say(side)
		}
		if none := [2]string{}; row.sides != none && row.sides != [2]string{"-", "-"} {
			row.same = row.sides[0] == row.sides[1]
			rows = append(rows, row)
		}
	}
	number := func(name string, n func(s *home.CompareSide) string) {
		add(name, func(s *home.CompareSide) (string, string) { return n(s), "" })
	}
	number("entries", func(s *home.CompareSide) string { return render.Thousands(s.Entries) })
	number("prompts", func(s *home.CompareSide) string { return render.Count(int64(s.Prompts)) })
	number("tools", func(s *home.CompareSide) string { return toolWords(s) })
	number("errors", func(s *home.CompareSide) string { return render.Count(int64(s.Errors)) })
	number("tokens", func(s *home.CompareSide) string { return render.Count(int64(s.Tokens)) })
	number("cost", func(s *home.CompareSide) string {
		if s.CostMicroUSD == 0 {
			return "-"
		}
		return render.Money(s.CostMicroUSD)
	})
	for i := range max(len(c.SideA.Files), len(c.SideB.Files)) {
		name := "files"
		if i > 0 {
			name = " "
		}
		add(name, func(s *home.CompareSide) (string, string) {
			if i >= len(s.Files) {
				return "", ""
			}
			f := s.Files[i]
			return fmt.Sprintf("%s (%s)", render.OneLine(f.Path, 0), render.Counted(f.Changes, "change", "changes")), f.Entry
		})
	}
	add("answer", func(s *home.CompareSide) (string, string) { return render.OneLine(s.Answer, 0), s.AnswerEntry })
	for i := range c.Steps {
		step := &c.Steps[i]
		row := comparedRow{same: step.Same}
		for side, s := range [2]*home.PathStep{step.A, step.B} {
			if s != nil {
				row.sides[side], row.entry[side] = stepWords(s), s.Entry
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func toolWords(s *home.CompareSide) string {
	var words []string
	for _, tool := range s.Tools {
		words = append(words, fmt.Sprintf("%s %d", render.OneLine(tool.Name, 0), tool.Count))
	}
	return strings.Join(words, ", ")
}

func stepWords(s *home.PathStep) string {
	gist := render.OneLine(s.Gist, 0)
	switch {
	case s.Kind == "prompt":
		return "❯ " + gist
	case s.Kind == "call" && s.Failed:
		return "✗ " + gist + " – " + render.OneLine(s.Outcome, 0)
	case s.Kind == "call":
		return "→ " + gist
	case s.Kind == "answer":
		return "  " + gist
	}
	return s.Kind + ": " + gist
}

func stepColour(text string) terminal.Colour {
	switch {
	case strings.HasPrefix(text, "❯"):
		return terminal.Green
	case strings.HasPrefix(text, "✗"):
		return terminal.Red
	case strings.HasPrefix(text, "→"):
		return terminal.Yellow
	}
	return ""
}

// nameWidth is the width of the names of sums.
const nameWidth = 9

// item draws a row: a sum under its name, or a step of either side.
func (r *compare) item(i int) []string {
	row, s := &r.rows[i], r.style(r.cols)
	first := i == 0 || row.name != "" != (r.rows[i-1].name != "")
	side := (r.cols - nameWidth - 3) / 2
	middle := s.Paint(terminal.Dim, "│")
	if row.same {
		middle = s.Paint(terminal.Dim, "=")
	}
	line := s.Paint(terminal.Dim, terminal.Pad(" "+row.name, nameWidth))
	for n := range 2 {
		line += r.side(row, i, n, side)
		if n == 0 {
			line += " " + middle + " "
		}
	}
	if first && row.name == "" {
		return []string{"", line}
	}
	return []string{line}
}

func (r *compare) side(row *comparedRow, i, n, width int) string {
	s := r.style(width)
	text := ansi.Truncate(row.sides[n], width, "…")
	if i == r.list.Cursor() && r.right == (n == 1) {
		if !s.Color {
			text = " " + text // there is a mark before it
		}
		return terminal.Pad(s.selected(ansi.Truncate(text, width, "…"), true), width)
	}
	colour := stepColour(text)
	if row.same {
		colour = terminal.Dim
	}
	return terminal.Pad(s.Paint(colour, text), width)
}

func (r *compare) view(width, height int) ([]string, tea.Position) {
	r.cols = width
	s := r.style(width)
	if r.found == nil {
		return []string{"", s.Paint(terminal.Dim, "  Comparing …")}, tea.Position{}
	}
	r.list.SetHeight(max(height-2, 1))
	rows, y := r.list.View()
	return append([]string{r.heading(s), ""}, rows...), tea.Position{Y: y + 2}
}

// heading says what is compared, and where they part.
func (r *compare) heading(s style) string {
	part := "they share nothing"
	if r.found.Ancestor != "" {
		part = "they share " + render.Counted(r.found.Shared, "entry", "entries") + " up to " + render.OneLine(render.ShortID(r.found.Ancestor), 0)
	}
	names := render.OneLine(render.ShortID(r.found.A), 0) + " and " + render.OneLine(render.ShortID(r.found.B), 0)
	return " " + s.Paint(terminal.Bold, names) + s.Paint(terminal.Dim, ": "+part)
}

func (r *compare) keys() []key {
	side := func(right bool) func() tea.Cmd {
		return func() tea.Cmd { r.right = right; return nil }
	}
	open := key{keys: []string{"enter"}, help: "open there", do: r.openEntry}
	if r.entry() == "" {
		open.why = "this is a sum, not an entry"
	}
	part := key{keys: []string{"p"}, help: "where they part", group: windows, do: func() tea.Cmd { return r.App.open(newTranscript(r.App, r.id, r.found.Ancestor)) }}
	if r.found == nil || r.found.Ancestor == "" {
		part.why = "they share nothing"
	}
	keys := append(listKeys(r.list), open,
		key{keys: []string{"tab"}, help: "other side", group: moving, do: func() tea.Cmd { return side(!r.right)() }},
		key{keys: []string{"left"}, help: "left side", group: moving, rare: true, do: side(false)},
		key{keys: []string{"right"}, help: "right side", group: moving, rare: true, do: side(true)},
		key{keys: []string{"n"}, help: "next difference", group: moving, do: func() tea.Cmd { r.nextDifference(1); return nil }},
		key{keys: []string{"N"}, help: "previous difference", group: moving, rare: true, do: func() tea.Cmd { r.nextDifference(-1); return nil }},
		part,
	)
	return append(keys, r.actions([]string{r.id})...)
}

// entry returns the selected entry: that of the other side, if this one has none.
func (r *compare) entry() string {
	if len(r.rows) == 0 {
		return ""
	}
	row := &r.rows[r.list.Cursor()]
	if r.right && row.entry[1] != "" || row.entry[0] == "" {
		return row.entry[1]
	}
	return row.entry[0]
}

func (r *compare) openEntry() tea.Cmd { return r.App.open(newTranscript(r.App, r.id, r.entry())) }

// nextDifference goes to the next step that only one side has, or that they did differently.
func (r *compare) nextDifference(step int) {
	for i := r.list.Cursor() + step; i >= 0 && i < len(r.rows); i += step {
		if row := &r.rows[i]; row.name == "" && !row.same {
			r.list.Select(i)
			return
		}
	}
}

func (r *compare) click(x, y int) tea.Cmd {
	i := r.list.At(y - r.head)
	if i < 0 {
		return nil
	}
	r.right = x > nameWidth+(r.cols-nameWidth)/2
	r.list.Select(i)
	return nil
}
