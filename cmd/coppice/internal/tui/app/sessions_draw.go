package app

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/render/terminal"
)

// besideWidth is from how many columns on something is beside a list: the card of a session, or the
// entry that is selected in a tree.
const besideWidth = 120

// hasCard reports whether the card is beside the list. A wider screen has the conversation there.
func (s *sessions) hasCard() bool { return s.App.width >= besideWidth && s.App.width < paneColumns }

func (s *sessions) view(width, height int) ([]string, tea.Position) {
	before := s.width
	s.width = width
	if s.hasCard() {
		s.width = width - width*2/5 - 1
	}
	if s.width != before {
		s.rows = nil
	}
	s.list.SetHeight(max(height-1, 1))
	rows, y := s.list.View()
	if s.hasHeader(s.list.Cursor()) {
		y++
	}
	if s.list.Count() == 0 {
		rows = s.emptyRows()
	}
	head, x := s.boxRow(width)
	cursor := tea.Position{X: 0, Y: y + 1}
	if s.inBox {
		cursor = tea.Position{X: x, Y: 0}
	}
	if s.width < width {
		st := s.style(width - s.width - 1)
		st.Width--
		card := s.card.lines(st)
		for i := range card {
			card[i] = " " + card[i]
		}
		rows = st.beside(rows, s.width, card, max(height-1, 1))
	}
	return append([]string{head}, rows...), cursor
}

// boxRow is the row with what is searched for, and how much there is.
func (s *sessions) boxRow(width int) (string, int) {
	st := s.style(width)
	var facts []string
	if n := len(s.marked); n > 0 {
		facts = append(facts, fmt.Sprintf("%d marked", n))
	}
	if s.shelf.across {
		facts = append(facts, "in several texts each")
	}
	facts = append(facts, s.size())
	right := st.Paint(terminal.Dim, strings.Join(facts, " · "))
	room := max(width-ansi.StringWidth(right)-5, 8)
	before := " " + st.Paint(terminal.Bold, "/") + " "
	if s.inBox || s.box.text() != "" {
		text, at := s.box.view(st, room)
		return before + terminal.Pad(text, room) + "  " + right, 3 + at
	}
	hint := "search what was said · agent: project: tag: file: tool: since:"
	return before + st.Paint(terminal.Dim, terminal.Pad(ansi.Truncate(hint, room, "…"), room)) + "  " + right, 3
}

// size says how many sessions there are.
func (s *sessions) size() string {
	f := s.shelf
	n := f.total
	words := render.Counted(n, "session", "sessions")
	switch {
	case f.isSearch && f.cut && n > 0:
		words = "the newest of more"
	case f.cut:
		words = "the latest " + render.Thousands(n)
	case !f.known && n > 0:
		words = render.Thousands(max(n-1, 0)) + "+ sessions"
	}
	return words
}

// emptyRows are in the place of a list without rows.
func (s *sessions) emptyRows() []string {
	f := s.shelf
	var words []string
	switch {
	case !f.known:
		words = []string{"reading …"}
	case f.question.text != "":
		words = append([]string{"nothing was found"}, f.nothing...)
	case !f.question.withEmpty:
		words = []string{
			"there are no sessions yet", "",
			":import --all   brings in those of the agents on this machine",
			":chat           begins one",
			"e               shows those in which nothing was said",
		}
	default:
		words = []string{"there are no sessions yet"}
	}
	rows := []string{""}
	for _, line := range words {
		for _, row := range terminal.Wrap(plain.Line(line), max(s.width-2, 16)) {
			rows = append(rows, "  "+row)
		}
	}
	return rows
}

// groupOf returns the group of a row: the words for the order, if that has no groups.
func (s *sessions) groupOf(row *sessionRow) string {
	if row == nil || row.hit != nil {
		return ""
	}
	if row.Group != "" {
		return row.Group
	}
	return s.shelf.question.order.words()
}

// timeOf returns the time that says where a session is in the list.
func (s *sessions) timeOf(row *sessionRow) time.Time {
	if s.shelf.question.order.by == string(index.ByCreated) && row.hit == nil {
		return row.Created
	}
	return row.Updated
}

// hasHeader reports whether a row begins a group.
func (s *sessions) hasHeader(i int) bool {
	at, under := s.shelf.resolve(i)
	row := s.shelf.at(at)
	if under != nil || row == nil || row.hit != nil {
		return false
	}
	return at == 0 || s.groupOf(s.shelf.at(at-1)) != s.groupOf(row)
}

// row draws a session, with the name of its group if it is the first of it. The list asks for a
// row many times to find out how high it is, so it is drawn once.
func (s *sessions) row(i int) []string {
	rows, ok := s.rows[i]
	if !ok {
		rows = s.drawRow(i)
		if s.rows == nil {
			s.rows = make(map[int][]string)
		}
		s.rows[i] = rows
	}
	if i != s.list.Cursor() {
		return rows
	}
	at := 0
	if s.hasHeader(i) {
		at = 1
	}
	rows = slices.Clone(rows)
	rows[at] = s.style(s.width).selected(rows[at], true)
	return rows
}

func (s *sessions) drawRow(i int) (rows []string) {
	st := s.style(s.width)
	row := s.shelf.row(i)
	if row == nil {
		return []string{st.Paint(terminal.Dim, "   …")}
	}
	if s.hasHeader(i) {
		rows = append(rows, s.header(st, row, i == 0))
	}
	rows = append(rows, s.line(st, row))
	if row.hit != nil {
		rows = append(rows, s.snippet(st, row.hit))
	}
	return rows
}

