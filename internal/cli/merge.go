package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

func mergeCommand(a *app) *cobra.Command {
	var summary string
	var picks []string
	cmd := &cobra.Command{
		Use:   "merge ID LEAF",
		Short: "Bring another branch's outcome here",
		Long: "Appends an entry that gives the model a summary of another branch, chosen\n" +
			"messages of it, or both. The messages stay where they are.",
		GroupID:           "tree",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeEntryOf,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runMerge(cmd, args[0], args[1], summary, picks)
		},
	}
	cmd.Flags().StringVar(&summary, "summary", "", "what the branch arrived at; - is standard input")
	cmd.Flags().StringSliceVar(&picks, "pick", nil, "a message of the branch to show here; may be given several times")
	_ = cmd.RegisterFlagCompletionFunc("pick", a.completeEntries) // fails only for a flag that does not exist
	return cmd
}

func (a *app) runMerge(cmd *cobra.Command, id, leaf, summary string, picks []string) error {
	summary, err := a.flagText(summary)
	if err != nil {
		return err
	}
	if summary == "" && len(picks) == 0 {
		return usageError{errors.New("nothing to merge: give --summary, --pick or both")}
	}
	hint := "a merge brings branches of the last session; coppice fork ID makes one session of all, in which every branch can be merged"
	return a.withLast(cmd.Context(), "merge", id, append([]string{leaf}, picks...), hint, func(o opened) error {
		from, err := resolveEntry(o.Session, leaf)
		if err != nil {
			return err
		}
		picked := make([]string, len(picks))
		for i := range picks {
			if picked[i], err = resolveEntry(o.Session, picks[i]); err != nil {
				return err
			}
		}
		merged, err := o.Merge(from, summary, picked...)
		if err != nil {
			return plainly("merge", o.name, err)
		}
		a.say("merged the branch that ends at %s; %s takes it back", from, command("revert", []string{o.name, merged}))
		return a.print("%s", merged)
	})
}
