package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// forkCommand copies, so that two people or programs can continue the same conversation without
// seeing each other. Within one session, a branch does.
func forkCommand(a *app) *cobra.Command {
	var r home.ForkRequest
	cmd := &cobra.Command{
		Use:   "fork ID",
		Short: "Copy a session into a new one",
		Long: "Copies a session, with all its branches, into a new session, and prints the new\n" +
			"id. With --at, copies only the path from the root to that entry. The original\n" +
			"does not change.\n\n" +
			"A conversation that spans several sessions is copied as a whole, into one\n" +
			"session; --link copies only the session you name.",
		RunE: a.onHome(func(ctx context.Context, h *home.Home, args []string) error {
			r.Session = args[0]
			forked, err := h.Sessions.Fork(ctx, r)
			if err != nil {
				return err
			}
			if len(forked.Missing) > 0 { // the copy lacks it, too
				a.sayMissing(a.nameOf(ctx, h, forked.From), nil, forked.Missing)
			}
			return a.done(forked, forked.Session, "forked "+render.ShortID(forked.From)+" into session "+render.ShortID(forked.Session))
		}),
	}
	cmd.Flags().StringVar(&r.At, "at", "", "copy only the path to this entry")
	linkFlag(cmd, &r.Link)
	return a.withJSON(a.picking(cmd))
}
