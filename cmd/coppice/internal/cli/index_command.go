package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// indexCommand is for the rare case that the index is in doubt. Nothing else needs it: each
// command that uses the index brings it up to date.
func indexCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "index",
		Short: "Look at the index, or rebuild it",
		Long:  "The index is derived from the sessions. Commands that use it bring it up to date;\nit can be deleted at any time.",
	}
	cmd = withDefault(cmd, a.withJSON(&cobra.Command{
		Use:   "status",
		Short: "Show what the index holds",
		RunE: a.onHome(func(ctx context.Context, h *home.Home, _ []string) error {
			s, err := h.Upkeep.IndexStatus(ctx)
			if err != nil || a.flags.json {
				return a.asJSON(s, err)
			}
			return a.print("%s\n%d sessions, %d entries, %d searchable texts, %s (format %d, %s)",
				s.Path, s.Sessions, s.Entries, s.Texts, render.Bytes(s.Size), s.Schema, s.Engine)
		}),
	}))
	cmd.AddCommand(a.withJSON(&cobra.Command{
		Use:   "rebuild",
		Short: "Rebuild the index from the sessions",
		RunE: a.onHome(func(ctx context.Context, h *home.Home, _ []string) error {
			r, err := h.Upkeep.RebuildIndex(ctx)
			if err != nil {
				return err
			}
			a.say("rebuilt the index: %s", r.Path)
			if a.flags.json {
				return a.printJSON(r)
			}
			return nil
		}),
	}))
	return cmd
}
