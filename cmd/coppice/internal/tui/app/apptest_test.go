package app_test

import (
	"context"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/app"
	"github.com/coppice-dev/coppice/home"
	_ "github.com/coppice-dev/coppice/home/all"
	"github.com/coppice-dev/coppice/session"
)

// driver is somebody at a terminal. The UI runs as it does there, but for the drawing: the screen is
// what it would draw.
type driver struct {
	*testing.T
	home *home.Home
	app  tea.Model
	msgs chan tea.Msg
	cmds sync.WaitGroup // that run
	quit bool
}

const (
	patience = time.Minute // for a machine that is busy
	columns  = 100
	rows     = 30
)

func newHome(t *testing.T) *home.Home {
	t.Helper()
	return openHome(t, t.TempDir(), &home.Options{Create: true})
}

func openHome(t *testing.T, dir string, o *home.Options) *home.Home {
	t.Helper()
	h, err := home.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// drive opens the UI on a home.
func drive(t *testing.T, h *home.Home, change ...func(*app.Options)) *driver {
	t.Helper()
	o := app.Options{Home: h, Program: func(args ...string) *exec.Cmd { return exec.Command("true", args...) }}
	for _, f := range change {
		f(&o)
	}
	ctx, cancel := context.WithCancel(t.Context())
	d := &driver{T: t, home: h, app: app.New(ctx, o), msgs: make(chan tea.Msg)}
	d.Cleanup(func() { // nothing may write into the home when it is closed and removed
		cancel()
		go func() {
			d.cmds.Wait()
			close(d.msgs)
		}()
		for range d.msgs { // nobody reads them any more
		}
	})
	d.run(d.app.Init())
	d.size(columns, rows)
	return d
}

func (d *driver) run(cmd tea.Cmd) {
	if cmd != nil {
		d.cmds.Go(func() { d.msgs <- cmd() })
	}
}

func (d *driver) handle(msg tea.Msg) {
	switch msg := msg.(type) {
	case nil:
		return
	case tea.QuitMsg:
		d.quit = true
		return
	case tea.BatchMsg:
		for _, cmd := range msg {
			d.run(cmd)
		}
		return
	}
	if all := reflect.ValueOf(msg); all.Kind() == reflect.Slice && all.Type().Elem() == reflect.TypeFor[tea.Cmd]() { // tea.Sequence
		d.cmds.Go(func() {
			for i := range all.Len() {
				d.msgs <- all.Index(i).Interface().(tea.Cmd)()
			}
		})
		return
	}
	var cmd tea.Cmd
	d.app, cmd = d.app.Update(msg)
	d.run(cmd)
}

func (d *driver) size(width, height int) { d.handle(tea.WindowSizeMsg{Width: width, Height: height}) }

var special = map[string]rune{
	"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight,
	"pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd, "tab": tea.KeyTab, "space": tea.KeySpace,
	"delete": tea.KeyDelete, "backspace": tea.KeyBackspace,
}

// press presses keys: names of keys, or single characters.
func (d *driver) press(keys ...string) {
	d.Helper()
	for _, k := range keys {
		if code, ok := special[k]; ok {
			press := tea.KeyPressMsg{Code: code}
			if k == "space" {
				press.Text = " "
			}
			d.handle(press)
			continue
		}
		if letter, ok := strings.CutPrefix(k, "ctrl+"); ok {
			d.handle(tea.KeyPressMsg{Code: []rune(letter)[0], Mod: tea.ModCtrl})
			continue
		}
		d.handle(tea.KeyPressMsg{Code: []rune(k)[0], Text: k})
	}
}

// types types a text.
func (d *driver) types(text string) {
	d.Helper()
	for _, r := range text {
		d.press(string(r))
	}
}

// screen returns what is on the screen, without colours.
func (d *driver) screen() string {
	return ansi.Strip(d.app.(*app.App).View().Content)
}

// until waits until the screen is as it should be.
func (d *driver) until(what string, is func(screen string) bool) string {
	d.Helper()
	late := time.After(patience)
	for {
		screen := d.screen()
		if is(screen) {
			return screen
		}
		select {
		case msg := <-d.msgs:
			d.handle(msg)
		case <-late:
			d.Fatalf("the screen does not show %s:\n%s", what, screen)
		}
	}
}

// sees waits until the screen has all of these texts.
func (d *driver) sees(texts ...string) string {
	d.Helper()
	return d.until(strings.Join(texts, ", "), func(screen string) bool {
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	})
}

// loses waits until the screen does not have a text any more.
func (d *driver) loses(text string) string {
	d.Helper()
	return d.until("no more "+text, func(screen string) bool { return !strings.Contains(screen, text) })
}

// talk makes a session in which somebody says something and is answered, and returns its id.
func talk(t *testing.T, h *home.Home, title string, said ...string) string {
	t.Helper()
	made, err := h.Sessions.Create(t.Context(), home.CreateRequest{Title: title})
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range said {
		role := session.RoleUser
		if i%2 == 1 {
			role = session.RoleAssistant
		}
		message := session.MessageEntry{Role: role, Content: []session.Content{session.Text(text)}}
		if _, err := h.Entries.Append(t.Context(), home.AppendRequest{Session: made.Session, Message: &message}); err != nil {
			t.Fatal(err)
		}
	}
	return made.Session
}

// fits reports rows of the screen that are too many or too long.
func (d *driver) fits(width, height int) {
	d.Helper()
	lines := strings.Split(d.screen(), "\n")
	if len(lines) > max(height, 3) {
		d.Errorf("%d×%d: %d rows", width, height, len(lines))
	}
	for _, line := range lines {
		if n := ansi.StringWidth(line); n > width {
			d.Errorf("%d×%d: a row has %d columns: %s", width, height, n, line)
		}
	}
}
