package cli

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
)

type importFlags struct {
	home.ImportRequest
	watch, verbose bool
	interval       time.Duration
}

// importCommand can always be run again: what is known already is not read twice, so there is
// no need to remember what was imported.
func importCommand(a *app) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import [PATH…|-]",
		Short: "Read the transcripts of other programs",
		Long: "Reads the transcripts of other programs into sessions. PATH is a file, or\n" +
			"a directory with transcripts in it; - is standard input. The format is detected\n" +
			"from the content; --from overrides it. What coppice export wrote as json or jsonl\n" +
			"comes back as the session that it was.\n\n" +
			"It prints one line for each program: files, sessions and entries that are new.\n" +
			"What could not be read comes last; -v shows every session.\n\n" +
			"Importing again adds only what is new. A session stays when its source is\n" +
			"deleted. Every byte that was read is kept, compressed, beside the entries made\n" +
			"from it: coppice show --raw prints it.",
		Example: "  coppice import --all --dry-run\n" +
			"  coppice import ~/.claude/projects\n" +
			"  coppice import --watch --all\n" +
			"  coppice import --from openai - < messages.json",
		RunE: func(cmd *cobra.Command, args []string) error { return a.runImport(cmd.Context(), args, &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Format, "from", "", "the `format`; default: what the content looks like")
	flags.BoolVar(&f.All, "all", false, "everything that known programs keep on this machine")
	flags.BoolVar(&f.watch, "watch", false, "keep importing as files grow, until interrupted")
	flags.BoolVar(&f.DryRun, "dry-run", false, "print what would be imported, and write nothing")
	flags.BoolVar(&f.Redact, "redact", false, "take out secrets, even from the bytes that are kept")
	flags.BoolVar(&f.Again, "again", false, "read files from the beginning, even if they did not change")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "show every session and what its records became")
	flags.DurationVar(&f.interval, "interval", time.Second, "how often --watch looks for changes")
	cmd.MarkFlagsMutuallyExclusive("watch", "dry-run")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(home.ImportFormats(), cobra.ShellCompDirectiveNoFileComp))
	return a.withJSON(cmd)
}

// runImport prints what was done even if it was interrupted, since everything that was reported
// is durable by then.
func (a *app) runImport(ctx context.Context, args []string, f *importFlags) error {
	if f.interval <= 0 {
		return misuse("--interval must be greater than 0")
	}
	return a.withHome(ctx, true, func(h *home.Home) error {
		p := &importPrinter{app: a, flags: f}
		f.Paths = args
		if f.watch {
			f.Watch = home.Age(f.interval)
			a.say("watching; interrupt to stop")
		}
		result, err := h.Transfer.Import(ctx, f.ImportRequest, a.stdin, p.hear)
		a.bar.done()
		if err != nil && ctx.Err() == nil && result.Files == 0 { // it did not begin
			if errors.Is(err, fs.ErrNotExist) {
				err = hinted(err, a.command("import --all", nil)+" finds what other agents keep on this machine")
			}
			return err
		}
		if f.watch && err == nil {
			err = ctx.Err() // an interrupt ends a watch, and it ends as every command does
		}
		return errors.Join(p.result(result, ctx.Err() != nil && !f.watch), err)
	})
}
