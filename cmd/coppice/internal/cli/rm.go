package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/upkeep"
)

// rmCommand moves to the trash and asks nothing: what can be undone needs no question. Deleting
// for good is coppice trash empty, which asks.
func rmCommand(a *app) *cobra.Command {
	var r home.RemoveRequest
	cmd := &cobra.Command{
		Use:   "rm ID…",
		Short: "Move sessions to the trash",
		Long: "Moves sessions to the trash, from which coppice trash restore brings them back,\n" +
			"and prints the name of each removal. A conversation that spans several sessions is\n" +
			"removed as a whole, with the sessions of the subagents that it started; --link removes\n" +
			"only the session you name. Pinned sessions, and sessions too damaged to check, are\n" +
			"kept unless you pass --force.",
		RunE: a.onHome(func(ctx context.Context, h *home.Home, args []string) error {
			gone := make(map[string]bool) // some go with others
			return a.eachSession(ctx, h, home.DistinctRequest{Sessions: args, Link: r.Link}, func(id string) error {
				if r.Session = id; gone[id] {
					return nil
				}
				return a.runRm(ctx, h, r, gone)
			})
		}),
	}
	cmd.Flags().BoolVar(&r.Force, "force", false, "even if they are pinned, or too damaged to check")
	linkFlag(cmd, &r.Link)
	return a.withJSON(cmd)
}

// runRm removes a conversation and adds its sessions to those that are gone.
func (a *app) runRm(ctx context.Context, h *home.Home, r home.RemoveRequest, all map[string]bool) error {
	result, err := h.Sessions.Remove(ctx, r)
	if result == nil || len(result.Removals) == 0 {
		return a.adviseUnpin(err)
	}
	title := ""
	if result.Title != "" {
		title = fmt.Sprintf(" (%s)", render.OneLine(result.Title, 60))
	}
	gone := slices.Concat(result.Sessions, result.Subagents)
	for _, name := range gone {
		all[name] = true
	}
	first := render.ShortID(gone[0])
	back := a.command("trash restore", []string{first})
	if n := len(gone); n == 1 {
		a.say("session %s%s is in the trash; %s brings it back", first, title, back)
	} else {
		subagents := ""
		if len(result.Subagents) > 0 {
			subagents = fmt.Sprintf(" (%d of subagents)", len(result.Subagents))
		}
		a.say("conversation %s%s, %d sessions%s, is in the trash; %s brings it back", first, title, n, subagents, back)
	}
	if a.flags.json {
		return errors.Join(a.printJSON(result), err)
	}
	return errors.Join(a.printLines(result.Removals), err)
}

// adviseUnpin says how to remove a session that is pinned.
func (a *app) adviseUnpin(err error) error {
	pinned, ok := errors.AsType[*upkeep.PinnedError](err)
	switch {
	case !ok:
		return err
	case pinned.Err != nil:
		return hinted(err, "--force removes it anyway")
	}
	return hinted(err, a.command("unpin", []string{render.ShortID(pinned.Session)})+" first, or --force")
}
