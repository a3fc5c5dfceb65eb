package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// planJSON is what compact --dry-run --json prints.
type planJSON struct {
	Session      string          `json:"session"`
	FirstKept    string          `json:"first_kept"`
	Cut          string          `json:"cut"` // turn or step
	TokensBefore int             `json:"tokens_before"`
	TokensKept   int             `json:"tokens_kept"`
	Over         int             `json:"over"`       // how many more than --keep-tokens
	Estimated    bool            `json:"estimated"`  // some entries had no recorded count
	StandsFor    int             `json:"stands_for"` // how many entries of the path the summary replaces
	Summarise    []planEntryJSON `json:"summarise"`
	Kept         []planEntryJSON `json:"kept"`
}

type planEntryJSON struct {
	ID     string        `json:"id"`
	Kind   string        `json:"kind"`
	Tokens int           `json:"tokens"`
	Source window.Source `json:"source"` // who counted
	Text   string        `json:"text"`
}

// showPlan prints what a compaction would do.
func (a *app) showPlan(ctx context.Context, o opened, plan *session.CompactionPlan, standsFor int, counter tokenCounter) error {
	if a.flags.json {
		return a.printJSON(planJSON{
			Session: o.ID(), FirstKept: plan.FirstKept, Cut: plan.Kind.String(),
			TokensBefore: plan.TokensBefore, TokensKept: plan.TokensKept, Over: plan.Over,
			Estimated: counter.estimates(plan.Summarise) || counter.estimates(plan.Kept), StandsFor: standsFor,
			Summarise: planEntries(plan.Summarise, counter), Kept: planEntries(plan.Kept, counter),
		})
	}
	short, err := a.entryNames(ctx, o)
	if err != nil {
		return err
	}
	t := a.newTable(4, "", "ENTRY", "KIND", "TOKENS", "TEXT")
	t.right[3] = true
	add := func(what string, entries []session.Entry) {
		for i := range entries {
			e := &entries[i]
			t.add(what, short(e.ID), render.Kind(e), fmt.Sprint(counter.entry(*e)), render.Gist(e, 0))
		}
	}
	add("summarise", plan.Summarise)
	add("keep", plan.Kept)
	if err := t.print(); err != nil {
		return err
	}
	a.say("the summary would stand for %s; kept: %s, about %s of %s (where no count was recorded, by %s)",
		counted(standsFor, "entry", "entries"), keptIn(plan),
		thousands(plan.TokensKept), counted(plan.TokensBefore, "token", "tokens"), counter.Name())
	return nil
}

// keptIn says what a plan keeps: from where on, and what stays from before that.
func keptIn(plan *session.CompactionPlan) string {
	at := slices.IndexFunc(plan.Kept, func(e session.Entry) bool { return e.ID == plan.FirstKept })
	system, prompt := 0, 0
	for i := range plan.Kept[:max(at, 0)] {
		if plan.Kept[i].BeginsTurn() {
			prompt++
		} else {
			system++
		}
	}
	var also []string
	if system > 0 {
		also = append(also, counted(system, "system message", "system messages"))
	}
	if prompt > 0 {
		also = append(also, "the question that is being answered")
	}
	kept := counted(len(plan.Kept), "entry", "entries")
	if len(also) > 0 {
		kept += ", with " + strings.Join(also, " and ")
	}
	return kept
}

// sayMissed says by how much a plan misses what was asked for.
func (a *app) sayMissed(plan *session.CompactionPlan, f *compactFlags) {
	if plan.Over > 0 {
		a.say("that is %s more than --keep-tokens %d: no legal cut keeps less", counted(plan.Over, "token", "tokens"), f.keepTokens)
	}
}

func planEntries(entries []session.Entry, counter tokenCounter) []planEntryJSON {
	list := make([]planEntryJSON, len(entries))
	for i := range entries {
		cost := counter.cost(&entries[i])
		list[i] = planEntryJSON{entries[i].ID, render.Kind(&entries[i]), cost.Tokens, cost.By, render.Gist(&entries[i], 0)}
	}
	return list
}
