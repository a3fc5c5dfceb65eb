package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
)

// branchCommand moves the leaf and writes nothing else. What is left stays where it is, so the
// way back is one more of the same command, which the answer prints.
func branchCommand(a *app) *cobra.Command {
	var r home.BranchRequest
	var auto autoFlags
	cmd := &cobra.Command{
		Use:   "branch ID ENTRY",
		Short: "Continue from an earlier entry",
		Long: "Moves the leaf to an entry, so that what you append next follows that entry, and\n" +
			"prints the command that takes you back. The branch you leave is kept. With\n" +
			"--summary, a new entry tells the model what happened on it; with --summarise, the\n" +
			"model in the settings (coppice config) writes that entry.",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			r.Session, r.Entry = args[0], args[1]
			if r.Auto, err = auto.request(a, &r.Summary); err != nil {
				return err
			}
			return a.withHome(cmd.Context(), false, func(h *home.Home) error { return a.branch(cmd.Context(), h, r) })
		},
	}
	cmd.Flags().StringVar(&r.Summary, "summary", "", "what happened on that branch; - is standard input")
	auto.register(cmd, "summarise", "write that summary")
	cmd.MarkFlagsMutuallyExclusive("summary", "summarise")
	return a.withJSON(cmd)
}

// branch words an entry that is in an earlier session as what the person can do about it: only
// the last session of a conversation goes on, but a fork may begin there.
func (a *app) branch(ctx context.Context, h *home.Home, r home.BranchRequest) error {
	moved, err := h.Entries.Branch(ctx, r)
	if err != nil {
		return hintEarlier(err, func(e *home.EarlierError) string {
			return a.command("fork", []string{e.Conversation}, "--at", e.Entry) + " begins a new conversation there"
		})
	}
	short, err := a.entryNames(ctx, h, moved.Session, moved.Leaf, moved.Left)
	if err != nil {
		return err
	}
	line := "the leaf is at " + short.Shown(moved.Leaf) + " already"
	if moved.Moved {
		line = "the leaf is now " + short.Shown(moved.Leaf)
		if moved.Left != "" {
			line += "; " + a.command("branch", []string{calling(r.Session, moved.Session), short.Name(moved.Left)}) + " goes back"
		}
		line += wroteIt(moved.Auto)
	}
	return a.done(moved, moved.Leaf, line)
}
