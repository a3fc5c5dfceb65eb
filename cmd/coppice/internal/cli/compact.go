package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// compactCommand has a dry run, because what a cut removes from the model's view cannot be
// guessed from a number of tokens.
func compactCommand(a *app) *cobra.Command {
	var r home.CompactRequest
	var keep int
	var auto autoFlags
	cmd := &cobra.Command{
		Use:   "compact ID",
		Short: "Replace old messages with a summary",
		Long: "Appends a compaction: from here on the model is sent the summary instead of what\n" +
			"comes before the first kept entry. The session keeps everything, and coppice revert\n" +
			"undoes the compaction.\n\n" +
			"With --auto, the model in the settings (coppice config) writes the summary, or\n" +
			"updates the last one, and lists the files that were read and changed. If it fails,\n" +
			"nothing is written.\n\n" +
			"A conversation that spans several sessions is compacted as a whole: the compaction\n" +
			"goes to the last one.\n\n" +
			"What is kept begins with one of the user's questions if possible, or else between\n" +
			"two steps of an answer, together with its question. System messages are always kept.\n" +
			"A tool call is never separated from its result, and is kept while it waits for one.\n" +
			"If nothing fits --keep-tokens, as little as possible is kept.\n\n" +
			"Tokens are those recorded in the entries. Where none are recorded they are counted,\n" +
			"or estimated for models whose vocabulary is not public.",
		Example: "  coppice compact 7f3a91c2 --auto --dry-run\n" +
			"  coppice compact 7f3a91c2 --auto --instructions 'keep the errors'\n" +
			"  coppice compact 7f3a91c2 --summary 'We chose SQLite.'",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			r.Session = args[0]
			if r.Auto, err = auto.request(a, &r.Summary); err != nil {
				return err
			}
			r.KeepTokens = ifGiven(cmd, "keep-tokens", &keep)
			return a.withHome(cmd.Context(), false, func(h *home.Home) error { return a.compact(cmd.Context(), h, r, keep) })
		},
	}
	cmd.Flags().StringVar(&r.Summary, "summary", "", "the summary; - is standard input")
	cmd.Flags().IntVar(&keep, "keep-tokens", home.DefaultKeepTokens, "keep this many tokens of the end, at most")
	cmd.Flags().StringVar(&r.FirstKept, "first-kept", "", "keep from this entry on")
	cmd.Flags().BoolVar(&r.DryRun, "dry-run", false, "show what would be summarised and kept; write nothing")
	auto.register(cmd, "auto", "write the summary")
	cmd.MarkFlagsMutuallyExclusive("keep-tokens", "first-kept")
	cmd.MarkFlagsMutuallyExclusive("summary", "auto")
	return a.withJSON(a.picking(cmd))
}

// compact says when the limit was missed: a call and its result are never parted, so the
// shortest possible cut may be longer than what was asked for.
func (a *app) compact(ctx context.Context, h *home.Home, r home.CompactRequest, keep int) error {
	plan, err := h.Entries.Compact(ctx, r)
	if err != nil {
		return err
	}
	missed := ""
	if plan.Over > 0 {
		missed = fmt.Sprintf("; that is %s more than --keep-tokens %d, but no shorter cut is possible", render.Counted(plan.Over, "token", "tokens"), keep)
	}
	if r.DryRun {
		return a.showPlan(ctx, h, r.Session, plan, missed)
	}
	return a.done(plan, plan.Entry, fmt.Sprintf("the summary replaces %s; kept: %s, about %s; %s takes it back%s%s",
		render.Counted(plan.StandsFor, "entry", "entries"), keptIn(plan), render.Counted(plan.TokensKept, "token", "tokens"),
		a.command("revert", []string{calling(r.Session, plan.Session)}), missed, wroteIt(plan.Auto)))
}

// showPlan prints what a compaction would do.
func (a *app) showPlan(ctx context.Context, h *home.Home, given string, plan *home.CompactResult, missed string) error {
	if a.flags.json {
		return a.printJSON(plan)
	}
	short, err := a.listedNames(ctx, h, home.EntryNamesRequest{Sessions: []string{given}})
	if err != nil {
		return err
	}
	t := a.newTable("TEXT", "", "ENTRY", "KIND", ">TOKENS", "TEXT")
	add := func(what string, entries []home.PlanEntry) {
		for _, e := range entries {
			t.add(what, short.Name(e.ID), e.Kind, fmt.Sprint(e.Tokens), e.Text)
		}
	}
	add("summarise", plan.Summarise)
	add("keep", plan.Kept)
	if err := t.print(); err != nil {
		return err
	}
	a.say("the summary would replace %s; kept: %s, about %s of %s (where no count was recorded, by %s)%s",
		render.Counted(plan.StandsFor, "entry", "entries"), keptIn(plan),
		render.Thousands(plan.TokensKept), render.Counted(plan.TokensBefore, "token", "tokens"), plan.Counter, missed)
	return nil
}

// keptIn says what a plan keeps: from where on, and what stays from before that.
func keptIn(plan *home.CompactResult) string {
	system, prompt := 0, false
	for _, e := range plan.Kept {
		if e.ID == plan.FirstKept {
			break
		}
		if e.Kind == "system" {
			system++
		} else {
			prompt = true
		}
	}
	var also []string
	if system > 0 {
		also = append(also, render.Counted(system, "system message", "system messages"))
	}
	if prompt {
		also = append(also, "the question that is being answered")
	}
	kept := render.Counted(len(plan.Kept), "entry", "entries")
	if len(also) > 0 {
		kept += ", with " + strings.Join(also, " and ")
	}
	return kept
}
