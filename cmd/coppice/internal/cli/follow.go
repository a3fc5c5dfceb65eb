package cli

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// followCommand wants either a name or --all. Following everything by default would surprise a
// person who forgot the name.
func followCommand(a *app) *cobra.Command {
	var r home.FollowRequest
	var all bool
	cmd := &cobra.Command{
		Use:   "follow [ID]",
		Short: "Watch entries arrive, until interrupted",
		Long: "Follow prints the entries that any program appends to a session, one line each.\n" +
			"With --all it follows every session of the store, including those that begin\n" +
			"later. It ends when it is interrupted (exit code 130) or the session is removed.",
		Example: "  coppice follow 7f3a91c2 --last 5\n" +
			"  coppice follow --all --json | jq -r .entry.message.role",
		RunE: func(cmd *cobra.Command, args []string) error {
			if all != (len(args) == 0) {
				return misuse("follow one session by its id, or all of them with --all")
			}
			r.Session, r.Filled = strings.Join(args, ""), a.flags.json
			return a.withHome(cmd.Context(), false, func(h *home.Home) error { return a.follow(cmd.Context(), h, r) })
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all sessions of the store")
	cmd.Flags().IntVar(&r.Last, "last", 0, "begin with the last N entries")
	return a.withJSON(cmd)
}

// follow asks for the names of the sessions once. One that begins later is shown by its id,
// which is cheaper than asking again for each line.
func (a *app) follow(ctx context.Context, h *home.Home, r home.FollowRequest) (err error) {
	w := &watcher{app: a, showSession: r.Session == ""}
	if w.showSession {
		if w.short, err = sessionNames(ctx, h, home.SessionNamesRequest{All: true}); err != nil {
			return err
		}
	}
	a.sayFollowed(ctx, h, r.Session)
	if _, err := h.Entries.Follow(ctx, r, w.tell); err != nil {
		return err
	}
	return ctx.Err() // an interrupt ends it as every command
}

// sayFollowed says to a person what is waited for: it may be long until something comes.
func (a *app) sayFollowed(ctx context.Context, h *home.Home, name string) {
	if !a.isTerminal() || a.flags.json {
		return
	}
	what := "all sessions"
	if name != "" {
		info, err := h.Sessions.Get(ctx, home.SessionRequest{Session: name})
		if err != nil {
			return // following it says what is wrong
		}
		what = "“" + cmp.Or(render.OneLine(info.Title, 60), render.Untitled) + "”"
	}
	a.say("%s", a.paint(dim, "following "+what+"; Ctrl-C ends it"))
}

// watcher prints entries as they come.
type watcher struct {
	*app
	// short is how sessions are named that were there at the beginning.
	short       render.Names
	showSession bool
}

// tell prints an entry on a line.
func (w *watcher) tell(one home.Arrival) error {
	if w.flags.json {
		return w.printJSON(one)
	}
	e := &one.Entry
	if e.Type == session.TypeCustom && e.IsAside() {
		return nil // a note of a program, such as what a model was asked
	}
	at := rfc3339(e.Timestamp)
	if w.isTerminal() {
		at = e.Timestamp.Local().Format(time.TimeOnly)
	}
	before := w.paint(dim, at) + "  "
	if w.showSession {
		before += w.paint(blue, render.OneLine(cmp.Or(w.short[one.Session], render.ShortID(one.Session)), 0)) + "  "
	}
	return w.print("%s", w.style().Row(e, before, "", render.ShortID))
}
