package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/upkeep"
)

func rmCommand(a *app) *cobra.Command {
	var r coppice.RemoveRequest
	cmd := &cobra.Command{
		Use:   "rm ID…",
		Short: "Move sessions to the trash",
		Long: "Moves sessions to the trash, from which coppice trash restore brings them back,\n" +
			"and prints the name of each removal. A conversation that spans several sessions is\n" +
			"removed as a whole; --link removes only the session you name. Pinned sessions, and\n" +
			"sessions too damaged to check, are kept unless you pass --force.",
		GroupID:           "keep",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeSession(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withHome(cmd.Context(), false, func(h *coppice.Home) error {
				return a.each(cmd.Context(), h.Sessions.Distinct(cmd.Context(), args, r.Link), func(id string) error {
					r.Session = id
					return a.runRm(cmd.Context(), h, r)
				})
			})
		},
	}
	cmd.Flags().BoolVar(&r.Force, "force", false, "even if they are pinned, or too damaged to check")
	linkFlag(cmd, &r.Link)
	return a.withJSON(cmd)
}

func (a *app) runRm(ctx context.Context, h *coppice.Home, r coppice.RemoveRequest) error {
	result, err := h.Sessions.Remove(ctx, r)
	if result == nil || len(result.Removals) == 0 {
		return adviseUnpin(err)
	}
	title := ""
	if result.Title != "" {
		title = fmt.Sprintf(" (%s)", render.OneLine(result.Title, 60))
	}
	short := make([]string, len(result.Sessions))
	for i, id := range result.Sessions {
		short[i] = render.ShortID(id)
	}
	back := command("trash restore", short)
	if n := len(result.Sessions); n == 1 {
		a.say("session %s%s is in the trash; %s brings it back", short[0], title, back)
	} else {
		a.say("conversation %s%s, %d sessions, is in the trash; %s brings it back", short[0], title, n, back)
	}
	if a.flags.json {
		return errors.Join(a.printJSON(result), err)
	}
	for _, removal := range result.Removals {
		if err := a.print("%s", removal); err != nil {
			return err
		}
	}
	return err
}

// adviseUnpin says how to remove a session that is pinned.
func adviseUnpin(err error) error {
	pinned, ok := errors.AsType[*upkeep.PinnedError](err)
	switch {
	case !ok:
		return err
	case pinned.Err != nil:
		return hinted(err, "--force removes it all the same")
	}
	return hinted(err, command("unpin", []string{render.ShortID(pinned.Session)})+" first, or --force")
}
