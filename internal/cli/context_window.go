package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
	"github.com/coppice-dev/coppice/window/tiktoken"
)

// windowFlags say into which window a context is to fit.
type windowFlags struct {
	tokens, reserve, bytes, images int
	cutTo                          int
	strict                         bool
	model, counter                 string
}

func (f *windowFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.tokens, "window", 0, "show what fits a window of this many tokens, and what is left out")
	flags.IntVar(&f.reserve, "reserve", 0, "tokens of the window that are kept free for the answer")
	flags.IntVar(&f.bytes, "bytes", 0, "the largest request in bytes")
	flags.IntVar(&f.images, "images", 1, "keep this many images, the newest; -1 keeps all")
	flags.BoolVar(&f.strict, "strict", false, "trim each category to its share even if the window has room")
	flags.IntVar(&f.cutTo, "cut-to", 0, "when the window is full, cut to this percent, as a chat does")
	flags.StringVar(&f.model, "model", "", "count as for this model (default: the one in force)")
	flags.StringVar(&f.counter, "counter", "", "count with estimate, o200k or cl100k (default: the model's)")
	_ = cmd.RegisterFlagCompletionFunc("counter", cobra.FixedCompletions([]string{"estimate", "o200k", "cl100k"}, cobra.ShellCompDirectiveNoFileComp))
}

// windowOnly are the flags that mean nothing without a window.
var windowOnly = []string{"reserve", "images", "strict", "cut-to", "model", "counter"}

// check returns what is wrong with the flags.
func (f *windowFlags) check(cmd *cobra.Command) error {
	if f.tokens < 0 || f.reserve < 0 || f.bytes < 0 || f.images < -1 {
		return usageError{errors.New("--window, --reserve and --bytes must not be negative, --images not less than -1")}
	}
	if f.cutTo < 0 || f.cutTo > 100 {
		return usageError{fmt.Errorf("--cut-to is %d; it must be a percentage from 1 to 100", f.cutTo)}
	}
	if f.wanted() {
		return nil
	}
	for _, name := range windowOnly {
		if cmd.Flags().Changed(name) {
			return usageError{fmt.Errorf("--%s needs --window or --bytes", name)}
		}
	}
	return nil
}

func (f *windowFlags) wanted() bool { return f.tokens > 0 || f.bytes > 0 }

// view returns what of a context fits the window, or nil if none was asked for.
func (f *windowFlags) view(c *session.Context) (*window.View, error) {
	if !f.wanted() {
		return nil, nil
	}
	provider, model := c.Provider, c.Model
	if f.model != "" {
		provider, model = splitModel(f.model)
	}
	counter, err := counterNamed(f.counter, provider, model)
	if err != nil {
		return nil, usageError{err}
	}
	images := f.images
	switch images {
	case -1:
		images = window.AllImages
	case 0:
		images = window.NoImages
	}
	plan := window.Fill
	if f.cutTo > 0 {
		plan = window.Trim
	}
	v, err := plan(c, window.Options{
		Budget:  window.Budget{Tokens: f.tokens, Reserve: f.reserve, Bytes: f.bytes, Strict: f.strict, CutTo: f.cutTo},
		Counter: counter, Provider: provider, Model: model, Images: images,
	})
	if errors.Is(err, session.ErrInvalid) {
		return nil, usageError{err}
	}
	return v, err
}

// splitModel takes provider/model apart.
func splitModel(name string) (provider, model string) {
	provider, model, ok := strings.Cut(name, "/")
	if !ok {
		return "", name
	}
	return provider, model
}

// counterNamed returns the counter of a name or, without one, that of a model:
// an exact one if there is any.
func counterNamed(name, provider, model string) (window.Counter, error) {
	switch name {
	case "":
		return window.Chooser{Exact: []func(provider, model string) window.Counter{tiktoken.For}}.Counter(provider, model), nil
	case "estimate":
		return window.Estimate(provider, model), nil
	}
	counter, err := tiktoken.Named(name)
	if err != nil {
		return nil, fmt.Errorf("--counter is %q; it must be estimate, o200k or cl100k", name)
	}
	return counter, nil
}

// measured is all of a context, with what each entry costs: the one count that
// context and compact show, and that a window goes by.
func measured(c *session.Context) (*window.View, error) {
	counter, err := counterNamed("", c.Provider, c.Model)
	if err != nil {
		return nil, err
	}
	return measuredBy(c, counter)
}

