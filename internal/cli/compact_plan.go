package cli

import (
	"context"
	"fmt"

	"github.com/coppice-dev/coppice/session"
)

// planJSON is what compact --dry-run --json prints.
type planJSON struct {
	Session      string          `json:"session"`
	FirstKept    string          `json:"first_kept"`
	TokensBefore int             `json:"tokens_before"`
	TokensKept   int             `json:"tokens_kept"`
	Estimated    bool            `json:"estimated"` // some entries had no recorded count
	Summarise    []planEntryJSON `json:"summarise"`
	Kept         []planEntryJSON `json:"kept"`
}

type planEntryJSON struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Tokens int    `json:"tokens"`
	Text   string `json:"text"`
}

// showPlan prints what a compaction would do.
func (a *app) showPlan(ctx context.Context, o opened, plan *session.CompactionPlan, counter tokenCounter) error {
	if a.flags.json {
		return a.printJSON(planJSON{
			Session: o.ID(), FirstKept: plan.FirstKept,
			TokensBefore: plan.TokensBefore, TokensKept: plan.TokensKept,
			Estimated: estimated(plan.Summarise) || estimated(plan.Kept),
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
			t.add(what, short(e.ID), kindOf(e), fmt.Sprint(counter.entry(*e)), gist(e))
		}
	}
	add("summarise", plan.Summarise)
	add("keep", plan.Kept)
	if err := t.print(); err != nil {
		return err
	}
	a.say("the summary would stand for %s; kept: %s, about %s of %s (where no count was recorded, by %s)",
		counted(len(plan.Summarise), "entry", "entries"), counted(len(plan.Kept), "entry", "entries"),
		thousands(plan.TokensKept), counted(plan.TokensBefore, "token", "tokens"), counter.Name())
	return nil
}

func estimated(entries []session.Entry) bool {
	for i := range entries {
		if m := entries[i].Message; m == nil || m.Tokens == nil {
			return true
		}
	}
	return false
}

func planEntries(entries []session.Entry, counter tokenCounter) []planEntryJSON {
	list := make([]planEntryJSON, len(entries))
	for i := range entries {
		list[i] = planEntryJSON{entries[i].ID, kindOf(&entries[i]), counter.entry(entries[i]), gist(&entries[i])}
	}
	return list
}
