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
			"takes the compaction back. A tool call is never separated from its result.\n\n" +
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
	return a.withOpened(ctx, id, func(o opened) error {
		counter, err := counterOf(o.Session)
		if err != nil {
			return err
		}
		plan, err := planCompaction(o.Session, f, counter)
		if err != nil {
			return explainPlan(o.name, err)
		}
		if f.dryRun {
			return a.showPlan(ctx, o, plan, counter)
		}
		compaction, err := o.AppendCompaction(summary, plan.FirstKept, plan.TokensBefore)
		if err != nil {
			return plainly("compact", o.name, err)
		}
		a.say("the summary stands for %s; kept: %s, about %s; %s takes it back",
			counted(len(plan.Summarise), "entry", "entries"), counted(len(plan.Kept), "entry", "entries"),
			counted(plan.TokensKept, "token", "tokens"), command("revert", []string{o.name}))
		return a.print("%s", compaction)
	})
}

func explainPlan(name string, err error) error {
	if !errors.Is(err, session.ErrNothingToCompact) {
		return err
	}
	why := strings.TrimSuffix(err.Error(), ": "+session.ErrNothingToCompact.Error())
	return usageError{&session.Error{
		Op: "compact", Name: name, Err: errors.New("nothing to compact: " + why),
		Hint: "--keep-tokens with a smaller number keeps less, --first-kept says from where",
	}}
}

// planCompaction finds the cut, and refuses one that would not be legal.
func planCompaction(s *session.Session, f *compactFlags, counter tokenCounter) (*session.CompactionPlan, error) {
	path, err := s.PathTo("")
	if err != nil {
		return nil, err
	}
	var cuts session.Cuts
	for i := range path {
		cuts.Add(path[i])
	}
	if cuts.Pending() {
		return nil, &session.CutError{EntryID: s.LeafID(), Reason: "a tool call still waits for its result"}
	}
	if f.firstKept == "" {
		return s.PlanCompaction(f.keepTokens, counter.entry)
	}
	first, err := resolveEntry(s, f.firstKept)
	if err != nil {
		return nil, err
	}
	if err := session.CheckCut(path, first); err != nil {
		return nil, err
	}
	return planFrom(s, path, first, counter)
}

// planFrom is the plan of a compaction that keeps a path from an entry on. That
// may be more than the context has now: an earlier compaction is then replaced
// by one that keeps more.
func planFrom(s *session.Session, path []session.Entry, first string, counter tokenCounter) (*session.CompactionPlan, error) {
	c, err := s.Context(session.ContextOptions{})
	if err != nil {
		return nil, err
	}
	plan := &session.CompactionPlan{FirstKept: first}
	at := slices.IndexFunc(path, func(e session.Entry) bool { return e.ID == first })
	kept := make(map[string]bool)
	for _, e := range path[at:] {
		if e.Message == nil && e.BranchSummary == nil && e.Merge == nil {
			continue // it gives the model nothing
		}
		kept[e.ID] = true
		plan.Kept = append(plan.Kept, e)
		plan.TokensKept += counter.entry(e)
	}
	for _, e := range c.Entries {
		plan.TokensBefore += counter.entry(e)
		if !kept[e.ID] {
			plan.Summarise = append(plan.Summarise, e)
		}
	}
	return plan, nil
}

// tokenCounter counts entries as they were recorded and, where nothing was, as
// the model in force counts.
type tokenCounter struct {
	window.Counter
	whose string // the provider and the model
}

func counterOf(s *session.Session) (tokenCounter, error) {
	c, err := s.Context(session.ContextOptions{})
	if err != nil {
		return tokenCounter{}, err
	}
	counter, err := counterNamed("", c.Provider, c.Model)
	return tokenCounter{counter, c.Provider + "/" + c.Model}, err
}

func (t tokenCounter) entry(e session.Entry) int { return window.CountEntry(t, t.whose, &e).Tokens }
