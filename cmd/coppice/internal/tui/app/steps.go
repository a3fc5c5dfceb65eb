package app

import (
	"cmp"
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/list"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
)

// done is the message that something was done. It becomes a step of the log.
type done struct {
	what    string // in words, such as "renamed “Garden”"; "" is nothing to speak of
	silent  bool   // the user knows it already
	changed []part // a step that changed the same can only be undone after those that came later
	undo    *undo  // nil if it cannot be undone
	why     string // why not
}

// part is what a step changes: something of a session, or all of it if that is "".
type part struct{ session, of string }

// undo takes back what was done.
type undo struct {
	do    func(ctx context.Context) error
	named string // what is taken back; "" are the words of what was done
	now   string // what holds then
}

// step is something that was done in this run.
type step struct {
	done
	at     time.Time
	undone bool
	failed string // why it could not be undone when that was tried
}

// acted is done, and says which sessions of rooms are not there any more.
type acted struct {
	done
	gone []string
}

// undone is the message that a step was taken back, or could not be.
type undone struct {
	step *step
	err  error
	gone []string
}

// record adds what was done to the log.
func (a *App) record(d done) {
	if d.what != "" {
		a.steps = append(a.steps, &step{done: d, at: a.Now()})
	}
}

// whyNotUndo says why a step cannot be undone; "" if it can.
func (a *App) whyNotUndo(s *step) string {
	switch {
	case s.undone:
		return "it was undone"
	case s.undo == nil:
		return cmp.Or(s.why, "it cannot be undone")
	case s.failed != "":
		return s.failed
	}
	for _, later := range slices.Backward(a.steps) {
		if later == s {
			break
		}
		if !later.undone && later.undo != nil && later.overlaps(s) {
			return "undo “" + later.what + "” first, which changed the same"
		}
	}
	return ""
}

// overlaps reports whether two steps changed the same.
func (s *step) overlaps(other *step) bool {
	for _, p := range s.changed {
		for _, q := range other.changed {
			if p.session == q.session && (p.of == q.of || p.of == "" || q.of == "") {
				return true
			}
		}
	}
	return false
}

// lastStep returns the step that undo takes back, or nil.
func (a *App) lastStep() *step {
	for _, s := range slices.Backward(a.steps) {
		if a.whyNotUndo(s) == "" {
			return s
		}
	}
	return nil
}

// undoStep undoes a step.
func (a *App) undoStep(s *step) tea.Cmd {
	s.undone = true // so that the next undo takes back another one
	return a.inTurn(func(ctx context.Context, topics []string) tea.Msg {
		err := s.undo.do(ctx)
		return undone{s, err, a.missing(ctx, topics)}
	})
}

// sayUndone says what was taken back, and what holds now.
func (a *App) sayUndone(u undone) tea.Cmd {
	a.leave(u.gone)
	if u.err != nil {
		a.fail(u.err)
		u.step.undone, u.step.failed = false, "it was tried: "+a.notice
		return a.again()
	}
	words := "undone: " + cmp.Or(u.step.undo.named, u.step.what)
	if now := u.step.undo.now; now != "" {
		words += "; " + now
	}
	a.say(words)
	return a.again()
}

// stepKeys are undo and the log, which all rooms have.
func (a *App) stepKeys() []key {
	undoes := key{keys: []string{"u"}, help: "undo", group: acting, why: "nothing was done here that can be undone"}
	if last := a.lastStep(); last != nil {
		undoes = key{keys: []string{"u"}, help: "undo: " + last.what, group: acting, do: func() tea.Cmd { return a.undoStep(last) }}
	}
	log := key{keys: []string{"L"}, help: "log of what was done, with undo", group: acting, rare: true, do: func() tea.Cmd { return a.open(newStepLog(a)) }}
	if _, isLog := a.room().(*stepLog); isLog {
		return []key{undoes}
	}
	return []key{undoes, log}
}

// stepLog is the room with what was done in this run, the latest first. Each step can be undone
// there, or it says why not.
type stepLog struct {
	listing
	cols int
}

func newStepLog(a *App) *stepLog {
	r := &stepLog{listing: listing{base: newBase(a), head: 1}}
	r.list = list.New(func(i int) []string { return []string{r.row(i)} })
	return r
}

func (r *stepLog) title() string { return "log" }

func (r *stepLog) enter() tea.Cmd { return nil }

func (r *stepLog) update(tea.Msg) tea.Cmd { return nil }

// step returns a step by its place in the list.
func (r *stepLog) step(i int) *step { return r.steps[len(r.steps)-1-i] }

func (r *stepLog) keys() []key {
	r.list.SetCount(len(r.steps))
	undoes := key{keys: []string{"enter"}, help: "undo this one", group: acting, why: "nothing was done yet"}
	if len(r.steps) > 0 {
		one := r.step(r.list.Cursor())
		undoes.why = r.whyNotUndo(one)
		undoes.do = func() tea.Cmd { return r.undoStep(one) }
	}
	return append(listKeys(r.list), undoes)
}

func (r *stepLog) row(i int) string {
	s, one := r.style(r.cols), r.step(i)
	left := " " + s.Paint(terminal.Dim, one.at.Format(time.TimeOnly)) + "  "
	what, why := render.OneLine(one.what, 0), r.whyNotUndo(one)
	switch {
	case one.undone:
		what = s.Paint(terminal.Dim, "undone: "+what)
	case why != "":
		room := max(r.cols/2, r.cols-ansi.StringWidth(left+what)-4)
		what += s.Paint(terminal.Dim, "  – "+ansi.Truncate(why, room, "…"))
	}
	return s.selected(left+what, i == r.list.Cursor())
}

func (r *stepLog) view(width, height int) ([]string, tea.Position) {
	r.cols = width
	s := r.style(width)
	if len(r.steps) == 0 {
		return []string{"", s.Paint(terminal.Dim, "  Nothing was done yet. What you do in this run is listed here, to be undone.")}, tea.Position{Y: 1}
	}
	r.list.SetCount(len(r.steps))
	r.list.SetHeight(max(height-1, 1))
	rows, y := r.list.View()
	head := s.Paint(terminal.Dim, " what was done in this run, the latest first")
	return append([]string{head}, rows...), tea.Position{Y: y + 1}
}
