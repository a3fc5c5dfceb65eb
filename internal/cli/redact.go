package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/upkeep"
)

type redactFlags struct {
	all, apply, dryRun, link bool
}

func redactCommand(a *app) *cobra.Command {
	var f redactFlags
	cmd := &cobra.Command{
		Use:   "redact [ID…]",
		Short: "Find secrets and take them out for good",
		Long: "Lists the keys, tokens and passwords in sessions: the kind of each, how often it\n" +
			"occurs and where, but never the secret itself. --apply replaces each with\n" +
			"[REDACTED:kind]: in the log, in blobs, in what was kept of an import's source, in\n" +
			"the trash and in quarantine; the index is rebuilt. A receipt says what was done and\n" +
			"where a secret is left, for example because another session has it too; the exit\n" +
			"code is then 3.\n\n" +
			"This cannot be undone: look with --dry-run first. And revoke the secret anyway:\n" +
			"somebody may have seen it.",
		Example: "  coppice redact 0197ab --dry-run\n" +
			"  coppice redact --all --apply",
		GroupID:           "keep",
		ValidArgsFunction: a.completeSession(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) > 0) == f.all {
				return usageError{errors.New("either the ids of sessions or --all is needed")}
			}
			r := coppice.RedactRequest{Sessions: args, Link: f.link, All: f.all, Apply: f.apply}
			return a.withHome(cmd.Context(), false, func(h *coppice.Home) error { return a.runRedact(cmd.Context(), h, r) })
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

func (a *app) runRedact(ctx context.Context, h *coppice.Home, r coppice.RedactRequest) error {
	result, err := h.Upkeep.Redact(ctx, r)
	if result == nil {
		return err
	}
	if err := a.printSecrets(ctx, h, result.Secrets); err != nil {
		return err
	}
	if !r.Apply {
		return a.sayFound(result)
	}
	if err := errors.Join(err, a.printReceipt(result)); err != nil {
		a.sayUnfinished(h)
		return err
	}
	if len(result.Receipt.Left) > 0 {
		a.say("some secrets are left; the receipt says where. %s also looks at the other sessions", command("redact", nil, "--all", "--apply"))
		return errPartial
	}
	return nil
}

// sayFound sums up what was found and not taken out.
func (a *app) sayFound(r *upkeep.RedactResult) error {
	times := 0
	for _, s := range r.Secrets {
		times += s.Count
	}
	a.say("%s found, %s in all; nothing was changed", render.Counted(len(r.Secrets), "secret", "secrets"), render.Counted(times, "time", "times"))
	for _, l := range r.Unread {
		a.say("%s %s: %s", a.paint(yellow, "warning:"), l.Path, render.OneLine(l.Why, 0))
	}
	if len(r.Unread) > 0 {
		return errPartial
	}
	return nil
}

// sayUnfinished tells what becomes of a redaction that did not come to its end.
func (a *app) sayUnfinished(h *coppice.Home) {
	if yes, err := h.Upkeep.Unfinished(); yes && err == nil {
		a.say("some secrets were not removed yet; no file is damaged. The next command that writes to the store finishes the job, or run: %s", command("redact", nil, "--all", "--apply"))
	}
}

// withRedact gives a writing command the flag --redact.
func (a *app) withRedact(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&a.flags.redact, "redact", "", "take secrets out (default: the setting redact)")
	cmd.Flags().Lookup("redact").NoOptDefVal = "true"
	return cmd
}
