package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

func diffCommand(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "diff ID A B",
		Short: "Compare two branches",
		Long: "Compares the paths to two entries: the last entry that they share (=), what the\n" +
			"first has alone (-) and what the second has alone (+).",
		GroupID:           "read",
		Args:              cobra.ExactArgs(3),
		ValidArgsFunction: a.completeEntryOf,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runDiff(cmd.Context(), args[0], args[1], args[2])
		},
	})
}

// diffJSON is what diff --json prints.
type diffJSON struct {
	Session  string          `json:"session"`
	A        string          `json:"a"`
	B        string          `json:"b"`
	Ancestor string          `json:"ancestor"` // the last entry they share; "" if none
	Shared   int             `json:"shared"`   // how many entries they share
	OnlyA    []session.Entry `json:"only_a"`
	OnlyB    []session.Entry `json:"only_b"`
}

func (a *app) runDiff(ctx context.Context, id, givenA, givenB string) error {
	return a.withConversation(ctx, id, false, func(o opened) error {
		first, err := resolveEntry(o.Session, givenA)
		if err != nil {
			return err
		}
		second, err := resolveEntry(o.Session, givenB)
		if err != nil {
			return err
		}
		c, err := o.Compare(first, second)
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.printJSON(diffJSON{o.ID(), first, second, c.Ancestor, c.Shared, entryList(c.OnlyA), entryList(c.OnlyB)})
		}
		return a.printDiff(ctx, o, c)
	})
}

// entryList makes JSON show a list that has nothing as a list.
func entryList(entries []session.Entry) []session.Entry {
	if entries == nil {
		return []session.Entry{}
	}
	return entries
}

func (a *app) printDiff(ctx context.Context, o opened, c *session.Comparison) error {
	short, err := a.entryNames(ctx, o)
	if err != nil {
		return err
	}
	t := a.newTable(3, "", "ENTRY", "KIND", "TEXT")
	add := func(sign string, entries []session.Entry) {
		for i := range entries {
			t.add(sign, short(entries[i].ID), render.Kind(&entries[i]), render.Gist(&entries[i], 0))
		}
	}
	if c.Ancestor != "" {
		shared, err := o.Entry(c.Ancestor)
		if err != nil {
			shared = session.Entry{Type: session.TypeGap, ID: c.Ancestor}
		}
		add("=", []session.Entry{shared})
	}
	add("-", c.OnlyA)
	add("+", c.OnlyB)
	if err := t.print(); err != nil {
		return err
	}
	a.say("%s shared, %d only in the first, %d only in the second",
		counted(c.Shared, "entry", "entries"), len(c.OnlyA), len(c.OnlyB))
	return nil
}

// entryNames returns how to show the ids of a session's entries: in a table for
// a person the shortest prefix that means them, elsewhere in full.
func (a *app) entryNames(ctx context.Context, o opened) (func(string) string, error) {
	if a.width() == 0 {
		return func(id string) string { return id }, nil
	}
	ids, err := o.EntryIDs()
	if err != nil {
		return nil, err
	}
	short := shortIDs(ids)
	return func(id string) string {
		if s := short[id]; s != "" {
			return s
		}
		return id
	}, nil
}
