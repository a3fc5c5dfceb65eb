// Package app is the terminal UI: what coppice shows when it is called alone on a terminal.
//
// It is a stack of rooms: the sessions, and from there a conversation, its tree, its context and so
// on. Escape goes back to the room before. A room is a struct with a [base]; it draws itself from
// what it has in memory and asks the home for more with base.call, which runs beside the UI and
// comes back as a message. Update never waits for anything, so a key is always answered at once.
//
// A room says which keys it has by keys. The bar at the bottom shows them, ? lists all of them, and
// one that cannot be used now says why. So there is nothing to remember, and no second list of keys
// to keep up to date.
//
// The package holds words and keys, and no rules: those are operations of package home, the same
// that the command line and the server use. Everything that is drawn passes through a plain.Writer
// once, in View, so what a session says can never act on the terminal.
package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/picture"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/render/terminal"
)

// Options are what the UI works with.
type Options struct {
	Home *home.Home
	// Color paints what is drawn.
	Color bool
	// Program returns this program, to be called with arguments on the same home: for what needs
	// the terminal for itself.
	Program func(args ...string) *exec.Cmd
	// Viewers are the user's own programs to read a file with.
	Viewers Viewers
	// Run runs a command on the same home, and prints it for a page of a width.
	Run func(ctx context.Context, args []string, out io.Writer, width int) error
	// Notices are told to the user as they come; nil if there are none.
	Notices <-chan string
	// Commands has the commands that can be typed after a colon, with a line about each.
	Commands []Command
	// Now is the time; nil is time.Now. Tests have their own.
	Now func() time.Time
}

// Command is a command of the command line.
type Command struct {
	Name, About string
	// Talks says that it talks to the user while it runs, and so needs the terminal for itself.
	Talks bool
}

// Run shows the UI until the user leaves it.
func Run(ctx context.Context, o Options, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := New(ctx, o)
	defer a.close()
	// Signals end ctx: if bubbletea heard them, too, it could wait for itself for ever. The frame
	// rate is how long a change may wait to be drawn, and this is the highest there is.
	p := tea.NewProgram(a, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler(), tea.WithFPS(120))
	go func() {
		for {
			select {
			case text := <-o.Notices:
				p.Send(notice(text))
			case <-ctx.Done():
				return
			}
		}
	}()
	_, err := p.Run()
	if errors.Is(err, tea.ErrInterrupted) || ctx.Err() != nil {
		return nil // Ctrl-C is a way to leave
	}
	return err
}

// App is the UI, a model of bubbletea.
type App struct {
	Options
	ctx           context.Context
	width, height int
	rooms         []room
	prompt        *prompt       // the question in the last row, if one is asked
	notice        string        // what happened, until the next key
	failed        bool          // the notice is about an error
	steps         []*step       // what was done, the latest last
	acting        chan struct{} // closed when the last action has ended
	commands      history       // that were typed after a colon
	searches      history
	pictures      pictures
	titles        map[string]string // of the sessions that rooms are or were about
}

// New returns the UI with its first room.
func New(ctx context.Context, o Options) *App {
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &App{Options: o, ctx: ctx, width: 80, height: 24, titles: make(map[string]string), pictures: newPictures()}
	a.rooms = []room{newSessions(a)}
	return a
}

func (a *App) close() {
	for _, r := range a.all() {
		r.core().cancel()
	}
}

// style is how to draw for a width.
func (a *App) style(width int) style {
	return style{Style: terminal.Style{Color: a.Color, Width: width, Now: a.Now()}}
}

func (a *App) room() room { return a.rooms[len(a.rooms)-1] }

// Init implements tea.Model.
func (a *App) Init() tea.Cmd {
	if !a.Color { // an image is drawn in colours
		return a.room().enter()
	}
	return tea.Batch(a.room().enter(), tea.RequestTerminalVersion)
}

// open goes into a room.
func (a *App) open(r room) tea.Cmd {
	a.rooms = append(a.rooms, r)
	return tea.Batch(r.enter(), a.readTitle(topicOf(r)))
}

// titled is the title of a session.
type titled struct{ session, title string }

