package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// defaultKeepTokens is how much of a conversation's end compact keeps. It is
// about what the work at hand needs.
const defaultKeepTokens = 20_000

type compactFlags struct {
	summary    string
	keepTokens int
	firstKept  string
	dryRun     bool
}

func compactCommand(a *app) *cobra.Command {
	var f compactFlags
	cmd := &cobra.Command{
		Use:   "compact ID --summary TEXT",
		Short: "Let a summary stand for the beginning",
		Long: "Appends a compaction: from here on the model is sent the summary instead of what\n" +
			"stands before the first kept entry. The session keeps it all, and coppice revert\n" +
			"takes the compaction back.\n\n" +
			"A conversation of several sessions is compacted as a whole: the compaction is\n" +
			"appended to the session that has the first kept entry.\n\n" +
			"What is kept begins with a question of the user if it can, or else between two\n" +
			"steps of an answer: then the question stays, too. So do system messages. A tool\n" +
			"call is never separated from its result, and stays while it waits for it. If nothing\n" +
			"fits --keep-tokens, as little as possible is kept.\n\n" +
			"Tokens are counted as recorded in the entries. Where nothing was recorded they\n" +
			"are counted, or for models whose vocabulary is not public estimated.",
		GroupID:           "tree",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeSession(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runCompact(cmd.Context(), args[0], &f) },
	}
	cmd.Flags().StringVar(&f.summary, "summary", "", "the summary; - is standard input")
	cmd.Flags().IntVar(&f.keepTokens, "keep-tokens", defaultKeepTokens, "keep as much of the end as fits this many tokens")
	cmd.Flags().StringVar(&f.firstKept, "first-kept", "", "keep from this entry on")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show what would be summarised and what kept")
	cmd.MarkFlagsMutuallyExclusive("keep-tokens", "first-kept")
	_ = cmd.RegisterFlagCompletionFunc("first-kept", a.completeEntries) // fails only for a flag that does not exist
	return a.withJSON(cmd)
}

func (a *app) runCompact(ctx context.Context, id string, f *compactFlags) error {
	summary, err := a.flagText(f.summary)
	if err != nil {
		return err
	}
	switch {
	case summary == "" && !f.dryRun:
		return usageError{errors.New("a compaction needs a --summary; --dry-run shows what it must cover")}
	case f.keepTokens < 0:
		return usageError{errors.New("--keep-tokens is negative")}
	}
	return a.withConversation(ctx, id, false, func(o opened) error {
		counter, err := counterOf(o.Session)
		if err != nil {
			return err
		}
		plan, err := planCompaction(o.Session, f, counter)
		if err != nil {
			_, smaller := o.PlanCompaction(0, counter.entry)
			return explainPlan(o.name, err, smaller == nil)
		}
		standsFor, err := o.StandsFor(plan.FirstKept)
		if err != nil {
			return plainly("compact", o.name, err)
		}
		if f.dryRun {
			err := a.showPlan(ctx, o, plan, standsFor, counter)
			if !a.flags.json {
				a.sayMissed(plan, f)
			}
			return err
		}
		compaction, err := o.AppendCompaction(summary, plan.FirstKept, plan.TokensBefore)
		if err != nil {
			return plainly("compact", o.name, err)
		}
		a.say("the summary stands for %s; kept: %s, about %s; %s takes it back",
			counted(standsFor, "entry", "entries"), keptIn(plan),
			counted(plan.TokensKept, "token", "tokens"), command("revert", []string{o.name}))
		a.sayMissed(plan, f)
		return a.print("%s", compaction)
	})
}

// explainPlan says why there is no plan, and what would help: to keep fewer tokens
// only if there is anything that can be left out.
func explainPlan(name string, err error, smaller bool) error {
	if !errors.Is(err, session.ErrNothingToCompact) {
		return err
	}
	why := strings.TrimSuffix(err.Error(), ": "+session.ErrNothingToCompact.Error())
	hint := ""
	if smaller {
		hint = "--keep-tokens with a smaller number keeps less, --first-kept says from where"
	}
	return usageError{&session.Error{Op: "compact", Name: name, Err: errors.New("nothing to compact: " + why), Hint: hint}}
}

// planCompaction finds the cut.
func planCompaction(s *session.Session, f *compactFlags, counter tokenCounter) (*session.CompactionPlan, error) {
	if f.firstKept != "" {
		first, err := resolveEntry(s, f.firstKept)
		if err != nil {
			return nil, err
		}
		return s.PlanCompactionAt(first, counter.entry)
	}
	return s.PlanCompaction(f.keepTokens, counter.entry)
}

// tokenCounter counts entries as they were recorded and, where nothing was, as
// the model in force counts.
type tokenCounter struct {
	window.Counter
	whose string                 // the provider and the model
	known map[string]window.Cost // of the entries in the context, as a window counts them
}

func counterOf(s *session.Session) (tokenCounter, error) {
	c, err := s.Context(session.ContextOptions{Shared: true})
	if err != nil {
		return tokenCounter{}, err
	}
	counter, err := counterNamed("", c.Provider, c.Model)
	if err != nil {
		return tokenCounter{}, err
	}
	whole, err := measuredBy(c, counter)
	if err != nil {
		return tokenCounter{}, err
	}
	known := make(map[string]window.Cost, len(whole.Entries))
	for i := range whole.Entries {
		known[whole.Entries[i].ID] = whole.Costs[i]
	}
	return tokenCounter{counter, c.Provider + "/" + c.Model, known}, nil
}

func (t tokenCounter) cost(e *session.Entry) window.Cost {
	if cost, ok := t.known[e.ID]; ok {
		return cost
	}
	return window.CountEntry(t.Counter, t.whose, e)
}

func (t tokenCounter) entry(e session.Entry) int { return t.cost(&e).Tokens }

// estimates reports whether the size of any of the entries is a guess.
func (t tokenCounter) estimates(entries []session.Entry) bool {
	return slices.ContainsFunc(entries, func(e session.Entry) bool { return t.cost(&e).By == window.Estimated })
}
