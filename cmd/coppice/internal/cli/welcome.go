package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
)

// welcomeJSON is what coppice --json prints when it is called alone.
type welcomeJSON struct {
	Home     *home.Overview      `json:"home"` // null if there is none yet
	Programs []home.KnownProgram `json:"programs"`
}

// welcome is what the program says when it is called without a command: what there
// is on this machine, and what to type next.
func (a *app) welcome(ctx context.Context) error {
	var w welcomeJSON
	var short render.Names
	err := a.withHome(ctx, false, func(h *home.Home) (err error) {
		found, err := h.Transfer.Programs(ctx)
		if err != nil {
			return err
		}
		w.Programs = found.Programs
		if w.Home, err = h.Sessions.Overview(ctx); err != nil || a.flags.json {
			return err
		}
		short, err = namesIn(ctx, h, w.Home.Latest)
		return err
	})
	if err != nil && kindOfError(err) == home.KindNotFound {
		w.Programs, err = a.settings.Programs().Programs, nil
	}
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(w)
	}
	lines := append(a.welcomeHome(w.Home, short), a.welcomePrograms(w)...)
	for i, line := range lines {
		if !strings.HasPrefix(line, " ") {
			lines[i] = a.wrap(line, "")
		}
	}
	lines = append(lines, "", "Everything else:",
		a.next("chat", "talk to a model"), a.next("help", "all commands"))
	return a.printText(strings.Join(lines, "\n"))
}

// next is a command to type and what it does.
func (a *app) next(verb, about string) string {
	command := a.command(verb, nil)
	line := "  " + a.paint(bold, terminal.Pad(command, 28)) + "  " + a.paint(dim, about)
	if width := a.width(); width > 0 && ansi.StringWidth(line) > width {
		line = "  " + a.paint(bold, command) + "\n    " + a.paint(dim, about)
	}
	return line
}

// welcomeHome says what there is, and ends with the commands that a person who sees it for the
// first time would want.
func (a *app) welcomeHome(o *home.Overview, short render.Names) []string {
	if o == nil || o.Sessions == 0 {
		return []string{"Coppice keeps the conversations of humans, models and tools. There are none here yet."}
	}
	lines := []string{render.Counted(o.Sessions, "session", "sessions") + " in " + o.Dir + ". The latest:"}
	now := time.Now()
	for i := range o.Latest {
		s := &o.Latest[i]
		id, when := "  "+a.paint(cyan, terminal.Pad(short.Shown(s.Name), 12))+"  ", "  "+a.paint(dim, a.when(s.Updated, now))
		room := 56
		if width := a.width(); width > 0 {
			room = max(min(room, width-ansi.StringWidth(id+when)), 8)
		}
		lines = append(lines, id+render.OneLine(titleWithMarks(*s), room)+when)
	}
	return append(lines, "",
		a.next("show last", "read the latest"),
		a.next("ls", "list them all"),
		a.next("search WORDS", "find what was said"))
}

// welcomePrograms offers what other agents left on this machine: for most people that is how
// they get their first sessions.
func (a *app) welcomePrograms(w welcomeJSON) []string {
	if len(w.Programs) == 0 {
		if w.Home != nil && w.Home.Sessions > 0 {
			return nil
		}
		return []string{
			"", "Nothing of other agents was found on this machine. Begin with:",
			a.next("demo", "some sessions to look at"),
			a.next("import FILE", "a transcript in any of forty formats"),
			a.next("new", "a session of your own"),
		}
	}
	news := 0
	var lines []string
	for _, p := range w.Programs {
		line := "  " + terminal.Pad(p.Title, 16) + "  " + render.Counted(p.Files, "file", "files") + ", " + render.Bytes(p.Bytes)
		if p.New > 0 && p.New < p.Files {
			line += fmt.Sprintf(", %d of them new or changed", p.New)
		}
		lines = append(lines, line)
		news += p.New
	}
	if news == 0 {
		lines = append([]string{"", "Other agents keep conversations on this machine. All of them are in:"}, lines...)
		return append(lines, "", a.next("import --all --watch", "bring in what comes next"))
	}
	lines = append([]string{"", "Other agents keep conversations on this machine:"}, lines...)
	return append(lines, "", a.next("import --all", "bring them in; nothing is changed there"))
}