func measuredBy(c *session.Context, counter window.Counter) (*window.View, error) {
	return window.Trim(c, window.Options{Counter: counter, Provider: c.Provider, Model: c.Model, Images: window.AllImages})
}

// windowHead says how full the window is, and what was left out for it.
func (a *app) windowHead(v *window.View, names render.Names) error {
	r := &v.Report
	size := counted(len(v.Entries), "entry", "entries") + ", " + counted(r.Tokens, "token", "tokens")
	if r.Room > 0 {
		size += " of " + thousands(r.Room)
	}
	if r.ByteRoom > 0 {
		size += fmt.Sprintf(", %s of %s bytes", thousands(r.Bytes), thousands(r.ByteRoom))
	}
	lines := []string{a.paint(bold, "window") + ": " + size}
	if len(r.Counts) > 0 {
		lines = append(lines, "counts: "+whoCounted(r))
	}
	for _, part := range r.Categories {
		line := fmt.Sprintf("  %-13s  %s, %s", part.Category, counted(part.Entries, "entry", "entries"), counted(part.Tokens, "token", "tokens"))
		if part.LeftOutTokens > 0 {
			line += fmt.Sprintf("; left out %s, %s", counted(part.LeftOutEntries, "entry", "entries"), counted(part.LeftOutTokens, "token", "tokens"))
		}
		lines = append(lines, line)
	}
	for _, o := range r.Omissions {
		lines = append(lines, fmt.Sprintf("%s%s %s: %s, because %s", a.paint(yellow, "- "), o.Kind, names.Shown(o.EntryID), counted(o.Tokens, "token", "tokens"), o.Why))
	}
	return a.printText(strings.Join(lines, "\n") + "\n")
}

// whoCounted says how many of the tokens of a view were counted by whom.
func whoCounted(r *window.Report) string {
	parts := make([]string, len(r.Counts))
	for i, c := range r.Counts {
		parts[i] = fmt.Sprintf("%s %s", thousands(c.Tokens), c.Source)
		if c.Source == window.Exact || c.Source == window.Estimated {
			parts[i] += " (" + r.Counter + ")"
		}
	}
	return strings.Join(parts, ", ")
}

// windowJSON is the report of a window in context --json.
type windowJSON struct {
	Counter    string         `json:"counter"`
	Counts     []countJSON    `json:"counts"`
	Room       int            `json:"room,omitempty"`
	ByteRoom   int            `json:"byte_room,omitempty"`
	Tokens     int            `json:"tokens"`
	Bytes      int            `json:"bytes"`
	LeftOut    int            `json:"left_out_tokens"`
	Categories []categoryJSON `json:"categories"`
	Omissions  []omissionJSON `json:"omissions"`
}

type countJSON struct {
	Source  window.Source `json:"source"`
	Entries int           `json:"entries"`
	Tokens  int           `json:"tokens"`
}

type categoryJSON struct {
	Category       window.Category `json:"category"`
	Share          int             `json:"share"`
	Entries        int             `json:"entries"`
	Tokens         int             `json:"tokens"`
	LeftOutEntries int             `json:"left_out_entries"`
	LeftOutTokens  int             `json:"left_out_tokens"`
}

type omissionJSON struct {
	Kind      window.Kind     `json:"kind"`
	EntryID   string          `json:"entry_id"`
	Category  window.Category `json:"category"`
	Tokens    int             `json:"tokens"`
	Bytes     int             `json:"bytes"`
	Why       string          `json:"why"`
	Reference string          `json:"reference,omitempty"`
}

func countsJSON(r *window.Report) []countJSON {
	counts := make([]countJSON, len(r.Counts))
	for i, c := range r.Counts {
		counts[i] = countJSON(c)
	}
	return counts
}

// windowReport is a view's report in JSON, or nil without a view.
func windowReport(v *window.View) *windowJSON {
	if v == nil {
		return nil
	}
	r := &v.Report
	out := &windowJSON{
		Counter: r.Counter, Room: r.Room, ByteRoom: r.ByteRoom, Tokens: r.Tokens, Bytes: r.Bytes, LeftOut: r.LeftOutTokens,
		Counts: countsJSON(r), Omissions: []omissionJSON{},
	}
	for _, part := range r.Categories {
		out.Categories = append(out.Categories, categoryJSON(part))
	}
	for _, o := range r.Omissions {
		out.Omissions = append(out.Omissions, omissionJSON(o))
	}
	return out
}
