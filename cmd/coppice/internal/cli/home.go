package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/client"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// settle finds the settings. Flags win over everything else.
func (a *app) settle() (err error) {
	a.settings, err = home.LoadSettings(a.getenv,
		home.Setting{Key: home.SettingDir, Value: a.flags.dir, Origin: "flag --dir"},
		home.Setting{Key: home.SettingDir, Value: a.flags.server, Origin: "flag --server"},
		home.Setting{Key: home.SettingColor, Value: a.flags.color, Origin: "flag --color"},
		home.Setting{Key: home.SettingRedact, Value: a.flags.redact, Origin: "flag --redact"})
	if err != nil {
		return err
	}
	switch a.settings.Get(home.SettingColor).Value {
	case "always":
		a.color = true
	case "auto":
		a.color = a.getenv("NO_COLOR") == "" && a.isTerminal()
	}
	return nil
}

// withHome calls f with the home, which must exist unless create is true, and
// closes it.
func (a *app) withHome(ctx context.Context, create bool, f func(h *home.Home) error) error {
	return a.withHomeAt(ctx, "", create, f)
}

// onHome makes a command of what needs the home, which must exist, and nothing before it.
func (a *app) onHome(do func(ctx context.Context, h *home.Home, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.withHome(cmd.Context(), false, func(h *home.Home) error { return do(cmd.Context(), h, args) })
	}
}

// withHomeAt is withHome for another directory than the settings say.
func (a *app) withHomeAt(ctx context.Context, dir string, create bool, f func(h *home.Home) error) error {
	bar := a.newProgress()
	o := a.options(bar)
	o.Create = create
	h, err := a.openHome(ctx, dir, o)
	if err != nil {
		return a.hintHome(err)
	}
	outer, outerBar := a.home, a.bar
	a.home, a.bar = h, bar
	err = f(h)
	a.nameDamaged(ctx, h, err)
	a.home, a.bar = outer, outerBar
	bar.done()
	return errors.Join(err, h.Close())
}

// options has the home tell a person what it notices, and how far it has come. What it tells
// takes the place of the bar.
func (a *app) options(bar *progress) home.Options {
	return home.Options{Settings: a.settings, Progress: bar.show, Notify: func(n home.Notice) { bar.done(); a.sayNotice(n) }}
}

// nameDamaged finds out how to name the session that an error and its hint speak of.
func (a *app) nameDamaged(ctx context.Context, h *home.Home, err error) {
	if broken, ok := errors.AsType[*session.Error](err); ok && broken.Name != "" && (errors.Is(broken, session.ErrCorrupt) || errors.Is(broken, home.ErrIncomplete)) {
		a.short = render.Names{broken.Name: a.nameOf(ctx, h, broken.Name)}
	}
}

// openHome opens the home in a directory or on another machine; "" is where the settings say.
func (a *app) openHome(ctx context.Context, where string, o home.Options) (*home.Home, error) {
	o.Settings = a.settings
	server := cmp.Or(where, a.settings.Get(home.SettingDir).Value)
	if !home.IsAway(server) {
		return home.Open(ctx, where, &o)
	}
	token, err := a.settings.Token(ctx)
	if err != nil {
		return nil, err
	}
	return client.Open(ctx, server, &client.Options{Home: o, Token: token})
}

// hintHome says what to do about a home that does not exist.
func (a *app) hintHome(err error) error {
	if home.KindOf(err) == home.KindNotFound {
		return hinted(err, a.command("new", nil)+" begins a session there, "+a.command("demo", nil)+" makes something to look at; --dir and COPPICE_HOME choose another place")
	}
	return err
}

