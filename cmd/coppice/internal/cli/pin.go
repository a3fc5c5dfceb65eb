package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// pinCommand keeps sessions from retention and from coppice rm. It can be undone, so it does
// not ask.
func pinCommand(a *app) *cobra.Command {
	return a.pinning("pin ID…", "Keep sessions from being removed", true)
}

// unpinCommand is a command of its own, not a flag of pin, because hints name it.
func unpinCommand(a *app) *cobra.Command {
	return a.pinning("unpin ID…", "Let sessions be removed again", false)
}

// pinning makes both commands, which differ in a word and a flag.
func (a *app) pinning(use, short string, pinned bool) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   use,
		Short: short,
		Long: short + ".\n\nRetention never removes a pinned session, and rm refuses to remove one unless\n" +
			"you pass --force.",
		RunE: a.onHome(func(ctx context.Context, h *home.Home, args []string) error {
			return a.eachSession(ctx, h, home.DistinctRequest{Sessions: args, Link: true}, func(id string) error { return a.setPinned(ctx, h, id, pinned) })
		}),
	})
}

// setPinned succeeds if nothing had to be changed, and says so: a script that asks for a state
// has what it wants.
func (a *app) setPinned(ctx context.Context, h *home.Home, id string, pinned bool) error {
	result, err := h.Sessions.Pin(ctx, home.PinRequest{Session: id, Pinned: pinned})
	if err != nil {
		return err
	}
	is := " is now pinned"
	switch {
	case !pinned && result.Changed:
		is = " is no longer pinned"
	case !pinned:
		is = " is not pinned"
	case !result.Changed:
		is = " is already pinned"
	}
	return a.done(result, result.Session, "session "+render.ShortID(result.Session)+is)
}
