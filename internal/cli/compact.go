package cli

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/session"
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
		Short: "Replace the beginning of the context by a summary",
		Long: "Appends a compaction: from here on the model is sent the summary instead of what\n" +
			"stands before the first kept entry. The session keeps it all, and coppice revert\n" +
			"takes the compaction back. A tool call is never separated from its result.\n\n" +
			"Tokens are counted as recorded in the entries, and where nothing was recorded\n" +
			"estimated at four bytes each.",
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
		plan, err := planCompaction(o.Session, f)
		if err != nil {
			return explainPlan(o.name, err)
		}
		if f.dryRun {
			return a.showPlan(ctx, o, plan)
		}
		compaction, err := o.AppendCompaction(summary, plan.FirstKept, plan.TokensBefore)
		if err != nil {
			return plainly("compact", o.name, err)
		}
		a.say("the summary stands for %s; kept: %s, about %s; coppice revert %s takes it back",
			counted(len(plan.Summarise), "entry", "entries"), counted(len(plan.Kept), "entry", "entries"),
			counted(plan.TokensKept, "token", "tokens"), o.name)
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
func planCompaction(s *session.Session, f *compactFlags) (*session.CompactionPlan, error) {
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
		return s.PlanCompaction(f.keepTokens, entryTokens)
	}
	first, err := resolveEntry(s, f.firstKept)
	if err != nil {
		return nil, err
	}
	if err := session.CheckCut(path, first); err != nil {
		return nil, err
	}
	return planFrom(s, path, first)
}

// planFrom is the plan of a compaction that keeps a path from an entry on. That
// may be more than the context has now: an earlier compaction is then replaced
// by one that keeps more.
func planFrom(s *session.Session, path []session.Entry, first string) (*session.CompactionPlan, error) {
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
		plan.TokensKept += entryTokens(e)
	}
	for _, e := range c.Entries {
		plan.TokensBefore += entryTokens(e)
		if !kept[e.ID] {
			plan.Summarise = append(plan.Summarise, e)
		}
	}
	return plan, nil
}

// What is assumed where no count was recorded.
const (
	bytesPerToken  = 4
	tokensPerImage = 1500
)

// entryTokens is the size of an entry as it was recorded, or an estimate.
func entryTokens(e session.Entry) int {
	switch {
	case e.Message != nil && e.Message.Tokens != nil:
		return *e.Message.Tokens
	case e.Message != nil:
		return contentTokens(e.Message.Content)
	case e.Compaction != nil:
		return len(e.Compaction.Summary) / bytesPerToken
	case e.BranchSummary != nil:
		return len(e.BranchSummary.Summary) / bytesPerToken
	case e.Merge != nil:
		return len(e.Merge.Summary) / bytesPerToken
	}
	return 0
}

func contentTokens(blocks []session.Content) int {
	size, images := 0, 0
	for _, c := range blocks {
		switch {
		case c.Text != nil:
			size += len(c.Text.Content)
		case c.Thinking != nil:
			size += len(c.Thinking.Content)
		case c.ToolUse != nil:
			input, _ := json.Marshal(c.ToolUse.Input) // what came out of JSON goes back
			size += len(c.ToolUse.Name) + len(input)
		case c.ToolResult != nil && len(c.ToolResult.Parts) > 0:
			images += contentTokens(c.ToolResult.Parts)
		case c.ToolResult != nil:
			size += len(c.ToolResult.Content)
		case c.Image != nil:
			images += tokensPerImage
		default:
			size += len(c.Raw)
		}
	}
	return (size+bytesPerToken-1)/bytesPerToken + images
}