// header is the name of a group. The first one also says what the numbers are.
func (s *sessions) header(st style, row *sessionRow, first bool) string {
	name := " " + render.OneLine(s.groupOf(row), max(s.width-20, 8))
	if !first {
		return st.Paint(terminal.Bold, name)
	}
	numbers := ""
	for i, n := range s.shelf.question.order.numbers(s.width) {
		if i == 0 {
			numbers = n.name // which may be wider than its column
		} else {
			numbers += fmt.Sprintf(" %*s", n.width, n.name)
		}
	}
	return st.Paint(terminal.Bold, terminal.Pad(name, max(s.width-len(numbers), 0))) + st.Paint(terminal.Dim, numbers)
}

// From so many columns on, a row says how many tokens a session has, and what it cost.
const (
	tokensWidth = 60
	costWidth   = 70
)

// column is a part of a row.
type column struct {
	text   string
	width  int
	right  bool
	colour terminal.Colour
}

// line draws a session on a line. A narrow line leaves out what says least.
func (s *sessions) line(st style, row *sessionRow) string {
	columns := []column{{text: ageOf(s.timeOf(row), s.Now()), width: 8, colour: terminal.Dim}}
	after := []column{}
	if s.width >= 60 {
		columns = append(columns, column{text: row.Agent, width: 11, colour: terminal.Cyan})
	}
	if s.width >= 76 && (!s.shelf.question.byProject || row.Pinned || row.depth > 0) {
		columns = append(columns, column{text: row.Project, width: 12, colour: terminal.Blue})
	}
	if row.hit == nil {
		for _, n := range s.shelf.question.order.numbers(s.width) {
			after = append(after, column{text: n.of(&row.SessionInfo), width: n.width, right: true})
		}
	} else {
		after = append(after, column{text: render.Counted(row.hit.Hits, "hit", "hits"), width: 9, right: true})
	}
	if tags := strings.Join(row.Tags, " "); tags != "" && s.width >= costWidth {
		after = append([]column{{text: tags, width: min(ansi.StringWidth(tags), s.width/5), colour: terminal.Yellow}}, after...)
	}
	text := " "
	if slices.Contains(s.marked, row.ID) {
		text = st.Paint(terminal.Yellow, "●")
	}
	for _, c := range columns {
		text += c.draw(st) + " "
	}
	text += strings.Repeat("  ", row.depth) + s.marks(st, row)
	end := ""
	for _, c := range after {
		end += " " + c.draw(st)
	}
	room := max(s.width-ansi.StringWidth(text)-ansi.StringWidth(end), 8)
	title := render.OneLine(row.Title, room)
	if title == "" {
		title = render.Untitled
	}
	if row.Named {
		title = st.Paint(terminal.Bold, title)
	}
	return text + terminal.Pad(ansi.Truncate(title, room, "…"), room) + end
}

// marks are before a title: what is special about a session.
func (s *sessions) marks(st style, row *sessionRow) string {
	var marks string
	switch {
	case row.Forks+row.Subagents == 0:
	case s.shelf.isOpen(row.ID):
		marks += "▾ "
	default:
		marks += fmt.Sprintf("▸%d ", row.Forks+row.Subagents)
	}
	if row.depth > 0 {
		marks = st.Paint(terminal.Dim, row.Relation+" ") + marks
	}
	if row.Pinned {
		marks += st.Paint(terminal.Yellow, "★ ")
	}
	if row.Archived {
		marks += st.Paint(terminal.Dim, "archived ")
	}
	if row.Problems > 0 {
		marks += st.Paint(terminal.Red, "damaged ")
	}
	return marks
}

func (c *column) draw(st style) string {
	text := render.OneLine(c.text, c.width)
	room := max(c.width-ansi.StringWidth(text), 0)
	if c.colour != "" {
		text = st.Paint(c.colour, text)
	}
	if c.right {
		return strings.Repeat(" ", room) + text
	}
	return text + strings.Repeat(" ", room)
}

// ageOf is how long ago something was, in a narrow column.
func ageOf(at, now time.Time) string {
	d := now.Sub(at)
	switch {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	case d < 100*24*time.Hour:
		return fmt.Sprintf("%d d", int(d.Hours())/24)
	case d < 3*365*24*time.Hour:
		return fmt.Sprintf("%d mon", int(d.Hours())/24/30)
	}
	return fmt.Sprintf("%d y", int(d.Hours())/24/365)
}

func costOf(u *home.Usage) string {
	if u == nil || u.Responses == 0 {
		return ""
	}
	return home.ShortCost(u)
}

// snippet shows where the words of a search were found.
func (s *sessions) snippet(st style, hit *home.Hit) string {
	var b strings.Builder
	b.WriteString("          ")
	who := hit.Role
	if hit.Tool != "" {
		who = hit.Tool
	}
	if who != "" {
		b.WriteString(st.Paint(terminal.Dim, render.OneLine(who, 16)+": "))
	}
	from := 0
	for _, h := range hit.Highlights {
		if h[0] < from || h[1] > len(hit.Snippet) || h[1] < h[0] {
			continue
		}
		b.WriteString(plain.Flat(hit.Snippet[from:h[0]]))
		b.WriteString(highlighted(st, plain.Flat(hit.Snippet[h[0]:h[1]])))
		from = h[1]
	}
	b.WriteString(plain.Flat(hit.Snippet[from:]))
	return ansi.Truncate(b.String(), s.width, "…")
}

// highlighted shows what was searched for. Without colours, brackets do.
func highlighted(st style, text string) string {
	if !st.Color {
		return "[" + text + "]"
	}
	return st.Paint(terminal.Yellow, text)
}
