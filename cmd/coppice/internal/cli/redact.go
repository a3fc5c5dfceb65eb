package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/upkeep"
)

// redactCommand lists by default and changes only with --apply, because nothing brings back
// what it took out. A value to look for is never an argument: other users of the machine can
// read command lines.
func redactCommand(a *app) *cobra.Command {
	var r home.RedactRequest
	var value string
	cmd := &cobra.Command{
		Use:   "redact [ID…]",
		Short: "Find secrets and take them out for good",
		Long: "Lists the keys, tokens and passwords in sessions: the kind of each, how often it\n" +
			"occurs and where, but never the secret itself. --apply replaces each with\n" +
			"[REDACTED:kind]: in the log, in blobs, in the kept source of an import, in the trash\n" +
			"and in quarantine; the index is rebuilt. A receipt says what was done and where a\n" +
			"secret remains, for example because another session has it too; the exit code is\n" +
			"then 3.\n\n" +
			"--value - takes out one string that you type or give on standard input, such as a\n" +
			"password that does not look like one: in every spelling, in all sessions unless you\n" +
			"name some, and from then on in everything that is appended, imported or forked.\n\n" +
			"--keep leaves a secret alone, by the id in the list.\n\n" +
			"--apply cannot be undone: look at the list first. And revoke the secret anyway:\n" +
			"someone may have seen it.",
		Example: "  coppice redact 0197ab\n" +
			"  coppice redact 0197ab --apply --keep k3v9x2ab\n" +
			"  coppice redact --all --apply\n" +
			"  coppice redact --value - --apply",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			given := cmd.Flags().Changed("value")
			if given && value != "-" {
				return misuse("the value is read from standard input: pass --value - (others can see what is on a command line)")
			}
			if given {
				if r.Value, err = a.readValue(cmd.Context()); err != nil {
					return err
				}
			}
			r.Sessions = args
			return a.withHome(cmd.Context(), false, func(h *home.Home) error { return a.runRedact(cmd, h, r) })
		},
	}
	cmd.Flags().BoolVar(&r.All, "all", false, "all sessions, including those in the trash")
	cmd.Flags().Bool("dry-run", false, "only list what was found (the default)")
	cmd.Flags().BoolVar(&r.Apply, "apply", false, "replace what was found")
	cmd.Flags().StringVar(&value, "value", "", "look for one string: - reads or asks for it")
	cmd.Flags().StringArrayVar(&r.Keep, "keep", nil, "leave the secret with this `id` alone; can be repeated")
	linkFlag(cmd, &r.Link)
	cmd.MarkFlagsMutuallyExclusive("dry-run", "apply")
	return a.withJSON(cmd)
}

// readValue reads a value that no one else should see: from a terminal without showing
// it, or else all of standard input but for the line end.
func (a *app) readValue(ctx context.Context) (string, error) {
	read := func() ([]byte, error) { return io.ReadAll(a.stdin) }
	if keys := terminalOf(a.stdin); keys != nil {
		read = func() ([]byte, error) { return a.askSecretly(ctx, int(keys.Fd())) }
	}
	data, err := read()
	value := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if err == nil && value == "" {
		err = misuse("the value is empty")
	}
	return value, err
}

// askSecretly asks for a line at a terminal. If it is interrupted, the terminal shows again
// what is typed.
func (a *app) askSecretly(ctx context.Context, terminal int) ([]byte, error) {
	before, err := term.GetState(terminal)
	if err != nil {
		return nil, err
	}
	fmt.Fprint(a.err, "Value to take out (it is not shown): ")
	defer fmt.Fprintln(a.err)
	line, err := whileWaited(ctx, func() ([]byte, error) { return term.ReadPassword(terminal) })
	if ctx.Err() != nil {
		err = errors.Join(err, term.Restore(terminal, before))
	}
	return line, err
}

// runRedact prints what was found also when it takes it out, as a record of it, and fails if a
// secret is left anywhere: who redacts must be able to rely on the exit code.
func (a *app) runRedact(cmd *cobra.Command, h *home.Home, r home.RedactRequest) error {
	ctx := cmd.Context()
	result, err := h.Upkeep.Redact(ctx, r)
	if result == nil {
		return err
	}
	if err := a.printSecrets(ctx, h, result.Secrets); err != nil {
		return err
	}
	if !r.Apply {
		return a.sayFound(result, a.command(cmd.Name(), cmd.Flags().Args(), append(givenFlags(cmd, "dry-run", "json"), "--apply")...))
	}
	if err := errors.Join(err, a.printReceipt(result)); err != nil {
		a.sayUnfinished(h)
		return err
	}
	if len(result.Receipt.Left) > 0 {
		a.say("some secrets remain; the receipt says where. %s also looks at the other sessions", a.command("redact", nil, "--all", "--apply"))
		return errPartial
	}
	return nil
}

// sayFound sums up what was found, and says which command takes it out.
func (a *app) sayFound(r *upkeep.RedactResult, apply string) error {
	times := 0
	for _, s := range r.Secrets {
		times += s.Count
	}
	a.say("%s found, %s in all; nothing was changed", render.Counted(len(r.Secrets), "secret", "secrets"), render.Counted(times, "time", "times"))
	if len(r.Secrets) > 0 {
		a.say("%s takes out what was found, for good", apply)
	}
	for _, l := range r.Unread {
		a.say("%s %s: %s", a.paint(yellow, "warning:"), l.Path, render.OneLine(l.Why, 0))
	}
	if len(r.Unread) > 0 {
		return errPartial
	}
	return nil
}

// sayUnfinished tells what becomes of a redaction that did not come to its end.
func (a *app) sayUnfinished(h *home.Home) {
	if left, err := h.Upkeep.Unfinished(context.Background()); err == nil && left.Unfinished {
		a.say("some secrets were not removed yet; no file is damaged. The next command that writes to the store finishes the job, or run: %s", a.command("redact", nil, "--all", "--apply"))
	}
}

// withRedact gives a writing command the flag --redact.
func (a *app) withRedact(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&a.flags.redact, "redact", "", "take secrets out (default: the setting redact)")
	cmd.Flags().Lookup("redact").NoOptDefVal = "true"
	return cmd
}
