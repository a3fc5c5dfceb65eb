package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// compareCommand has a rule of its own for the arguments: either two entries of one session, or
// two sessions.
func compareCommand(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:     "compare ID A B | ID ID",
		Aliases: []string{"diff"},
		Short:   "Compare two branches, or two sessions",
		Long: "Compares the paths to two entries of a session: the last entry that they share (=),\n" +
			"what only the first has (-) and what only the second has (+). Two sessions, such as\n" +
			"a fork and its original, are compared by the paths to their leaves. If tools were\n" +
			"used, it ends with how many calls, changed files and errors each has, and the cost.",
		Args: cobra.RangeArgs(2, 3),
		RunE: a.onHome(func(ctx context.Context, h *home.Home, args []string) error {
			r := home.CompareRequest{Session: args[0], Other: args[1]}
			if len(args) == 3 {
				r = home.CompareRequest{Session: args[0], A: args[1], B: args[2]}
			}
			c, err := h.Entries.Compare(ctx, r)
			if err != nil || a.flags.json {
				return a.asJSON(c, err)
			}
			return a.printComparison(ctx, h, &r, c)
		}),
	})
}

// printComparison prints one list in the order of the two paths, with the last shared entry on
// top to show where they part. What each side took comes last, as the sum of it.
func (a *app) printComparison(ctx context.Context, h *home.Home, r *home.CompareRequest, c *home.CompareResult) error {
	sessions := []string{r.Session}
	if r.Other != "" {
		sessions = append(sessions, r.Other)
	}
	short, err := a.listedNames(ctx, h, home.EntryNamesRequest{Sessions: sessions})
	if err != nil {
		return err
	}
	t := a.newTable("TEXT", "", "ENTRY", "KIND", "TEXT")
	add := func(sign string, entries ...session.Entry) {
		for i := range entries {
			t.add(sign, short.Name(entries[i].ID), render.Kind(&entries[i]), render.Gist(&entries[i], 0))
		}
	}
	if c.Ancestor != "" {
		_, err := h.Entries.Path(ctx, home.PathRequest{Session: r.Session, Leaf: c.Ancestor, Last: 1}, func(e session.Entry) error {
			add("=", e)
			return nil
		})
		if err != nil {
			return err
		}
	}
	add("-", c.OnlyA...)
	add("+", c.OnlyB...)
	if err := t.print(); err != nil {
		return err
	}
	a.say("%s shared, %d only in the first, %d only in the second",
		render.Counted(c.Shared, "entry", "entries"), len(c.OnlyA), len(c.OnlyB))
	if c.SideA.Calls+c.SideB.Calls > 0 {
		sides := a.wrap("the first: "+sideWords(c.SideA), "") + "\n" + a.wrap("the second: "+sideWords(c.SideB), "")
		for line := range strings.SplitSeq(sides, "\n") {
			a.say("%s", line)
		}
	}
	return nil
}

// sideWords say what was done on one of two branches.
func sideWords(s *home.CompareSide) string {
	words := []string{render.Counted(s.Calls, "call", "calls")}
	for _, tool := range s.Tools {
		words = append(words, fmt.Sprintf("%s %d", render.OneLine(tool.Name, 0), tool.Count))
	}
	words = append(words, render.Counted(len(s.Files), "file changed", "files changed"), render.Counted(s.Errors, "error", "errors"))
	if s.Tokens > 0 {
		words = append(words, render.Count(int64(s.Tokens))+" tokens")
	}
	if s.CostMicroUSD > 0 {
		words = append(words, render.Money(s.CostMicroUSD))
	}
	return strings.Join(words, ", ")
}
