// Package chat is the conversation with a model on a terminal: a prompt, answers that are
// drawn as they arrive, and commands that begin with a slash. It has words and no rules;
// what it does is done by [home.Chat] and its turns.
//
// One goroutine, in Run, owns everything that is shown. Keys and the events of turns reach it
// through channels.
package chat

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/line"
	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/screen"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
)

// Options say what to talk about, and where.
type Options struct {
	Home    *home.Home
	Request home.ChatRequest
	// Prompt and Images are said first, if there are any.
	Prompt string
	Images []string

	// Keys is the terminal that is typed on, in raw mode.
	Keys   io.Reader
	Screen *screen.Screen
	Color  bool
	// Resized gets a value when the terminal has another size. Default: never.
	Resized <-chan os.Signal
	// Suspend stops the program until it is continued. Default: Ctrl-Z does nothing.
	Suspend func()
	// Edit has the person write in an editor, which begins with a text. Default: there is none.
	Edit func(text string) (string, error)
	// Explain words an error, and a hint if there is one.
	Explain func(error) (text, hint string)
}

// ui is a chat on a terminal.
type ui struct {
	o      Options
	screen *screen.Screen
	keys   <-chan []line.Key
	chat   *home.Chat
	editor line.Editor
	// recalled means that the history has what was said in other conversations.
	recalled bool
	finding  *finding // in the history, or nil

	images []string // that go with the next message
	pasted []string // of several lines: the files that they name are not meant
	queue  []string // what was typed ahead and waits for the end of the job
	// unheard is what was said during the turn and the model has not heard yet.
	unheard []unheard
	job     *job          // what is going on, or nil
	result  *agent.Result // of the call that ended last, or nil
	// isShared means that the person knows that another program writes to the session.
	isShared bool
	leaving  bool // Ctrl-C was pressed at an empty prompt
	done     bool
	failed   error // why the chat must end

	asking   *question
	trusting *home.Project // that the person is asked about
	trust    line.Editor   // the answer
	pending  []string      // finished rows that are not drawn yet
	drawn    time.Time
}

// question is a call that the person must decide about.
type question struct {
	call   *agent.Call
	about  *home.TurnQuestion
	editor line.Editor
	held   []home.TurnEvent // what happened since it was asked
	// editing means that the rules are in the editor, to be changed or confirmed.
	editing bool
}

// frame is the time between two drawings of a text that grows.
const frame = 40 * time.Millisecond

// Run talks until the person leaves or ctx ends.
func Run(ctx context.Context, o Options) error {
	u := &ui{o: o, screen: o.Screen, images: o.Images}
	u.keys = readKeys(ctx, o.Keys)
	c, typed, err := u.open(ctx, o.Request)
	if err != nil {
		return err
	}
	u.chat = c
	if err := c.AddFiles(o.Request.Context...); err != nil { // they are there already: a mistake is noticed
		return errors.Join(err, c.Close())
	}
	u.greet(ctx)
	typed(ctx)
	u.askTrust(ctx)
	if o.Prompt != "" {
		u.queue = slices.Insert(u.queue, 0, o.Prompt)
	}
	u.loop(ctx)
	return errors.Join(u.failed, u.chat.Close(), ctx.Err())
}

// loop waits for everything.
func (u *ui) loop(ctx context.Context) {
	ticker := time.NewTicker(frame)
	defer ticker.Stop()
	defer u.end()
	for {
		u.next(ctx)
		if u.done {
			return
		}
		u.draw()
		var tick <-chan time.Time
		if u.job != nil {
			tick = ticker.C
		}
		select {
		case <-ctx.Done():
			return
		case pressed, ok := <-u.keys:
			if !ok { // the terminal is gone
				return
			}
			for _, k := range pressed {
				u.press(ctx, k)
			}
		case e, ok := <-u.job.news():
			u.hear(ctx, e, ok)
		case <-u.o.Resized:
		case <-tick:
		}
	}
}

