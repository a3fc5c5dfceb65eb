package app

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/render/terminal"
)

// paneColumns is the width from which on two rooms are side by side: a list and the conversation that
// is selected in it, or a conversation and the room that it was opened from.
const paneColumns = 140

// guide is a room in which something is selected that another room shows, its companion. The companion
// is beside it from some width on. To go there, it is opened like any other room.
type guide interface {
	room
	companion() *transcript // nil if there is none now
	panesFrom() int
	// release lets the companion go.
	release()
}

// panes are the rooms on the screen.
type panes struct {
	left, right room // right is nil if there is only one, or nothing is selected in it
	cols        int  // of the left one
	inRight     bool // the right one has the keys
}

// panes returns which rooms are on the screen now.
func (a *App) panes() panes {
	top := a.room()
	if g, ok := top.(guide); ok && a.width >= g.panesFrom() {
		p := panes{left: g, cols: leftColumns(a.width)}
		if c := g.companion(); c != nil {
			p.right = c
		}
		return p
	}
	if _, ok := top.(*transcript); ok && a.width >= paneColumns {
		return panes{left: a.rooms[len(a.rooms)-2], right: top, cols: leftColumns(a.width), inRight: true}
	}
	return panes{left: top, cols: a.width}
}

// leftColumns is how wide the left one of two panes is: the right one gets no more than can be read
// with ease.
func leftColumns(width int) int { return max(60, width*2/5, width-terminal.Measure-3) }

// shows reports whether a room is on the screen.
func (a *App) shows(r room) bool {
	p := a.panes()
	return p.left == r || p.right == r
}

// columns returns how wide a room is now.
func (b *base) columns() int {
	p := b.panes()
	switch {
	case p.left.core() == b:
		return p.cols
	case p.right != nil && p.right.core() == b:
		return b.width - p.cols - 1
	}
	return b.width
}

// style is how to draw in a room. What is selected stands out in the one that has the keys.
func (b *base) style(width int) style {
	s := b.App.style(width)
	s.quiet = b.room().core() != b
	return s
}

// all returns the rooms, and those that are only beside one.
func (a *App) all() []room {
	all := slices.Clone(a.rooms)
	for _, r := range a.rooms {
		if g, ok := r.(guide); ok && g.companion() != nil && !slices.Contains(all, room(g.companion())) {
			all = append(all, g.companion())
		}
	}
	return all
}

// back goes to the room before. It stays in the first one. A companion goes back to being beside its
// guide, if there is room for it.
func (a *App) back() tea.Cmd {
	n := len(a.rooms)
	if n == 1 {
		return nil
	}
	top := a.room()
	a.rooms = a.rooms[:n-1]
	g, ok := a.room().(guide)
	switch {
	case !ok || room(g.companion()) != top:
		top.core().cancel()
	case a.width < g.panesFrom():
		g.release()
	}
	return a.room().enter()
}

// paneKeys is the key that goes from the right pane to the left one.
func (a *App) paneKeys() []key {
	if p := a.panes(); p.inRight {
		return []key{{keys: []string{"tab"}, help: "to the " + p.left.title(), group: windows, do: a.back}}
	}
	return nil
}

// resized tells the rooms on the screen that it has another size.
func (a *App) resized(msg tea.WindowSizeMsg) tea.Cmd {
	p := a.panes()
	cmds := []tea.Cmd{p.left.update(msg)}
	if p.right != nil {
		cmds = append(cmds, p.right.update(msg))
	}
	return tea.Batch(cmds...)
}

// drawPanes draws what is between the first and the last row.
func (a *App) drawPanes(height int) (rows []string, cursor tea.Position) {
	p := a.panes()
	rows, cursor = a.draw(p.left, p.cols, height)
	if p.cols == a.width {
		return rows, cursor
	}
	width := a.width - p.cols - 1
	var right []string
	if p.right != nil {
		var at tea.Position
		if right, at = a.draw(p.right, width, height); p.inRight {
			cursor = tea.Position{X: at.X + p.cols + 1, Y: at.Y}
		}
	}
	return a.style(a.width).beside(rows, p.cols, right, height), cursor
}

// draw draws a room, and shows what is looked for in it.
func (a *App) draw(r room, width, height int) ([]string, tea.Position) {
	rows, cursor := r.view(width, height)
	if seeks, ok := r.(seeker); ok {
		s := a.style(width)
		for i := range rows {
			rows[i] = seeks.finder().mark(s, rows[i])
		}
	}
	return rows, cursor
}

