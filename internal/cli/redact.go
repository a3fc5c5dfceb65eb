package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store/file"
)

type redactFlags struct {
	all, apply, dryRun bool
}

func redactCommand(a *app) *cobra.Command {
	var f redactFlags
	cmd := &cobra.Command{
		Use:   "redact [ID…]",
		Short: "Find secrets and take them out for good",
		Long: "Lists the keys, tokens and passwords in sessions, each with its place, and never\n" +
			"the secret itself. With --apply each is replaced by [REDACTED:kind]: in the log, in\n" +
			"blobs, in what was kept of an import's source, in the trash and in quarantine, and\n" +
			"the index is made anew. A receipt tells what was done and where a secret is left,\n" +
			"because another session has it too, say; the exit code is then 3.\n\n" +
			"This is the one command that nothing brings back: look with --dry-run first. A\n" +
			"secret that was ever written down should be revoked all the same.",
		Example: "  coppice redact 0197ab --dry-run\n" +
			"  coppice redact --all --apply",
		GroupID:           "keep",
		ValidArgsFunction: a.completeSession(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) > 0) == f.all {
				return usageError{errors.New("either the ids of sessions or --all is needed")}
			}
			return a.withStore(func(st *file.Store) error { return a.runRedact(cmd.Context(), st, args, f.apply) })
		},
	}
	cmd.Flags().BoolVar(&f.all, "all", false, "all sessions, and what the trash has of removed ones")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only list what was found")
	cmd.Flags().BoolVar(&f.apply, "apply", false, "replace what was found")
	cmd.MarkFlagsOneRequired("dry-run", "apply")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "apply")
	return a.withJSON(cmd)
}

func (a *app) runRedact(ctx context.Context, st *file.Store, given []string, apply bool) error {
	var names []string
	for _, id := range given {
		name, err := resolveSession(ctx, st, id)
		if err != nil {
			return err
		}
		names = append(names, name)
	}
	sweep, err := clean.Look(ctx, st, names...)
	if err != nil {
		return err
	}
	if err := a.printSecrets(sweep.Secrets); err != nil {
		return err
	}
	if !apply {
		a.say("%s found; nothing was changed", counted(len(sweep.Secrets), "secret", "secrets"))
		for _, l := range sweep.Unread {
			a.say("%s %s: %s", a.paint(yellow, "warning:"), l.Path, oneLine(l.Why, 0))
		}
		if len(sweep.Unread) > 0 {
			return errPartial
		}
		return nil
	}
	return a.applyRedaction(ctx, st, sweep)
}

// applyRedaction replaces what was found. The index goes first: if we do not come
// to the end, there is none that still has a secret.
func (a *app) applyRedaction(ctx context.Context, st *file.Store, sweep *clean.Sweep) error {
	hadIndex := false
	if len(sweep.Secrets) > 0 {
		var err error
		if hadIndex, err = dropIndex(st); err != nil {
			return err
		}
	}
	receipt, err := sweep.Apply(ctx)
	if err == nil && hadIndex {
		err = a.rebuildIndex(ctx, st)
	}
	if err != nil {
		return errors.Join(a.printReceipt(receipt, ""), err)
	}
	path := ""
	if hadIndex {
		path = st.IndexPath()
	}
	if err := a.printReceipt(receipt, path); err != nil {
		return err
	}
	if len(receipt.Left) > 0 {
		a.say("not all of it could be taken out; the receipt names what is left. coppice redact --all --apply also looks at the other sessions")
		return errPartial
	}
	return nil
}

// dropIndex deletes the index, and reports whether there was one.
func dropIndex(st *file.Store) (bool, error) {
	had := false
	for _, suffix := range []string{"", "-wal", "-shm"} {
		err := os.Remove(st.IndexPath() + suffix)
		switch {
		case err == nil:
			had = true
		case !errors.Is(err, fs.ErrNotExist):
			return had, &session.Error{Op: "delete the index", Path: st.IndexPath(), Err: err, Hint: "another program may be using it"}
		}
	}
	return had, nil
}

func (a *app) rebuildIndex(ctx context.Context, st *file.Store) error {
	ix, err := a.openIndex(ctx, st)
	if err != nil {
		return err
	}
	return errors.Join(a.catchUp(ctx, ix), ix.Close())
}

// cleanAndSay is for session.Options.Clean: it takes the secrets out of an entry
// and tells of each.
func (a *app) cleanAndSay(e *session.Entry) error {
	found, err := clean.Entry(e)
	for _, f := range found {
		a.say("redacted: %s at %s: %s", f.Kind, oneLine(f.Path, 0), oneLine(f.Preview, 0))
	}
	return err
}

// withRedact gives a writing command the flag --redact.
func (a *app) withRedact(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&a.flags.redact, "redact", "", "take secrets out: true or false (default: the setting redact)")
	cmd.Flags().Lookup("redact").NoOptDefVal = "true"
	return cmd
}

// redacts reports whether secrets are to be taken out of what is written.
func (c *config) redacts() (bool, error) {
	switch c.Redact.value {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, usageError{fmt.Errorf("redact is %q (%s); it must be true or false", c.Redact.value, c.Redact.origin)}
}
