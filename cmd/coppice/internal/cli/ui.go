package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	tui "github.com/coppice-dev/coppice/cmd/coppice/internal/tui/app"
	"github.com/coppice-dev/coppice/home"
)

// talkingCommands talk to the user while they run.
var talkingCommands = []string{"chat", "resume", "follow", "serve", "ipc", "mcp", "config edit"}

// showUI shows the terminal UI, if there is a terminal for it and a home to show.
func (a *app) showUI(ctx context.Context, f *liveFlags) (shown bool, err error) {
	keys := terminalOf(a.stdin)
	if keys == nil || a.screen == nil || a.flags.json || a.getenv("TERM") == "dumb" {
		return false, nil
	}
	notices := make(chan string, 1)
	h, err := a.openHome(ctx, "", home.Options{Notify: func(n home.Notice) { a.tellUI(notices, n) }})
	if home.KindOf(err) == home.KindNotFound {
		return false, nil // there is nothing to show: the welcome says what to do
	}
	if err != nil {
		return true, a.hintHome(err)
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	self, err := os.Executable()
	if err != nil {
		return true, err
	}
	where, err := a.settings.Absolute("")
	if err != nil {
		return true, err
	}
	which, err := a.watched(ctx, h, f)
	if err != nil {
		return true, err
	}
	a.keyed.Store(true)
	defer a.keyed.Store(false)
	a.isOpenAllDay.Store(true)
	defer a.isOpenAllDay.Store(false)
	o := tui.Options{
		Notices: notices,
		Home:    h, Color: a.color, Run: a.runOnPage, Commands: a.commandsOfUI(),
		Program: func(args ...string) *exec.Cmd {
			cmd := exec.Command(self, args...)
			cmd.Env = append(os.Environ(), "COPPICE_HOME="+where)
			return cmd
		},
		Viewers: tui.Viewers{
			Editor: func(path string) *exec.Cmd { return onFile(a.editorCommand(), path) },
			Pager: func(path string) *exec.Cmd {
				if pager := a.pagerCommand(); pager != "" {
					return onFile(pager, path)
				}
				return nil
			},
		},
	}
	return true, importing(ctx, h, which, func(ctx context.Context) error { return tui.Run(ctx, o, keys, a.screen) })
}

// tellUI passes a notice that no room shows to the UI. While the UI is busy, the first notice
// waits, and later ones are dropped.
func (a *app) tellUI(notices chan<- string, n home.Notice) {
	if n.Kind != home.ImportFailed {
		return
	}
	select {
	case notices <- strings.Join(a.noticeRows(n), " "):
	default:
	}
}

// commandsOfUI returns the commands that can be typed in the UI.
func (a *app) commandsOfUI() (list []tui.Command) {
	for _, cmd := range a.rootCommand().Commands() {
		if cmd.Hidden {
			continue
		}
		talks := slices.Contains(talkingCommands, cmd.Name())
		list = append(list, tui.Command{Name: cmd.Name(), About: cmd.Short, Talks: talks})
	}
	return list
}

// runOnPage runs a command line in the same process, and prints for a reader who has a page of
// some width before him. What it asks for is not answered. The home and the colours are no flags of
// the command line: what it says to type next repeats those that were given.
func (a *app) runOnPage(ctx context.Context, args []string, out io.Writer, width int) error {
	where, err := a.settings.Absolute("")
	if err != nil {
		return err
	}
	getenv := func(name string) string {
		switch {
		case name == "COPPICE_HOME":
			return where
		case name == "NO_COLOR" && a.color:
			return ""
		case name == "NO_COLOR":
			return "1"
		}
		return a.getenv(name)
	}
	other := &app{talk: newTalk(out, out, getenv), stdin: strings.NewReader(""), getenv: getenv}
	other.page = width
	if code := other.run(ctx, args); code != 0 && ctx.Err() == nil {
		return errors.New("failed")
	}
	return nil
}
