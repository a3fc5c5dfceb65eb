package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/session"
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
	entry := "" // the compaction in force
	if len(args) > 1 {
		entry = args[1]
	} else if err := a.findEarlierCompaction(cmd.Context(), args[0], &entry); err != nil {
		return err
	}
	return a.withLink(cmd.Context(), args[0], entry, func(o opened) error {
		var reverted string
		var err error
		if entry == "" {
			reverted, err = o.Undo()
			var none *session.Error
			if errors.Is(err, session.ErrNotExist) && errors.As(err, &none) {
				none.Hint = "coppice tree shows the entries; coppice revert ID ENTRY takes back an edit, a merge or an earlier revert"
			}
		} else {
			var target string
			if target, err = resolveEntry(o.Session, entry); err != nil {
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

// findEarlierCompaction finds the compaction in force of a conversation that goes on
// in several sessions: any of them may have it. Of a session that is alone it leaves
// that to the session.
func (a *app) findEarlierCompaction(ctx context.Context, id string, compaction *string) error {
	return a.withConversation(ctx, id, false, func(o opened) error {
		if isAlone(o.chain) {
			return nil
		}
		entries, err := o.GetContext()
		for i := range entries {
			if entries[i].Compaction != nil {
				*compaction = entries[i].ID
			}
		}
		return err
	})
}
