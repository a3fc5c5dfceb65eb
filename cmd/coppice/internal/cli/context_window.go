package cli

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/window"
)

// windowFlags say which window a context must fit.
type windowFlags struct {
	home.WindowRequest
	images int
}

// register adds the flags. --window or --bytes is enough; the others refine it.
func (f *windowFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.Tokens, "window", 0, "show what fits a window of this many tokens")
	flags.IntVar(&f.Reserve, "reserve", 0, "tokens of the window to keep free for the answer")
	flags.IntVar(&f.Bytes, "bytes", 0, "the largest request in bytes")
	flags.IntVar(&f.images, "images", 1, "keep this many images, the newest; -1 keeps all")
	flags.BoolVar(&f.Strict, "strict", false, "trim each category to its share even if there is room")
	flags.IntVar(&f.CutTo, "cut-to", 0, "cut a full window to this percent, as a chat does")
	flags.StringVar(&f.Model, "model", "", "count tokens for this model (default: the session's)")
	flags.StringVar(&f.Counter, "counter", "", "count with estimate, o200k or cl100k (default: the model's)")
	_ = cmd.RegisterFlagCompletionFunc("counter", cobra.FixedCompletions(home.Choices(reflect.TypeFor[home.WindowRequest](), "counter"), cobra.ShellCompDirectiveNoFileComp))
}

// windowOnly are the flags that mean nothing without a window.
var windowOnly = []string{"reserve", "images", "strict", "cut-to", "model", "counter"}

// request returns the window that is asked for, or nil if none is.
func (f *windowFlags) request(cmd *cobra.Command) (*home.WindowRequest, error) {
	if f.Tokens != 0 || f.Bytes != 0 {
		f.Images = &f.images
		return &f.WindowRequest, nil
	}
	for _, name := range windowOnly {
		if cmd.Flags().Changed(name) {
			return nil, misuse("--%s needs --window or --bytes", name)
		}
	}
	return nil, nil
}

// windowHead says how full the window is, and what was left out for it.
func (a *app) windowHead(c *home.ContextResult, short render.Names) string {
	r := c.Window
	size := render.Counted(len(c.Entries), "entry", "entries") + ", " + render.Counted(r.Tokens, "token", "tokens")
	if r.Room > 0 {
		size += " of " + render.Thousands(r.Room)
	}
	if r.ByteRoom > 0 {
		size += fmt.Sprintf(", %s of %s bytes", render.Thousands(r.Bytes), render.Thousands(r.ByteRoom))
	}
	lines := []string{a.paint(bold, "window") + ": " + size}
	if len(r.Counts) > 0 {
		lines = append(lines, "counts: "+whoCounted(r.Counts, r.Counter))
	}
	for _, part := range r.Categories {
		line := fmt.Sprintf("  %-13s  %s, %s", part.Category, render.Counted(part.Entries, "entry", "entries"), render.Counted(part.Tokens, "token", "tokens"))
		if part.LeftOutTokens > 0 {
			line += fmt.Sprintf("; left out %s, %s", render.Counted(part.LeftOutEntries, "entry", "entries"), render.Counted(part.LeftOutTokens, "token", "tokens"))
		}
		lines = append(lines, line)
	}
	for _, o := range r.Omissions {
		lines = append(lines, fmt.Sprintf("%s%s %s: %s, because %s", a.paint(yellow, "- "), o.Kind, short.Shown(o.EntryID), render.Counted(o.Tokens, "token", "tokens"), o.Why))
	}
	return strings.Join(lines, "\n") + "\n\n"
}

// whoCounted says how many tokens were counted by whom.
func whoCounted(counts []window.CountReport, counter string) string {
	parts := make([]string, len(counts))
	for i, c := range counts {
		parts[i] = fmt.Sprintf("%s %s", render.Thousands(c.Tokens), c.Source)
		if c.Source == window.Exact || c.Source == window.Estimated {
			parts[i] += " (" + counter + ")"
		}
	}
	return strings.Join(parts, ", ")
}
