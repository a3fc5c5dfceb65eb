package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice"
)

func revertCommand(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "revert ID [ENTRY]",
		Short: "Take back a compaction, edit or merge",
		Long: "Appends an entry that takes back what another one does to the context. Without\n" +
			"ENTRY, takes back the compaction in force, so that the model sees again what it\n" +
			"replaced. Reverting a revert does the thing again.",
		GroupID:           "tree",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completeEntryOf,
		RunE: func(cmd *cobra.Command, args []string) error {
			r := coppice.RevertRequest{Session: args[0]}
			if len(args) > 1 {
				r.Entry = args[1]
			}
			return a.runRevert(cmd.Context(), r)
		},
	})
}

func (a *app) runRevert(ctx context.Context, r coppice.RevertRequest) error {
	return a.withHome(ctx, false, func(h *coppice.Home) error {
		reverted, err := h.Entries.Revert(ctx, r)
		if err != nil {
			return err
		}
		return a.done(reverted, reverted.Entry, "entry "+reverted.Short.Shown(reverted.Target)+" no longer counts; "+
			a.revertCommand(r.Session, reverted.Session, reverted.Entry, reverted.Short)+" makes it count again")
	})
}
