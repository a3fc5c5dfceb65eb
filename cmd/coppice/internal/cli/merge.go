package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// mergeCommand copies nothing within a session: the messages stay on their branch, and one
// entry tells the model of them. Only another session's branch has to be copied, since a
// session holds all that it refers to.
func mergeCommand(a *app) *cobra.Command {
	var r home.MergeRequest
	cmd := &cobra.Command{
		Use:   "merge ID [LEAF]",
		Short: "Bring in the outcome of another branch",
		Long: "Appends an entry that gives the model a summary of the branch that ends at LEAF,\n" +
			"some of its messages, or both. The messages stay where they are.\n\n" +
			"With --from, the branch belongs to another session; by default it is the one that\n" +
			"session ends with. Its messages are first copied here, as a branch.",
		Example: "coppice merge nightly 3f2a --summary 'caching helps'\ncoppice merge tokenizer --from table --pick leaf",
		RunE: a.onHome(func(ctx context.Context, h *home.Home, args []string) error {
			r.Session, r.From = args[0], strings.Join(args[1:], "")
			return a.merge(ctx, h, r)
		}),
	}
	cmd.Flags().StringVar(&r.Summary, "summary", "", "what the branch arrived at; - is standard input")
	cmd.Flags().StringArrayVar(&r.Picks, "pick", nil, "a message of the branch to show here; can be repeated")
	cmd.Flags().StringVar(&r.Other, "from", "", "the `ID` of the session that has the branch")
	_ = cmd.RegisterFlagCompletionFunc("from", a.completeSession(1))
	return a.withJSON(cmd)
}

// merge says how to take it back, because a merge changes what the model sees from here on.
func (a *app) merge(ctx context.Context, h *home.Home, r home.MergeRequest) (err error) {
	if r.Summary, err = a.flagText(r.Summary); err != nil {
		return err
	}
	merged, err := h.Entries.Merge(ctx, r)
	if err != nil {
		return hintEarlier(err, func(e *home.EarlierError) string {
			return "only branches of the last session can be merged; " + a.command("fork", []string{e.Conversation}) +
				" makes one session of the whole conversation, in which every branch can"
		})
	}
	short, err := a.entryNames(ctx, h, merged.Session, merged.From)
	if err != nil {
		return err
	}
	what := "merged the branch that ends at " + short.Shown(merged.From)
	if merged.Copied > 0 {
		what += ", with " + render.Counted(merged.Copied, "message", "messages") + " copied from " + merged.Other
	}
	return a.done(merged, merged.Entry, what+"; "+
		a.revertCommand(r.Session, merged.Session, merged.Entry)+" takes it back")
}

// revertCommand is the command that takes an entry back. The shortest name of the entry
// would not do: the next entry's id may begin in the same way.
func (a *app) revertCommand(given, session, entry string) string {
	return a.command("revert", []string{calling(given, session), render.ShortID(entry)})
}
