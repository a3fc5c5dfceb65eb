package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
)

// revertCommand appends, as all commands do: what is undone stays in the log, and so does that
// it was undone.
func revertCommand(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:     "revert ID [ENTRY]",
		Aliases: []string{"undo"},
		Short:   "Undo a compaction, edit or merge",
		Long: "Appends an entry that undoes what another entry does to the context. Without ENTRY\n" +
			"it undoes the latest compaction, so that the model again sees what the compaction\n" +
			"replaced. Reverting a revert brings the change back.\n\n" +
			"What was said stays. To continue from an earlier entry, use coppice branch.",
		RunE: a.onHome(func(ctx context.Context, h *home.Home, args []string) error {
			r := home.RevertRequest{Session: args[0], Entry: strings.Join(args[1:], "")}
			reverted, err := h.Entries.Revert(ctx, r)
			if err != nil {
				return err
			}
			short, err := a.entryNames(ctx, h, reverted.Session, reverted.Target)
			if err != nil {
				return err
			}
			return a.done(reverted, reverted.Entry, "entry "+short.Shown(reverted.Target)+" no longer counts; "+
				a.revertCommand(r.Session, reverted.Session, reverted.Entry)+" makes it count again")
		}),
	})
}
