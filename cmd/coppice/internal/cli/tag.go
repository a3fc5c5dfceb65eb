package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// tagCommand takes changes as +tag and -tag, so that one step moves a session from one tag to
// another.
func tagCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tag [ID] [+TAG -TAG …]",
		Short: "Show, add (+) and remove (-) tags",
		Long: "Adds tags (+) to a session and removes tags (-). Without changes, prints the\n" +
			"session's tags; without a session, prints all tags and how many sessions have each.\n" +
			"Tags can be nested: forge also counts sessions with forge/parser or\n" +
			"forge/parser/tokens, and tag:forge in ls and search finds them.\n\n" +
			"--suggest prints words that set the session apart from others and would make good\n" +
			"tags; tags that other sessions already have come first. --auto adds the best of\n" +
			"them, to one session or, with --all, to every one that has no tags.",
		Example: "  coppice tag 0197ab +forge/parser -draft\n" +
			"  coppice tag 0197ab\n  coppice tag --auto --all --dry-run",
		// -draft is not a flag: parseTagArgs tells the arguments apart.
		DisableFlagParsing: true,
	}
	var f tagFlags
	cmd.Flags().BoolVar(&f.suggest, "suggest", false, "print words that would make good tags")
	cmd.Flags().BoolVar(&f.on, "auto", false, "add the best of these words")
	cmd.Flags().BoolVar(&f.auto.All, "all", false, "with --auto: every session without tags")
	cmd.Flags().BoolVar(&f.auto.DryRun, "dry-run", false, "with --auto: only show what it would add")
	cmd.PersistentPreRunE = func(cmd *cobra.Command, given []string) (err error) {
		if f.auto.Sessions, f.changes, err = parseTagArgs(cmd, given); err != nil {
			return usageError{err}
		}
		return a.prepare(cmd) // which looks at flags that were parsed only now
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if help, _ := cmd.Flags().GetBool("help"); help {
			return cmd.Help()
		}
		if err := f.check(); err != nil {
			return err
		}
		return a.withHome(cmd.Context(), false, func(h *home.Home) error { return a.tag(cmd.Context(), h, &f) })
	}
	return a.withJSON(cmd)
}

// tagFlags are what was asked for. The arguments that are not changes are in auto, which takes
// several sessions; everything else takes one.
type tagFlags struct {
	changes     []string
	suggest, on bool
	auto        home.AutoTagRequest
	one         home.TagRequest
}

// check refuses what does not go together, and settles the request for one session.
func (f *tagFlags) check() error {
	sessions := f.auto.Sessions
	switch {
	case f.on && (f.suggest || len(f.changes) > 0 || f.auto.All == (len(sessions) > 0)):
		return misuse("--auto takes sessions, or --all, and nothing else")
	case !f.on && (f.auto.All || f.auto.DryRun):
		return misuse("--all and --dry-run go with --auto")
	case f.on || f.listsAll():
		return nil
	case len(sessions) != 1:
		return misuse("give one session, and changes that begin with + or -; %d arguments are neither", len(sessions))
	case f.suggest && len(f.changes) > 0:
		return misuse("--suggest only prints; give the changes without it")
	}
	f.one.Session = sessions[0]
	for _, change := range f.changes {
		if err := f.one.Change(change); err != nil {
			return err
		}
	}
	return nil
}

// listsAll reports whether nothing was given, which asks for the tags of all sessions.
func (f *tagFlags) listsAll() bool { return len(f.auto.Sessions)+len(f.changes) == 0 && !f.suggest }

// parseTagArgs separates the changes (+a, -b) from the flags, which it parses,
// and the arguments, which it returns.
func parseTagArgs(cmd *cobra.Command, given []string) (args, changes []string, err error) {
	var rest []string
	for _, arg := range given {
		isChange := strings.HasPrefix(arg, "+") || strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--")
		if isChange && arg != "-h" {
			changes = append(changes, arg)
		} else {
			rest = append(rest, arg)
		}
	}
	cmd.DisableFlagParsing = false
	defer func() { cmd.DisableFlagParsing = true }()
	if err := cmd.ParseFlags(rest); err != nil {
		return nil, nil, cmd.FlagErrorFunc()(cmd, err)
	}
	return cmd.Flags().Args(), changes, nil
}

// tag does the one thing that check has found to be asked for.
func (a *app) tag(ctx context.Context, h *home.Home, f *tagFlags) error {
	switch {
	case f.on:
		return a.autoTag(ctx, h, f.auto)
	case f.listsAll():
		return a.listTags(ctx, h)
	case f.suggest: // words that set a session apart, and that are not its tags
		words, err := h.Sessions.SuggestTags(ctx, home.SessionRequest{Session: f.one.Session})
		if err != nil || a.flags.json {
			return a.asJSON(words, err)
		}
		return a.printLines(words.Suggested)
	}
	tagged, err := h.Sessions.Tag(ctx, f.one)
	switch {
	case err == nil && len(f.changes) > 0:
		return a.done(tagged, tagged.Entry, "the tags of session "+render.ShortID(tagged.Session)+" are now: "+orNone(tagged.Tags))
	case err != nil || a.flags.json:
		return a.asJSON(tagged, err)
	}
	return a.printLines(tagged.Tags)
}

// listTags prints all tags, and how many sessions a list of each would have. On a
// terminal those below another are indented.
func (a *app) listTags(ctx context.Context, h *home.Home) error {
	all, err := h.Sessions.Tags(ctx)
	if err != nil || a.flags.json {
		return a.asJSON(all, err)
	}
	if len(all.Tags) == 0 {
		a.say("no tags")
	}
	t := a.newTable("TAG", "TAG", ">SESSIONS")
	above := ""
	for _, tag := range all.Tags {
		shown := tag.Tag
		if below, ok := strings.CutPrefix(tag.Tag, above+"/"); a.width() > 0 && above != "" && ok {
			shown = "  " + below
		} else {
			above = tag.Tag
		}
		t.add(render.OneLine(shown, 0), strconv.FormatInt(tag.WithBelow, 10))
	}
	return t.print()
}

// autoTag adds suggested tags, and says which.
func (a *app) autoTag(ctx context.Context, h *home.Home, r home.AutoTagRequest) error {
	done, err := h.Sessions.AutoTag(ctx, r)
	if err != nil && done == nil {
		return err
	}
	if a.flags.json {
		return errors.Join(a.printJSON(done), err)
	}
	t := a.newTable("TITLE", "SESSION", "TITLE", "TAGS")
	for _, s := range done.Tagged {
		t.add(render.ShortID(s.Session), render.OneLine(s.Title, 0), render.OneLine(strings.Join(s.Added, " "), 0))
	}
	if err := errors.Join(t.print(), err); err != nil {
		return err
	}
	verb := "tagged"
	if r.DryRun {
		verb = "would tag"
	}
	a.say("%s %s", verb, render.Counted(len(done.Tagged), "session", "sessions"))
	return nil
}

// orNone lists tags for the end of a sentence.
func orNone(tags []string) string {
	if len(tags) == 0 {
		return "none"
	}
	return render.OneLine(strings.Join(tags, " "), 0)
}