// head is the first row: where one is, and above the right pane what it shows.
func (a *App) head() string {
	s, p := a.style(a.width), a.panes()
	if p.cols == a.width {
		return a.way(a.rooms, a.width, terminal.Bold)
	}
	rooms, left, right := a.rooms, terminal.Bold, terminal.Dim
	if p.inRight {
		rooms, left, right = rooms[:len(rooms)-1], terminal.Dim, terminal.Bold
	}
	row := terminal.Pad(ansi.Truncate(a.way(rooms, p.cols, left), p.cols, "…"), p.cols) + s.Paint(terminal.Dim, "│")
	if p.right != nil {
		row += " " + s.Paint(right, plain.Line(p.right.title()))
	}
	return row
}

// mouse passes the wheel and clicks to the room below the pointer, and lets the keys of the bar be
// clicked.
func (a *App) mouse(msg tea.MouseMsg) tea.Cmd {
	m := msg.Mouse()
	_, isClick := msg.(tea.MouseClickMsg)
	if isClick && m.Y == a.height-1 && a.prompt == nil {
		a.notice = ""
		for _, k := range a.bar() {
			if m.X >= k.from && m.X < k.to {
				return a.use(k.key)
			}
		}
		return nil
	}
	if a.prompt != nil {
		return nil
	}
	p := a.panes()
	r, x := p.left, m.X
	if m.X >= p.cols {
		r, x = p.right, m.X-p.cols-1
	}
	under, ok := r.(pointed)
	if !ok || x < 0 {
		return nil
	}
	if isClick {
		a.notice = ""
		if p.inRight && r == p.left {
			return a.back() // the next click is for what is under it
		}
		return tea.Batch(a.focus(r), under.click(x, m.Y-1))
	}
	if _, ok := msg.(tea.MouseWheelMsg); !ok {
		return nil
	}
	step := 3
	if m.Button == tea.MouseWheelUp {
		step = -step
	}
	return under.wheel(x, m.Y-1, step)
}

// focus gives the keys to a room on the screen.
func (a *App) focus(r room) tea.Cmd {
	if r == a.room() {
		return nil
	}
	return a.open(r)
}

// pane is the conversation that is beside a room in which something is selected.
type pane struct {
	want         wanted
	asked        only
	conversation *transcript
}

// wanted is what is to be shown: a session, an entry in it, and a text that was searched for. The zero
// value is nothing.
type wanted struct{ session, entry, text string }

// wantedNow is the message that something has been selected for a moment.
type wantedNow wanted

// selectedFor is how long something must be selected before it is shown beside a list, so that
// scrolling through many reads none of them.
const selectedFor = 60 * time.Millisecond

func (p *pane) companion() *transcript { return p.conversation }

func (p *pane) release() {
	if p.conversation != nil {
		p.conversation.cancel()
	}
	p.conversation, p.want = nil, wanted{}
}

// showBeside shows something beside a room that has the keys, when it has been wanted for a moment.
func (b *base) showBeside(g guide, p *pane, now wanted) tea.Cmd {
	if b.width < g.panesFrom() || b.room() != room(g) || now == p.want {
		return nil
	}
	if now.session == "" {
		p.asked.stop()
		p.release()
		return nil
	}
	p.want = now
	return b.callOnly(&p.asked, func(ctx context.Context) tea.Msg {
		wait(ctx, selectedFor, nil)
		return wantedNow(now)
	})
}

// readWanted reads what has been selected for a moment, unless it is there already.
func (s *sessions) readWanted(w wanted) tea.Cmd {
	if w != s.want || s.conversation != nil && s.conversation.id == w.session && w.entry == "" {
		return nil
	}
	return s.begin(&s.pane, w).enter()
}

// begin begins to read what is wanted.
func (b *base) begin(p *pane, w wanted) *transcript {
	p.asked.stop()
	p.release()
	r := newTranscript(b.App, w.session, w.entry)
	r.cancel()
	r.ctx, r.cancel = context.WithCancel(b.ctx) // it ends with the room that it is beside
	if w.text != "" {
		r.find.text, r.find.at = w.text, inOpened
	}
	p.conversation, p.want = r, w
	return r
}

// beside puts two columns of rows side by side, with a line between them.
func (s style) beside(left []string, width int, right []string, height int) []string {
	rows := make([]string, height)
	line := s.Paint(terminal.Dim, "│")
	for i := range rows {
		var l, r string
		if i < len(left) {
			l = ansi.Truncate(left[i], width, "…")
		}
		if i < len(right) {
			r = right[i]
		}
		rows[i] = strings.TrimRight(terminal.Pad(l, width)+line+r, " ")
	}
	return rows
}