// readKeys reads what is typed until the terminal is gone.
func readKeys(ctx context.Context, r io.Reader) <-chan []line.Key {
	typed, keys := make(chan []byte), make(chan []line.Key)
	go func() {
		defer close(typed)
		for {
			buf := make([]byte, 4096)
			n, err := r.Read(buf)
			select {
			case typed <- buf[:n]:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	go func() {
		defer close(keys)
		var d line.Decoder
		for {
			var idle <-chan time.Time
			if d.Waits() {
				idle = time.After(line.EscapeTime)
			}
			var pressed []line.Key
			select {
			case b, ok := <-typed:
				if !ok {
					return
				}
				pressed = d.Add(b)
			case <-idle:
				pressed = d.Idle()
			}
			if len(pressed) == 0 {
				continue
			}
			select {
			case keys <- pressed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return keys
}

// next starts what was typed ahead, one after the other.
func (u *ui) next(ctx context.Context) {
	for u.job == nil && u.trusting == nil && len(u.queue) > 0 && !u.done {
		text := u.queue[0]
		u.queue = u.queue[1:]
		u.submit(ctx, text)
	}
}

// submit shows what was typed, and does it.
func (u *ui) submit(ctx context.Context, text string) {
	u.echo(text)
	name, isCommand := commandIn(text)
	command, tell, isShell := shellIn(text)
	switch {
	case isShell:
		u.shell(ctx, command, tell)
	case isCommand:
		u.command(ctx, name, strings.TrimSpace(strings.TrimPrefix(text, "/"+name)))
	case strings.TrimSpace(text) != "":
		u.say(ctx, text)
	}
}

// maxEcho is how many rows of a long message stay on the screen.
const maxEcho = 200

// commandIn returns the command that a text is. Text of several lines is none, nor is
// text that begins with a space.
func commandIn(text string) (name string, ok bool) {
	if !strings.HasPrefix(text, "/") || strings.Contains(text, "\n") {
		return "", false
	}
	name, _, _ = strings.Cut(text[1:], " ")
	return name, true
}

// press does what a key asks for.
func (u *ui) press(ctx context.Context, k line.Key) {
	if u.done {
		return
	}
	if u.asking != nil {
		u.answer(ctx, k)
		return
	}
	if u.trusting != nil && k.Kind != line.EOF {
		u.answerTrust(ctx, k)
		return
	}
	if u.finding != nil && u.find(k) {
		return
	}
	again := u.leaving
	u.leaving = false
	k = u.pastes(k)
	if u.editor.Press(k) {
		return
	}
	switch k.Kind {
	case line.Enter:
		u.enter(ctx, strings.TrimRight(u.editor.Submit(), " \n"))
	case line.Up:
		if u.recallEarlier(ctx) {
			u.editor.Press(k)
		}
	case line.Search:
		u.recallEarlier(ctx)
		u.finding = &finding{place: -1}
	case line.Edit:
		u.edit(u.editor.Text())
	case line.Tab:
		u.complete(ctx)
	case line.Interrupt:
		u.interrupt(again)
	case line.Escape:
		if u.job != nil {
			u.interrupt(false)
		}
	case line.EOF:
		if u.done = u.job == nil; !u.done {
			u.queue = append(u.queue, "/exit") // typed ahead
		}
	case line.Wipe:
		u.screen.Wipe()
	case line.Suspend:
		u.suspend()
	}
}

// enter takes what was typed.
func (u *ui) enter(ctx context.Context, text string) {
	switch {
	case text == "":
	case u.job != nil && worksNow(text):
		u.print(u.job.view.finish(u.style())...)
		u.job.view.last = ""
		u.submit(ctx, text)
	case u.job != nil:
		u.typeAhead(ctx, text)
	default:
		u.queue = append(u.queue, text)
	}
}

func (u *ui) suspend() {
	if u.o.Suspend == nil {
		return
	}
	u.screen.Update(u.pending, nil, screen.Cursor{}) // the shell writes where the live rows are
	u.pending = nil
	u.o.Suspend()
}

// interrupt ends the answer, or empties the prompt, or leaves: whichever comes first.
func (u *ui) interrupt(again bool) {
	switch {
	case u.job != nil:
		u.unsend()
		u.job.stop()
	case u.editor.Text() != "":
		u.editor.Drop()
	case again:
		u.done = true
	default:
		u.leaving = true
	}
}

// style is how things are drawn now.
func (u *ui) style() terminal.Style {
	columns, _ := u.screen.Size()
	return terminal.Style{Color: u.o.Color, Width: columns - 1, Now: time.Now()}
}

func (u *ui) paint(c terminal.Colour, text string) string { return u.style().Paint(c, text) }

func (u *ui) prompt() string { return u.paint(terminal.Bold+";"+terminal.Green, "›") + " " }

// print adds finished rows.
func (u *ui) print(rows ...string) { u.pending = append(u.pending, rows...) }

// note prints a dim line, or as many as it needs.
func (u *ui) note(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		for _, row := range terminal.Wrap(line, u.style().Width) {
			u.print(u.paint(terminal.Dim, row))
		}
	}
}

// fail prints what went wrong.
func (u *ui) fail(err error) {
	err = u.chat.Explain(err)
	text, hint := u.o.Explain(err)
	if errors.Is(err, home.ErrRemoved) {
		hint = "/new begins another"
	}
	before := "  ✗ "
	for _, row := range terminal.Wrap(render.OneLine(text, 0), u.style().Width-len("    ")) {
		u.print(u.paint(terminal.Red, before+row))
		before = "    "
	}
	if hint != "" {
		u.note("    " + hint)
	}
}

// draw brings the screen up to date.
func (u *ui) draw() {
	if u.job != nil && u.asking == nil && time.Since(u.drawn) < frame && len(u.pending) == 0 {
		return // the next tick will
	}
	u.drawn = time.Now()
	columns, height := u.screen.Size()
	live, c := u.liveRows(columns, height)
	u.screen.Update(u.pending, live, c)
	u.pending = nil
}

// liveRows are what may still change: a text that grows, what goes on, and the prompt.
func (u *ui) liveRows(columns, height int) (live []string, c screen.Cursor) {
	if u.job != nil && u.asking == nil {
		live = append(u.job.view.live(u.style()), "", u.paint(terminal.Dim, u.job.progress()))
		if u.finding == nil && u.editor.Text() == "" && len(u.unheard)+len(u.queue) == 0 {
			return live, screen.Cursor{Column: -1}
		}
	}
	for _, one := range u.unheard {
		live = append(live, u.paint(terminal.Dim, "› "+render.OneLine(one.text, columns-14)+" · queued"))
	}
	for _, text := range u.queue {
		live = append(live, u.paint(terminal.Dim, "› "+render.OneLine(text, columns-4)))
	}
	e, prompt := &u.editor, u.prompt()
	if u.trusting != nil {
		e, prompt = &u.trust, u.paint(terminal.Bold+";"+terminal.Yellow, "  use it? y yes · n no ›")+" "
	}
	if u.finding != nil {
		e, prompt = u.finding.row(), u.paint(terminal.Bold+";"+terminal.Yellow, u.finding.prompt())+" "
	}
	if u.asking != nil {
		live = append(live, u.asking.subject(u.style()))
		e, prompt = &u.asking.editor, u.paint(terminal.Bold+";"+terminal.Yellow, u.asking.prompt())+" "
	}
	rows, row, column := e.Rows(prompt, columns, max(height-len(live)-2, 3))
	c = screen.Cursor{Row: len(live) + row, Column: column}
	live = append(live, rows...)
	if u.leaving {
		live = append(live, u.paint(terminal.Dim, "  Ctrl-C again leaves"))
	}
	return live, c
}

// end leaves the screen in order.
func (u *ui) end() {
	if u.job != nil {
		u.job.stop()
		if u.asking != nil {
			u.close(u.asking)
		}
		for e := range u.job.events {
			u.print(u.job.view.hear(e.Event, u.style())...)
		}
		u.print(u.job.view.end(u.style())...)
		u.job = nil
	}
	u.leaving = false
	u.screen.Update(u.pending, nil, screen.Cursor{})
	u.pending = nil
}
