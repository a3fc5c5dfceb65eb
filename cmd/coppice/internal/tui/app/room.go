package app

import (
	"context"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/list"
	"github.com/coppice-dev/coppice/home"
)

// room is a part of the UI that fills the screen, but for the first and the last row.
type room interface {
	core() *base
	title() string
	// enter is called when the room comes to the front, and when something that it shows may
	// have been changed: it reads again what it needs.
	enter() tea.Cmd
	// update handles a message: what a call brought back, or a key that is not one of keys.
	update(msg tea.Msg) tea.Cmd
	// keys returns what can be done now, the most useful first.
	keys() []key
	// view draws the room. cursor is where the selection is.
	view(width, height int) (rows []string, cursor tea.Position)
}

// typist is a room in which text is typed while typing reports true. Keys that are text then go to
// update, and the others are used as ever.
type typist interface {
	room
	typing() bool
}

// pointed is a room that can be used with a mouse. x and y count from its first column and row.
type pointed interface {
	room
	wheel(x, y, rows int) tea.Cmd
	click(x, y int) tea.Cmd
}

// key is something to do, and the keys that do it.
type key struct {
	keys []string // as bubbletea names them; the first is shown
	help string   // what it does, in a word or two
	why  string   // why it cannot be done now; "" if it can
	rare bool     // only the help lists it, not the bar
	// group is where the help lists it.
	group group
	do    func() tea.Cmd
}

// group is a part of the help.
type group int

const (
	here group = iota // what only this room has
	moving
	reading
	acting    // on the session
	branching // and acting on entries
	windows
	later // what cannot be done now
)

// groupWords are the headings of the help.
var groupWords = map[group]string{
	here: "Here", moving: "Moving", reading: "Reading and finding", acting: "The session", branching: "Entries and branches",
	windows: "Windows", later: "Not now",
}

// in puts keys into a group, unless they have one.
func (g group) in(keys ...key) []key {
	for i := range keys {
		if keys[i].group == here {
			keys[i].group = g
		}
	}
	return keys
}

// base is what all rooms have: the UI, and calls that end when the room is left.
type base struct {
	*App
	ctx    context.Context
	cancel context.CancelFunc
	find   *finding
}

func newBase(a *App) base {
	b := base{App: a, find: &finding{}}
	b.ctx, b.cancel = context.WithCancel(a.ctx)
	return b
}

func (b *base) core() *base { return b }

func (b *base) finder() *finding { return b.find }

// listing is a room that shows a list, which the mouse scrolls and points at.
type listing struct {
	base
	list *list.List
	head int // how many rows are above the list
}

func (l *listing) wheel(_, _, rows int) tea.Cmd {
	l.list.Scroll(rows)
	return nil
}

func (l *listing) click(_, y int) tea.Cmd {
	if i := l.list.At(y - l.head); i >= 0 {
		l.list.Select(i)
	}
	return nil
}

// roomMsg is a message for one room.
type roomMsg struct {
	to *base
	tea.Msg
}

// call runs f beside the UI. What it returns comes to the room's update, if the room is still
// there; an error is also shown to the user.
func (b *base) call(f func(ctx context.Context) tea.Msg) tea.Cmd {
	return func() tea.Msg { return roomMsg{b, f(b.ctx)} }
}

// only is a place for one call at a time.
type only struct {
	cancel context.CancelFunc
	calls  atomic.Int32 // that have not ended
}

// busy reports whether a call is under way.
func (o *only) busy() bool { return o.calls.Load() > 0 }

// stop cancels what was called in the place.
func (o *only) stop() {
	if o.cancel != nil {
		o.cancel()
	}
}

// callOnly is call, and cancels what was called before in the same place: the answer to a question
// that was changed since is not wanted any more.
func (b *base) callOnly(place *only, f func(ctx context.Context) tea.Msg) tea.Cmd {
	place.stop()
	ctx, cancel := context.WithCancel(b.ctx)
	place.cancel = cancel
	place.calls.Add(1)
	return func() tea.Msg {
		defer cancel()
		defer place.calls.Add(-1)
		msg := f(ctx)
		if ctx.Err() != nil {
			return nil
		}
		return roomMsg{b, msg}
	}
}

// onward is a message with what to do next, for a call that the UI must go on with.
type onward func() tea.Cmd

// A notice is a message with words for the user.
type notice string

// act runs an action beside the UI, after those before it. It is not cancelled when the room is
// left.
func (a *App) act(f func(ctx context.Context) (done, error)) tea.Cmd {
	return a.inTurn(func(ctx context.Context, topics []string) tea.Msg {
		d, err := f(ctx)
		if err != nil {
			return err
		}
		return acted{d, a.missing(ctx, topics)}
	})
}

// inTurn runs something that changes the home when what was begun before has ended. topics are the
// sessions that rooms are about.
func (a *App) inTurn(f func(ctx context.Context, topics []string) tea.Msg) tea.Cmd {
	before, ended, topics := a.acting, make(chan struct{}), a.topics()
	a.acting = ended
	return func() tea.Msg {
		defer close(ended)
		if before != nil {
			<-before
		}
		return f(a.ctx, topics)
	}
}

// missing returns those of some sessions that are not in the home any more.
func (a *App) missing(ctx context.Context, ids []string) (gone []string) {
	for _, id := range ids {
		if _, err := a.Home.Sessions.Get(ctx, home.SessionRequest{Session: id}); home.KindOf(err) == home.KindNotFound {
			gone = append(gone, id)
		}
	}
	return gone
}
