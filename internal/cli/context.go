package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

type contextFlags struct {
	leaf, format string
	link         bool
	window       windowFlags
}

func contextCommand(a *app) *cobra.Command {
	var f contextFlags
	cmd := &cobra.Command{
		Use:   "context ID",
		Short: "Show what a model would be sent now",
		Long: "Context prints what a model would be sent if it were asked now: which entries,\n" +
			"how many tokens and who counted them, and what is left out and why.\n\n" +
			"With --window it prints what of that fits a window. The oldest goes first, of\n" +
			"what tools answered, then of the dialogue, then of the documents; never the\n" +
			"system prompt, and never a tool call without its results. Nothing is written.\n\n" +
			"Sessions that continue each other have one context, whichever is named; --link\n" +
			"shows that of the one that is named.",
		Example: "  coppice context 0199\n  coppice context 0199 --format text\n  coppice context 0199 --json | jq .tokens\n" +
			"  coppice context 0199 --window 200000 --reserve 16000",
		GroupID:           "read",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeSession(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runContext(cmd, args[0], &f) },
	}
	cmd.Flags().StringVar(&f.leaf, "leaf", "", "the entry at which the path ends: an id or a label")
	linkFlag(cmd, &f.link)
	cmd.Flags().StringVar(&f.format, "format", "entries", "entries (a line each) or text (all of it)")
	f.window.register(cmd)
	_ = cmd.RegisterFlagCompletionFunc("leaf", a.completeEntries)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"entries", "text"}, cobra.ShellCompDirectiveNoFileComp))
	return a.withJSON(cmd)
}

func (a *app) runContext(cmd *cobra.Command, id string, f *contextFlags) error {
	if f.format != "entries" && f.format != "text" {
		return usageError{fmt.Errorf("--format is %q; it must be entries or text", f.format)}
	}
	if err := f.window.check(cmd); err != nil {
		return err
	}
	return a.withConversation(cmd.Context(), id, f.link, func(o opened) error {
		leaf, err := resolveEntry(o.Session, f.leaf)
		if err != nil {
			return err
		}
		c, left, err := contextAt(o, leaf)
		if err != nil {
			return err
		}
		view, err := f.window.view(c)
		if err != nil {
			return plainly("context", o.name, err)
		}
		if a.flags.json {
			return a.contextJSON(o, c, left, view)
		}
		ids, err := o.entryIDs(cmd.Context())
		if err != nil {
			return err
		}
		if f.format == "text" {
			return terminal.Entries(a.out, a.style(), shown(c, view), render.ShortIDs(ids))
		}
		return a.contextEntries(c, left, view, shortIDs(ids))
	})
}

// contextAt builds the context at a leaf, and says what of the path it leaves out.
func contextAt(o opened, leaf string) (*session.Context, []leftOutJSON, error) {
	if leaf == "" {
		return &session.Context{}, []leftOutJSON{}, nil
	}
	c, err := o.Context(session.ContextOptions{Leaf: leaf, Shared: true})
	if err != nil {
		return nil, nil, err
	}
	left, err := o.LeftOut(c)
	return c, leftOutWords(left), err
}

// shown are the entries of a context, or of its view if there is one.
func shown(c *session.Context, view *window.View) []session.Entry {
	if view != nil {
		return view.Entries
	}
	return c.Entries
}

func (a *app) contextEntries(c *session.Context, left []leftOutJSON, view *window.View, names render.Names) error {
	whole, err := measured(c)
	if err != nil {
		return err
	}
	if err := a.contextHead(c, whole, left, names); err != nil {
		return err
	}
	costs := whole.Costs
	if view != nil {
		costs = view.Costs
		if err := a.windowHead(view, names); err != nil {
			return err
		}
	}
	style := a.style()
	style.Width = cmp.Or(style.Width, listWidth)
	entries := shown(c, view)
	idWidth := 0
	for i := range entries {
		idWidth = max(idWidth, ansi.StringWidth(names.Shown(entries[i].ID)))
	}
	for i := range entries {
		e := &entries[i]
		mark := ""
		if c.Edited[e.ID] != "" {
			mark = "(edited) "
		}
		id := a.paint(dim, terminal.Pad(names.Shown(e.ID), idWidth)) + "  "
		tokens := a.paint(dim, fmt.Sprintf("%8s", thousands(costs[i].Tokens))) + "  " + a.paint(yellow, mark)
		if err := a.print("%s", style.Row(e, id, tokens, names.Shown)); err != nil {
			return err
		}
	}
	return nil
}

// listWidth is the width of a list of entries where there is no terminal to fit.
const listWidth = 120

// contextHead says who would be asked, how much it is, and what is left out.
func (a *app) contextHead(c *session.Context, whole *window.View, left []leftOutJSON, names render.Names) error {
	model := cmp.Or(render.ModelName(c.Provider, c.Model), "no model chosen")
	if c.ThinkingLevel != "" {
		model += ", thinking " + oneLine(c.ThinkingLevel, 0)
	}
	size := counted(len(c.Entries), "entry", "entries") + ", " + counted(whole.Report.Tokens, "token", "tokens")
	lines := []string{a.paint(bold, model), size}
	if len(whole.Report.Counts) > 0 {
		lines = append(lines, "counts: "+whoCounted(&whole.Report))
	}
	for _, l := range left {
		line := l.Reason
		if l.EntryID != "" {
			line += " " + names.Shown(l.EntryID)
		}
		if l.Count > 0 {
			line += ": " + counted(l.Count, "entry", "entries")
		}
		if l.Detail != "" {
			line += " (" + oneLine(l.Detail, 0) + ")"
		}
		lines = append(lines, a.paint(yellow, "- ")+line)
	}
	return a.printText(strings.Join(lines, "\n") + "\n")
}
