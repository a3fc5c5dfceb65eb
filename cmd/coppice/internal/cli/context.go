package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
	"github.com/coppice-dev/coppice/session"
)

type contextFlags struct {
	home.ContextRequest
	format string
	window windowFlags
	why    whyFlags
}

// contextCommand answers what a model sees: now, in a window of some size, or, with --why, what
// it was sent before. It is one command, because the questions follow from each other.
func contextCommand(a *app) *cobra.Command {
	var f contextFlags
	cmd := &cobra.Command{
		Use:   "context ID",
		Short: "Show what a model would be sent now",
		Long: "Prints what a model would be sent if it were asked now: which entries, how many\n" +
			"tokens and who counted them, and what is left out and why.\n\n" +
			"With --window, prints how much of that fits a window. Tool output is dropped first,\n" +
			"then the dialogue, then documents, the oldest first. The system prompt always stays,\n" +
			"and a tool call stays only together with its results. Nothing is written.\n\n" +
			"With --why, prints the requests that agents have sent: their tokens, what the\n" +
			"provider's cache held and what was written to it, how many entries each has in\n" +
			"common with the request before, whether the log still gives the same bytes, and why\n" +
			"the cache missed the rest.\n\n" +
			"A conversation that spans several sessions has one context; --link shows that of the\n" +
			"session you name.",
		Example: "  coppice context 7f3a91c2\n  coppice context 7f3a91c2 --format text\n  coppice context 7f3a91c2 --json | jq .tokens\n" +
			"  coppice context 7f3a91c2 --window 200000 --reserve 16000\n  coppice context last --why",
		RunE: func(cmd *cobra.Command, args []string) error { return a.runContext(cmd, args[0], &f) },
	}
	cmd.Flags().StringVar(&f.Leaf, "leaf", "", "show the path up to this entry: an id or a label")
	linkFlag(cmd, &f.Link)
	cmd.Flags().StringVar(&f.format, "format", "entries", "print entries (a line each) or text (all of it)")
	f.window.register(cmd)
	f.why.register(cmd)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"entries", "text"}, cobra.ShellCompDirectiveNoFileComp))
	return a.withJSON(a.picking(cmd))
}

// runContext checks the flags of all three questions before the home is opened.
func (a *app) runContext(cmd *cobra.Command, id string, f *contextFlags) error {
	if f.format != "entries" && f.format != "text" {
		return misuse("--format is %q; it must be entries or text", f.format)
	}
	if err := f.why.check(cmd); err != nil {
		return err
	}
	if f.why.on {
		return a.runWhy(cmd.Context(), id, f.Link, &f.why)
	}
	var err error
	if f.Window, err = f.window.request(cmd); err != nil {
		return err
	}
	f.Session = id
	return a.withHome(cmd.Context(), false, func(h *home.Home) error { return a.context(cmd.Context(), h, f) })
}

// context prints what there is even if content is missing, and only then says so: the rest may
// be what was looked for.
func (a *app) context(ctx context.Context, h *home.Home, f *contextFlags) error {
	c, err := h.Entries.Context(ctx, f.ContextRequest)
	if err != nil || a.flags.json && len(c.Missing) == 0 {
		return a.asJSON(c, err)
	}
	short, err := namesOf(ctx, h, home.EntryNamesRequest{Sessions: []string{f.Session}, Link: f.Link})
	switch {
	case err != nil:
	case a.flags.json:
		err = a.printJSON(c)
	case f.format == "text":
		err = terminal.Entries(a.out, a.style(), c.Entries, short)
	default:
		err = a.contextEntries(c, short)
	}
	if err != nil || len(c.Missing) == 0 {
		return err
	}
	a.sayMissing(a.nameOf(ctx, h, c.Session), short, c.Missing)
	return errPartial
}

// contextEntries prints a row for each entry. The columns are as wide as this context needs,
// because ids and counts differ a lot in length between sessions.
func (a *app) contextEntries(c *home.ContextResult, short render.Names) error {
	head := a.contextHead(c, short)
	if c.Window != nil {
		head += a.windowHead(c, short)
	}
	if err := a.printText(strings.TrimSuffix(head, "\n")); err != nil {
		return err
	}
	style := a.style()
	style.Width = cmp.Or(style.Width, listWidth)
	idWidth, tokenWidth := 0, 8
	if width := a.width(); width > 0 && width < tight {
		tokenWidth = 0
	}
	name := func(id string) string {
		if a.width() > 0 && strings.HasPrefix(id, session.InterruptedPrefix) {
			return "-" // it is long, and no entry of the session has it
		}
		return short.Shown(id)
	}
	for i := range c.Entries {
		idWidth = max(idWidth, ansi.StringWidth(name(c.Entries[i].ID)))
		tokenWidth = max(tokenWidth, len(render.Thousands(c.Costs[i].Tokens)))
	}
	for i := range c.Entries {
		e := &c.Entries[i]
		mark := ""
		if c.Edited[e.ID] != "" {
			mark = "(edited) "
		}
		id := a.paint(dim, terminal.Pad(name(e.ID), idWidth)) + "  "
		tokens := a.paint(dim, fmt.Sprintf("%*s", tokenWidth, render.Thousands(c.Costs[i].Tokens))) + "  " + a.paint(yellow, mark)
		if err := a.print("%s", style.Row(e, id, tokens, short.Shown)); err != nil {
			return err
		}
	}
	return nil
}

// listWidth is the width of a list of entries where there is no terminal to fit.
const listWidth = 120

// contextHead says who would be asked, how much it is, and what is left out.
func (a *app) contextHead(c *home.ContextResult, short render.Names) string {
	model := cmp.Or(render.ModelName(c.Provider, c.Model), "no model chosen")
	if c.ThinkingLevel != "" {
		model += ", thinking " + render.OneLine(c.ThinkingLevel, 0)
	}
	size := render.Counted(c.Measured.Entries, "entry", "entries") + ", " + render.Counted(c.Measured.Tokens, "token", "tokens")
	lines := []string{a.paint(bold, model), size}
	if len(c.Measured.Counts) > 0 {
		lines = append(lines, "counts: "+whoCounted(c.Measured.Counts, c.Measured.Counter))
	}
	alike := make(map[session.LeftOutReason]int)
	for _, l := range c.LeftOut {
		alike[l.Reason]++
	}
	listed := make(map[session.LeftOutReason]int)
	for _, l := range c.LeftOut {
		line := string(l.Reason)
		if listed[l.Reason]++; listed[l.Reason] > maxAlike {
			if listed[l.Reason] == maxAlike+1 {
				lines = append(lines, a.paint(yellow, "- ")+line+": "+render.Thousands(alike[l.Reason]-maxAlike)+" more like these; --json lists all")
			}
			continue
		}
		if l.EntryID != "" {
			line += " " + short.Shown(l.EntryID)
		}
		if l.Count > 0 {
			line += ": " + render.Counted(l.Count, "entry", "entries")
		}
		if l.Detail != "" {
			line += " (" + render.OneLine(l.Detail, 0) + ")"
		}
		lines = append(lines, a.paint(yellow, "- ")+line)
	}
	return a.wrap(strings.Join(lines, "\n"), "") + "\n\n"
}