// readTitle reads the title of a session, which may have changed; "" is none.
func (a *App) readTitle(id string) tea.Cmd {
	if id == "" {
		return nil
	}
	return func() tea.Msg {
		info, err := a.Home.Sessions.Get(a.ctx, home.SessionRequest{Session: id})
		if err != nil {
			return nil // the room says what is wrong
		}
		return titled{id, info.Title}
	}
}

// again lets the room read again what it shows.
func (a *App) again() tea.Cmd {
	return tea.Batch(a.room().enter(), a.readTitle(topicOf(a.room())))
}

// topics returns the sessions that the rooms behind the first one are about.
func (a *App) topics() (ids []string) {
	for _, r := range a.rooms[1:] {
		if id := topicOf(r); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// topicOf returns the session that a room is about. A list is about none: one is selected there.
func topicOf(r room) string {
	s, ok := r.(subject)
	if _, isList := r.(*sessions); !ok || isList {
		return ""
	}
	return s.session()
}

// leave goes back to the room before the first one about a session that is gone.
func (a *App) leave(gone []string) {
	at := slices.IndexFunc(a.rooms, func(r room) bool { return slices.Contains(gone, topicOf(r)) })
	if at < 0 {
		return
	}
	for _, r := range a.rooms[at:] {
		r.core().cancel()
	}
	a.rooms = a.rooms[:at]
	if g, ok := a.room().(guide); ok && g.companion() != nil && g.companion().ctx.Err() != nil {
		g.release() // the session may come back
	}
}

// say tells the user what happened. It stays until the next key.
func (a *App) say(text string) { a.notice, a.failed = text, false }

// fail tells the user what went wrong, and what to do about it.
func (a *App) fail(err error) {
	if err == nil || errors.Is(err, context.Canceled) || a.ctx.Err() != nil {
		return
	}
	what := home.Describe(err)
	a.notice, a.failed = what.Message, true
	if what.Hint != "" {
		a.notice += "; " + what.Hint
	}
}

// Update implements tea.Model.
func (a *App) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		a.width, a.height = msg.Width, msg.Height
		return a, a.resized(msg)
	case roomMsg:
		return a, a.deliver(msg)
	case error:
		a.fail(msg)
		return a, nil
	case onward:
		return a, msg()
	case notice:
		a.say(string(msg))
		return a, nil
	case tea.TerminalVersionMsg:
		if picture.Knows(msg.Name) {
			return a, tea.Raw(picture.Ask())
		}
		return a, nil
	case uv.KittyGraphicsEvent:
		a.pictures.on = a.pictures.on || picture.IsYes(msg.Options, msg.Payload)
		return a, nil
	case vanished:
		return a, a.vanish(string(msg))
	case acted:
		a.leave(msg.gone)
		return a.Update(msg.done)
	case done:
		if !msg.silent {
			a.say(msg.what)
		}
		a.record(msg)
		return a, a.again()
	case undone:
		return a, a.sayUndone(msg)
	case titled:
		a.titles[msg.session] = msg.title
		return a, nil
	case tea.KeyPressMsg:
		return a, a.press(msg)
	case tea.PasteMsg:
		if a.prompt != nil {
			return a, a.prompt.update(msg)
		}
	case tea.MouseMsg:
		return a, a.mouse(msg)
	}
	if a.prompt != nil {
		return a, a.prompt.update(msg)
	}
	return a, a.room().update(msg)
}

// deliver hands a room what it asked for.
func (a *App) deliver(msg roomMsg) tea.Cmd {
	all := a.all()
	i := slices.IndexFunc(all, func(r room) bool { return r.core() == msg.to })
	if i < 0 {
		return nil // it was left
	}
	switch what := msg.Msg.(type) {
	case error:
		return a.failIn(all[i], what)
	case onward:
		return what()
	}
	return all[i].update(msg.Msg)
}

func (a *App) press(msg tea.KeyPressMsg) tea.Cmd {
	a.notice = ""
	if msg.String() == "ctrl+c" {
		return tea.Quit
	}
	if msg.String() == "ctrl+z" {
		return tea.Suspend
	}
	if a.prompt != nil {
		return a.prompt.press(msg)
	}
	if types, ok := a.room().(typist); ok && types.typing() && !isCommandKey(msg) {
		return types.update(msg)
	}
	for _, k := range a.keys() {
		if slices.Contains(k.keys, msg.String()) {
			return a.use(k)
		}
	}
	return a.room().update(msg)
}

