package cli

import (
	"github.com/spf13/cobra"
)

func branchCommand(a *app) *cobra.Command {
	var summary string
	cmd := &cobra.Command{
		Use:   "branch ID ENTRY",
		Short: "Go on from an earlier entry",
		Long: "Moves the leaf to an entry: what is appended next follows that entry. The branch\n" +
			"that is left stays where it is. With --summary, an entry tells the model what\n" +
			"happened on it.",
		GroupID:           "tree",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeEntryOf,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runBranch(cmd, args[0], args[1], summary)
		},
	}
	cmd.Flags().StringVar(&summary, "summary", "", "what happened on the branch that is left; - is standard input")
	return cmd
}

func (a *app) runBranch(cmd *cobra.Command, id, given, summary string) error {
	summary, err := a.flagText(summary)
	if err != nil {
		return err
	}
	hint := "coppice fork ID --at ENTRY begins a new conversation there"
	return a.withLast(cmd.Context(), "branch", id, []string{given}, hint, func(o opened) error {
		target, err := resolveEntry(o.Session, given)
		if err != nil {
			return err
		}
		left := o.LeafID()
		if summary == "" {
			err = o.Branch(target)
		} else {
			target, err = o.BranchWithSummary(target, summary)
		}
		if err != nil {
			return plainly("branch", o.name, err)
		}
		if left == target {
			a.say("the leaf is there already")
		} else {
			a.say("the leaf is now %s; %s goes back", target, command("branch", []string{o.name, left}))
		}
		return a.print("%s", target)
	})
}