// sayNotice words what the floor noticed.
func (a *app) sayNotice(n home.Notice) {
	warning := a.paint(yellow, "warning:")
	switch n.Kind {
	case home.IndexElsewhere:
		a.say("%s there is no room for the index beside the sessions; using one in the cache", warning)
	case home.IndexBehind:
		a.warnOnce(fmt.Sprintf("what was written last is not in the index yet: %v", n.Error))
	case home.SessionUnread:
		a.warnOnce(n.Error.Error())
	case home.ChangesUntold:
		a.warnOnce(fmt.Sprintf("changes may be noticed late: %v", n.Error))
	case home.ImportFailed:
		if n.Path == "" {
			a.say("%s what agents write is not imported: %v; trying again", warning, n.Error)
		} else {
			a.say("%s not imported: %v; trying again when it changes", warning, n.Error)
		}
	case home.LineSkipped:
		a.say("%s session %s has a line at byte %d that is not an entry", warning, render.ShortID(n.Session), n.Offset)
	case home.ConnectionLost:
		a.say("%s %v; trying again", warning, n.Error)
	case home.EntriesMissed:
		a.say("%s the connection was lost for a while: entries may be missing here", warning)
	case home.SessionTrashed:
		a.say("moved session %s, last active %s, to the trash, to stay within %d sessions; %s brings it back",
			render.ShortID(n.Session), a.when(n.Active, time.Now()), n.Max, a.command("trash restore", []string{render.ShortID(n.Session)}))
	case home.IdleArchived:
		a.sayArchived(n)
	case home.SessionMissing:
		a.warnOnce(fmt.Sprintf("session %s of this conversation is missing, and so are its messages", render.ShortID(n.Session)))
	case home.ContentMissing:
		a.sayMissing(n.Session, nil, n.Lost)
	case home.ContinuedElsewhere:
		a.say("session %s is missing: the conversation continues in session %s", render.ShortID(n.Missing), render.ShortID(n.Session))
	case home.SecretRemoved:
		a.say("redacted: %s at %s: %s", n.Finding.Kind, n.Finding.Path, n.Finding.Preview)
	case home.RedactionFinished:
		a.sayFinished(n)
	case home.FileGone:
		a.say("%s %s is gone, or cannot be read; the model keeps what it was shown; /context -%s removes it", warning, n.Path, n.Path)
	case home.ServerStarting:
		a.say("starting the MCP server %s…; Ctrl-C stops", n.Server)
	case home.ModelAsked:
		a.sayAsked(n)
	case home.ModelRetried:
		a.say("%s %s; asking again in %s", warning, n.Retry.Reason, n.Retry.After.Round(time.Second/10))
	}
}

// sayArchived tells of sessions that were compressed on the side.
func (a *app) sayArchived(n home.Notice) {
	if n.Count > 0 {
		a.say("archived %s that had been idle for as long as archive_after says", render.Counted(n.Count, "session", "sessions"))
	}
	switch {
	case n.Error != nil && n.Session != "":
		a.say("%s session %s is idle and could not be archived: %v", a.paint(yellow, "warning:"), render.ShortID(n.Session), n.Error)
	case n.Error != nil:
		a.say("%s idle sessions could not be archived: %v", a.paint(yellow, "warning:"), n.Error)
	}
}

// warnOnce says what each catch-up of the index finds again: once is enough for a reader.
func (a *app) warnOnce(line string) {
	if !slices.Contains(a.warned, line) {
		a.say("%s %s", a.paint(yellow, "warning:"), line)
		a.warned = append(a.warned, line)
	}
}

// sayFinished tells how the rest of an interrupted redaction went.
func (a *app) sayFinished(n home.Notice) {
	if n.Error != nil {
		a.say("%s an interrupted redaction could not be finished: %v", a.paint(yellow, "warning:"), n.Error)
		return
	}
	r := n.Receipt
	a.say("finished a redaction that was interrupted: took %s out of %s",
		render.Counted(len(r.Kinds), "kind of secret", "kinds of secrets"), render.Counted(len(r.Sessions)+len(r.Copies), "file", "files"))
	for _, l := range r.Left {
		a.say("%s a secret is left in %s: %s", a.paint(yellow, "warning:"), l.Path, l.Why)
	}
}