// isCommandKey reports whether a key cannot be part of a text.
func isCommandKey(msg tea.KeyPressMsg) bool {
	switch msg.String() {
	case "up", "down", "pgup", "pgdown", "enter", "esc", "tab", "shift+tab", "ctrl+up", "ctrl+down":
		return true
	}
	return msg.Mod&tea.ModAlt != 0 || strings.HasPrefix(msg.Key().Keystroke(), "f") && len(msg.Text) == 0
}

func (a *App) use(k key) tea.Cmd {
	if k.why != "" {
		a.say(k.help + ": " + k.why)
		return nil
	}
	return k.do()
}

// keys returns what can be done now: what the room offers, and what all rooms have.
func (a *App) keys() []key {
	var keys []key
	if r, ok := a.room().(seeker); ok {
		first, begin := a.findKeys(r)
		isTaken := func(k key) bool {
			return slices.ContainsFunc(first, func(f key) bool { return f.keys[0] == k.keys[0] })
		}
		keys = append(append(first, slices.DeleteFunc(slices.Clone(r.keys()), isTaken)...), begin)
	} else {
		keys = slices.Clip(a.room().keys())
	}
	keys = append(append(keys, a.paneKeys()...), a.stepKeys()...)
	leave := key{keys: []string{"esc", "backspace"}, help: "back", do: a.back}
	if len(a.rooms) == 1 {
		leave = key{keys: []string{"q"}, help: "quit", do: func() tea.Cmd { return tea.Quit }}
	}
	return append(keys, windows.in(
		key{keys: []string{":"}, help: "command", do: a.askCommand},
		key{keys: []string{"?"}, help: "all keys", do: func() tea.Cmd { return a.open(newHelp(a, a.room())) }},
		leave)...)
}

// View implements tea.Model.
func (a *App) View() tea.View {
	body := max(a.height-2, 1)
	rows, cursor := a.drawPanes(body)
	var b bytes.Buffer
	w := plain.NewWriter(&b)
	write := func(row string) {
		_, _ = io.WriteString(w, ansi.Truncate(row, a.width, "…")) // it goes to memory
	}
	write(a.head())
	for i := range body {
		_, _ = io.WriteString(w, "\n")
		if i < len(rows) {
			write(rows[i])
		}
	}
	_, _ = io.WriteString(w, "\n")
	at := tea.Position{X: 0, Y: cursor.Y + 1}
	if cursor.Y >= 0 {
		at.X = cursor.X
	}
	switch {
	case a.prompt != nil:
		row, x := a.prompt.view(a.width)
		write(row)
		at = tea.Position{X: x, Y: a.height - 1}
	case a.notice != "":
		write(a.style(a.width).Paint(noticeColour(a.failed), plain.Line(a.notice)))
	default:
		write(a.barRow())
	}
	_ = w.Flush()
	v := tea.NewView(b.String())
	v.AltScreen, v.MouseMode, v.WindowTitle = true, tea.MouseModeCellMotion, "coppice"
	// Screen readers and magnifiers follow the cursor, so it is always on what is selected.
	v.Cursor = tea.NewCursor(at.X, at.Y)
	return v
}

func noticeColour(failed bool) terminal.Colour {
	if failed {
		return terminal.Red
	}
	return terminal.Green
}

// way is the way through some rooms to the last of them.
func (a *App) way(rooms []room, width int, last terminal.Colour) string {
	s := a.style(width)
	var names []string
	about := ""
	for _, r := range rooms {
		id := topicOf(r)
		if _, saysSo := r.(*transcript); id != "" && id != about && !saysSo {
			names = append(names, plain.Line(cmp.Or(a.titles[id], render.ShortID(id))))
		}
		about = id
		names = append(names, plain.Line(r.title()))
	}
	end := names[len(names)-1]
	where := wayTo(names[:len(names)-1], width-min(ansi.StringWidth(end), width/2))
	return s.Paint(terminal.Dim, where) + s.Paint(last, end)
}

// wayTo is the way through rooms with these names. Long names are shortened until it fits.
func wayTo(names []string, width int) (way string) {
	for longest := 60; longest >= 6; longest -= 6 {
		way = " coppice › "
		for _, name := range names {
			way += ansi.Truncate(name, longest, "…") + " › "
		}
		if ansi.StringWidth(way) <= width {
			break
		}
	}
	return way
}
