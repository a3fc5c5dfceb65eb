package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

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
	var args, changes []string
	var suggest, auto bool
	var r home.AutoTagRequest
	cmd.Flags().BoolVar(&suggest, "suggest", false, "print words that would make good tags")
	cmd.Flags().BoolVar(&auto, "auto", false, "add the best of these words")
	cmd.Flags().BoolVar(&r.All, "all", false, "with --auto: every session without tags")
	cmd.Flags().BoolVar(&r.DryRun, "dry-run", false, "with --auto: only show what it would add")
	cmd.PersistentPreRunE = func(cmd *cobra.Command, given []string) error {
		a.call = fieldsOf(cmd)
		var err error
		if args, changes, err = parseTagArgs(cmd, given); err != nil {
			return usageError{err}
		}
		return a.settle()
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if help, _ := cmd.Flags().GetBool("help"); help {
			return cmd.Help()
		}
		if auto {
			if suggest || len(changes) > 0 || r.All == (len(args) > 0) {
				return usageError{errors.New("--auto takes sessions, or --all, and nothing else")}
			}
			r.Sessions = args
			return a.autoTag(cmd.Context(), r)
		}
		if r.All || r.DryRun {
			return usageError{errors.New("--all and --dry-run go with --auto")}
		}
		if len(args)+len(changes) == 0 && !suggest {
			return a.listTags(cmd.Context())
		}
		if len(args) != 1 {
			return usageError{fmt.Errorf("give one session, and changes that begin with + or -; %d arguments are neither", len(args))}
		}
		switch {
		case suggest && len(changes) > 0:
			return usageError{errors.New("--suggest only prints; give the changes without it")}
		case suggest:
			return a.suggestTags(cmd.Context(), args[0])
		}
		r := home.TagRequest{Session: args[0]}
		for _, change := range changes {
			if err := r.Change(change); err != nil {
				return err
			}
		}
		return a.runTag(cmd.Context(), r)
	}
	return a.withJSON(cmd)
}

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

func (a *app) runTag(ctx context.Context, r home.TagRequest) error {
	return a.withHome(ctx, false, func(h *home.Home) error {
		tagged, err := h.Sessions.Tag(ctx, r)
		if err != nil {
			return err
		}
		if len(r.Add)+len(r.Remove) > 0 {
			return a.done(tagged, tagged.Entry, "the tags of session "+render.ShortID(tagged.Session)+" are now: "+orNone(tagged.Tags))
		}
		if a.flags.json {
			return a.printJSON(tagged)
		}
		return a.printLines(tagged.Tags)
	})
}

// suggestTags prints words that set a session apart, and that are not its tags.
func (a *app) suggestTags(ctx context.Context, id string) error {
	return a.withHome(ctx, false, func(h *home.Home) error {
		words, err := h.Sessions.SuggestTags(ctx, home.SuggestTagsRequest{Session: id})
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.printJSON(words)
		}
		return a.printLines(words.Suggested)
	})
}

// listTags prints all tags, and how many sessions a list of each would have. On a
// terminal those below another are indented.
func (a *app) listTags(ctx context.Context) error {
	return a.withHome(ctx, false, func(h *home.Home) error {
		all, err := h.Sessions.Tags(ctx)
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.printJSON(all)
		}
		if len(all.Tags) == 0 {
			a.say("no tags")
			return nil
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
	})
}

// autoTag adds suggested tags, and says which.
func (a *app) autoTag(ctx context.Context, r home.AutoTagRequest) error {
	return a.withHome(ctx, false, func(h *home.Home) error {
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
	})
}

func orNone(tags []string) string {
	if len(tags) == 0 {
		return "none"
	}
	return render.OneLine(strings.Join(tags, " "), 0)
}
