package cli

import (
	"github.com/spf13/cobra"
)

func revertCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "revert ID [ENTRY]",
		Short: "Take back a compaction, edit or merge",
		Long: "Appends an entry that takes back the effect of another. Without an entry, the\n" +
			"compaction in force is taken back: the model sees again what it replaced.\n" +
			"Reverting a revert does the thing again.",
		GroupID:           "tree",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completeEntryOf,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runRevert(cmd, args) },
	}
}

func (a *app) runRevert(cmd *cobra.Command, args []string) error {
	entry := ""
	if len(args) > 1 {
		entry = args[1]
	}
	return a.withLink(cmd.Context(), args[0], entry, func(o opened) error {
		var reverted string
		var err error
		if len(args) == 1 {
			reverted, err = o.Undo()
		} else {
			var target string
			if target, err = resolveEntry(o.Session, args[1]); err != nil {
				return err
			}
			reverted, err = o.Revert(target)
		}
		if err != nil {
			return plainly("revert", o.name, err)
		}
		e, err := o.Entry(reverted)
		if err != nil {
			return err
		}
		a.say("entry %s no longer counts; %s makes it count again", e.Revert.TargetID, command("revert", []string{o.name, reverted}))
		return a.print("%s", reverted)
	})
}
