package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice"
	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store/file"
)

type redactFlags struct {
	all, apply, dryRun, link bool
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
			return a.withStore(func(st *file.Store) error { return a.runRedact(cmd.Context(), st, args, &f) })
		},
	}
	cmd.Flags().BoolVar(&f.all, "all", false, "all sessions, and what the trash has of removed ones")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only list what was found")
	cmd.Flags().BoolVar(&f.apply, "apply", false, "replace what was found")
	linkFlag(cmd, &f.link)
	cmd.MarkFlagsOneRequired("dry-run", "apply")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "apply")
	return a.withJSON(cmd)
}

func (a *app) runRedact(ctx context.Context, st *file.Store, given []string, f *redactFlags) error {
	var names []string
	for _, id := range given {
		links, err := a.linksOf(ctx, st, id, f.link)
		if err != nil {
			return err
		}
		names = append(names, links...)
	}
	if f.apply {
		a.home.BeforeWriting(ctx)
	}
	bar := a.newProgress("")
	sweep, err := clean.LookWith(ctx, st, clean.Options{Sessions: names, Progress: bar.showDoing})
	bar.done()
	if err != nil {
		return err
	}
	if err := a.printSecrets(sweep.Secrets); err != nil {
		return err
	}
	if !f.apply {
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
	var dropped []string
	if len(sweep.Secrets) > 0 {
		var err error
		if dropped, err = a.home.DropIndexes(); err != nil {
			return err
		}
	}
	receipt, err := sweep.Apply(ctx)
	path := ""
	if err == nil && len(dropped) > 0 {
		var ix *index.Index
		if ix, err = a.home.Index(ctx); err == nil {
			path = ix.Path()
		}
	}
	if err := errors.Join(a.printReceipt(receipt, path), err); err != nil {
		a.sayUnfinished(st)
		return err
	}
	if len(receipt.Left) > 0 {
		a.say("not all of it could be taken out; the receipt names what is left. coppice redact --all --apply also looks at the other sessions")
		return errPartial
	}
	return nil
}

// sayUnfinished tells what becomes of a redaction that did not come to its end.
func (a *app) sayUnfinished(st *file.Store) {
	if yes, err := clean.Unfinished(st); yes && err == nil {
		a.say("not all was taken out; every file is whole. The next command that writes to the store does the rest, or: %s", command("redact", nil, "--all", "--apply"))
	}
}

// prepare is done before every command: the settings are read, and what an
// interrupted redaction has left is done before anything else is written.
func (a *app) prepare(cmd *cobra.Command) error {
	if err := a.settle(); err != nil || !writers[strings.TrimPrefix(cmd.CommandPath(), "coppice ")] {
		return err
	}
	err := a.withHome(cmd.Context(), false, func(h *coppice.Home) error {
		h.BeforeWriting(cmd.Context())
		return nil
	})
	if coppice.KindOf(err) == coppice.KindNotFound {
		return nil // there is nothing yet; what is wrong the command will say
	}
	return err
}

// writers are the commands that write to sessions. (Others have to do with them
// only when they are asked to; redact sees to it by itself.)
var writers = map[string]bool{
	"new": true, "append": true, "import": true, "branch": true, "fork": true, "merge": true, "compact": true, "revert": true,
	"label": true, "rename": true, "tag": true, "pin": true, "unpin": true, "rm": true, "trash restore": true, "trash empty": true,
	"archive": true, "unarchive": true, "index rebuild": true,
}

// withRedact gives a writing command the flag --redact.
func (a *app) withRedact(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&a.flags.redact, "redact", "", "take secrets out: true or false (default: the setting redact)")
	cmd.Flags().Lookup("redact").NoOptDefVal = "true"
	return cmd
}
