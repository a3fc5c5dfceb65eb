package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render"
)

type exportFlags struct {
	home.ExportRequest
	to  string
	all bool
}

// exportCommand writes for people, for Coppice and for other programs. The first two are chosen
// by --format and the last by --to, because only there are the files put where a program looks
// for them.
func exportCommand(a *app) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export ID…",
		Short: "Write sessions for people or programs",
		Long: "Writes sessions for people or other programs:\n\n" +
			"  md     the conversation as Markdown\n" +
			"  html   one page with all branches, tools and images, for reading offline\n" +
			"  json   one document with the header, all entries, the leaf and the labels\n" +
			"  jsonl  the bytes of the log; --inline fills in what is kept in blobs\n\n" +
			"coppice import reads json, and jsonl with --inline. Such a file is checked before it\n" +
			"replaces an older one, and is not written if content is missing; the other formats\n" +
			"show where it is missing. Either way, the exit code is then 3.\n\n" +
			"Sessions that continue each other are written as one conversation; --link writes\n" +
			"only the one you name. Several conversations, or --all, go to a directory: a\n" +
			"file for each, named after its id. As json and jsonl, each session of a conversation\n" +
			"gets its own file, so that import can read all of them.\n\n" +
			"--to writes the files of another program, where that program looks for them, and\n" +
			"prints their paths and the command that continues the conversation there. It checks\n" +
			"the files and lists what they cannot hold. The formats:\n\n" +
			strings.Join(home.ProgramFormats(), ", ") + ".",
		Example: "  coppice export 7f3a91c2 -o talk.html\n  coppice export 7f3a91c2 --format md | less\n" +
			"  coppice export 7f3a91c2 --to codex\n  coppice export --all --format html -o pages/",
		Args: cobra.ArbitraryArgs, // none with --all
		RunE: func(cmd *cobra.Command, args []string) error { return a.runExport(cmd.Context(), args, &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Format, "format", "", "as md, html, json or jsonl; default: FILE's ending, or md")
	flags.StringVarP(&f.Path, "output", "o", "", "write to `FILE`, or into the directory DIR/")
	flags.StringVar(&f.Leaf, "leaf", "", "end the path at this `entry` (not with json, jsonl)")
	flags.BoolVar(&f.Inline, "inline", false, "with jsonl: fill in the content that is kept in blobs")
	flags.BoolVar(&f.Force, "force", false, "overwrite FILE")
	flags.StringVar(&f.to, "to", "", "another `program`'s format, such as codex")
	flags.BoolVar(&f.all, "all", false, "every conversation")
	linkFlag(cmd, &f.Link)
	chainFlag(cmd)
	flags.BoolVar(&f.Redact, "redact", false, "take out secrets")
	cmd.MarkFlagsMutuallyExclusive("to", "format")
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(home.ProgramFormats(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(home.ExportFormats(), cobra.ShellCompDirectiveNoFileComp))
	return a.withJSON(cmd)
}

// check refuses what the flags cannot say. Each of --format and --to takes a part of the
// formats.
func (f *exportFlags) check(asJSON bool) error {
	own, others := home.ExportFormats(), home.ProgramFormats()
	switch {
	case f.Format != "" && !slices.Contains(own, f.Format):
		return wrongFormat("--format", f.Format, own, "--to", others)
	case f.to != "" && !slices.Contains(others, f.to):
		return wrongFormat("--to", f.to, others, "--format", own)
	case asJSON && f.to == "" && (f.Path == "" || f.Path == "-"):
		return misuse("--json reports what was written to files; it needs -o or --to (--format json writes the session as JSON)")
	}
	return nil
}

// wrongFormat is the error of a flag whose value is not a format of it. It may be one of the
// other flag.
func wrongFormat(flag, given string, formats []string, other string, otherFormats []string) error {
	err := misuse("%s is %q; it must be one of %s", flag, given, strings.Join(formats, ", "))
	var near []string
	if slices.Contains(otherFormats, given) {
		near = []string{other + " " + given}
	}
	for _, format := range index.Nearest(given, formats) {
		near = append(near, flag+" "+format)
	}
	if len(near) == 0 {
		return err
	}
	return hinted(err, "did you mean: "+strings.Join(near, ", "))
}

// runExport exports one conversation differently from several: one may go to standard output
// and may fail, while several go to files, and one that fails does not stop the rest.
func (a *app) runExport(ctx context.Context, args []string, f *exportFlags) error {
	if err := f.check(a.flags.json); err != nil {
		return err
	}
	request := f.ExportRequest
	request.Format = cmp.Or(f.to, f.Format)
	return a.withHome(ctx, false, func(h *home.Home) error {
		meant, err := h.Sessions.Distinct(ctx, home.DistinctRequest{Sessions: args, Link: f.Link})
		if err != nil {
			return err
		}
		if f.all || len(meant.Sessions) != 1 {
			return a.exportAll(ctx, h, home.ExportAllRequest{ExportRequest: request, Sessions: meant.Sessions, All: f.all})
		}
		request.Session = meant.Sessions[0]
		done, err := a.exportOne(ctx, h, request, f.to != "")
		if err != nil {
			return a.hintExport(err, f)
		}
		if err := a.printExported(done, f); err != nil || len(done.Missing) == 0 {
			return err
		}
		a.sayMissing(a.nameOf(ctx, h, done.Session), nil, done.Missing)
		return errPartial
	})
}

// exportOne exports a conversation. What goes to standard output is made harmless
// if that is a terminal.
func (a *app) exportOne(ctx context.Context, h *home.Home, r home.ExportRequest, toProgram bool) (done *home.ExportResult, err error) {
	into := func(w io.Writer) func(home.ExportPiece) error {
		return func(p home.ExportPiece) error {
			_, err := w.Write(p.Data)
			return err
		}
	}
	if !toProgram && (r.Path == "" || r.Path == "-") {
		err = a.printDocument(strings.HasPrefix(r.Format, "json"), func(w io.Writer) error {
			done, err = h.Transfer.Export(ctx, r, into(w))
			return err
		})
		return done, err
	}
	var document bytes.Buffer
	if done, err = h.Transfer.Export(ctx, r, into(&document)); err != nil || document.Len() == 0 {
		return done, err
	}
	return done, a.printBytes(document.Bytes())
}

// exportAll exports several conversations.
func (a *app) exportAll(ctx context.Context, h *home.Home, r home.ExportAllRequest) error {
	var failures []error
	incomplete := false
	result, err := h.Transfer.ExportAll(ctx, r, func(e home.ExportEvent) error {
		if e.Error != nil {
			failures = append(failures, e.Error)
			return nil
		}
		done := e.Result
		a.bar.done()
		if a.flags.json {
			return a.printJSON(done)
		}
		if err := a.printWritten(done); err != nil {
			return err
		}
		if len(done.Missing) > 0 {
			incomplete = true
			a.sayMissing(a.nameOf(ctx, h, done.Session), nil, done.Missing)
		}
		return nil
	})
	if result.Exported+result.Failed == 0 && err != nil {
		return err
	}
	a.bar.done()
	exist := 0
	for _, failure := range failures {
		if home.KindOf(failure) == home.KindExists {
			exist++
		} else {
			a.sayError(failure)
		}
	}
	text := "exported " + render.Counted(result.Exported, "conversation", "conversations")
	if exist > 0 {
		text += fmt.Sprintf("; %d not, because files of them exist already; --force overwrites these", exist)
	}
	if others := result.Failed - exist; others > 0 {
		text += fmt.Sprintf("; %d could not be written", others)
	}
	a.say("%s", text)
	if err == nil && (result.Failed > 0 || incomplete) {
		err = errPartial
	}
	return err
}

// printExported says what was written.
func (a *app) printExported(done *home.ExportResult, f *exportFlags) error {
	if a.flags.json {
		return a.printJSON(done)
	}
	if f.to == "" {
		for _, path := range done.Paths {
			a.say("wrote %s", path)
		}
		return nil
	}
	return a.printWritten(done)
}

// sayMissing lists the content that cannot be read of a session. short has the names of entries
// that are known.
func (a *app) sayMissing(session string, short render.Names, missing []home.MissingContent) {
	for _, m := range missing[:min(len(missing), maxMissing)] {
		what := cmp.Or(m.Blob, m.Why, "the entry cannot be read")
		if m.Entry != "" {
			what = "entry " + short.Shown(m.Entry) + ": " + what
		}
		a.say("%s %s", a.paint(yellow, "content is missing:"), what)
	}
	if more := len(missing) - maxMissing; more > 0 {
		a.say("and %d more", more)
	}
	a.say("%s %s says more", a.paint(dim, "hint:"), a.command("fsck", []string{session}))
}

// maxMissing is how much missing content is listed.
const maxMissing = 10

// printWritten prints the files that were written, and says what another program's do not hold
// of a conversation, and how to continue there.
func (a *app) printWritten(done *home.ExportResult) error {
	if err := a.printLines(done.Paths); err != nil {
		return err
	}
	a.sayLosses(done.Losses)
	if done.Resume != "" {
		a.commands.add(done.Resume)
		a.say("to continue there: %s", done.Resume)
	}
	return nil
}

// sayLosses lists what another program's files cannot hold.
func (a *app) sayLosses(losses []home.ExportLoss) {
	for _, loss := range losses {
		times := ""
		if loss.N > 1 {
			times = fmt.Sprintf(" (%d times)", loss.N)
		}
		a.say("%s %s%s: %s", a.paint(yellow, "not carried over:"), loss.What, times, loss.Why)
	}
}

// hintExport says what a flag can do about an error.
func (a *app) hintExport(err error, f *exportFlags) error {
	switch kind := home.KindOf(err); {
	case kind == home.KindExists && f.to != "":
		return hinted(err, "--force replaces it and keeps it as .bak; -o writes elsewhere")
	case errors.Is(err, home.ErrIncomplete):
		return hinted(err, a.command("fsck", nil)+" says more; md and html show what is left, and jsonl without --inline has the log as it is")
	case kind == home.KindInvalid && f.Format == "" && f.to == "" && f.Path != "":
		return hinted(err, "--format names one: "+strings.Join(home.ExportFormats(), ", "))
	}
	return hintForce(err)
}
