package cli

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

func forkCommand(a *app) *cobra.Command {
	var at string
	var link bool
	cmd := &cobra.Command{
		Use:   "fork ID",
		Short: "Copy a session into a new one",
		Long: "Copies all of a session, with all its branches, into a new session. With --at,\n" +
			"only the path from the root to that entry. The session itself does not change.\n" +
			"A conversation that goes on in several sessions is copied as a whole, into one;\n" +
			"--link copies only the session that is named.",
		GroupID:           "tree",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeSession(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runFork(cmd.Context(), args[0], at, link)
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "copy only the path to this entry")
	linkFlag(cmd, &link)
	_ = cmd.RegisterFlagCompletionFunc("at", a.completeEntries) // fails only for a flag that does not exist
	return cmd
}

func (a *app) runFork(ctx context.Context, id, at string, link bool) error {
	return a.withConversation(ctx, id, link, func(o opened) error {
		forked, err := a.fork(ctx, o, at)
		if err != nil {
			return err
		}
		a.say("forked %s", o.name)
		return a.print("%s", forked)
	})
}

// fork returns the id of the new session.
func (a *app) fork(ctx context.Context, o opened, at string) (string, error) {
	if at == "" {
		s, err := o.Fork(ctx, o.store, a.options())
		if err != nil {
			return "", err
		}
		return s.ID(), s.Close()
	}
	entry, err := resolveEntry(o.Session, at)
	if err != nil {
		return "", err
	}
	path, err := o.CreateBranchedSession(entry)
	return strings.TrimSuffix(filepath.Base(path), ".jsonl"), err
}
