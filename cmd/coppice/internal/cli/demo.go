package cli

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/demo"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/render/terminal"
)

// demoCommand makes something to look at for people who have no conversations yet. It adds to
// existing sessions only with --force.
func demoCommand(a *app) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "demo [DIR]",
		Short: "Write some sessions to look at",
		Long: "Demo writes sessions with branches, tool calls, a compaction, an image, labels,\n" +
			"a fork and a continuation, dated over the last days, and prints the directory.\n" +
			"DIR defaults to the directory of the sessions. If it has sessions, pass --force\n" +
			"to add to them. A second demo is never added.",
		Example:           "  coppice demo /tmp/demo && export COPPICE_HOME=/tmp/demo",
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runDemo(cmd.Context(), args, force) },
	}
	cmd.Flags().BoolVar(&force, "force", false, "add to the sessions that are there")
	return a.withJSON(cmd)
}

// demoJSON is what demo --json prints.
type demoJSON struct {
	Dir      string         `json:"dir"`
	Sessions []demo.Session `json:"sessions"`
}

// runDemo writes into a directory that need not be the home in the settings, so that trying
// things out leaves nothing behind.
func (a *app) runDemo(ctx context.Context, args []string, force bool) error {
	at := strings.Join(args, "")
	dir := cmp.Or(at, a.settings.Get(home.SettingDir).Value)
	return a.withHomeAt(ctx, at, true, func(h *home.Home) error {
		made, err := demo.Write(ctx, h, time.Now(), force)
		switch {
		case err != nil && len(made) > 0:
			return hinted(err, "remove what was written before you try again: "+a.removeDemo(at, made))
		case home.KindOf(err) == home.KindExists && force:
			return hinted(err, "coppice demo DIR writes elsewhere")
		case home.KindOf(err) == home.KindExists:
			return hinted(err, "coppice demo DIR writes elsewhere, --force adds to these")
		}
		if err != nil || a.flags.json {
			return a.asJSON(demoJSON{dir, made}, err)
		}
		a.sayDemo(dir, made)
		return a.print("%s", dir)
	})
}

// removeDemo returns the command that removes sessions of a demo in a directory.
func (a *app) removeDemo(at string, made []demo.Session) string {
	var ids, flags []string
	for _, s := range made {
		ids = append(ids, s.ID)
	}
	if at != "" {
		flags = []string{"--dir", at}
	}
	return a.command("rm", ids, flags...)
}

// sayDemo says what was made and what to try.
func (a *app) sayDemo(dir string, made []demo.Session) {
	a.say("%s in %s:", render.Counted(len(made), "session", "sessions"), dir)
	for _, s := range made {
		a.say("  %s  %s", a.paint(dim, terminal.Pad(render.OneLine(s.ID, 10), 10)), s.About)
	}
	a.say("")
	a.say("Try:")
	command := a.command
	if dir != a.settings.Get(home.SettingDir).Value {
		command = a.elsewhere().command
		if abs, err := a.settings.Absolute(dir); err == nil {
			dir = abs
		}
		a.say("  %s", a.paint(bold, "export COPPICE_HOME="+plain.ShellWord(dir)))
	}
	for _, verb := range []string{
		"ls", "tree nightly", "show nightly", "context tokenizer", "search tokenizer", "export kyoto --format html -o kyoto.html",
	} {
		a.say("  %s", a.paint(bold, command(verb, nil)))
	}
}
