package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// whyFlags are the flags of context that ask about the past.
type whyFlags struct {
	on    bool
	limit int
}

// register adds the flags.
func (f *whyFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.on, "why", false, "show what was sent before, and why a cache missed")
	cmd.Flags().IntVarP(&f.limit, "limit", "n", home.DefaultLastRequests, "how many requests --why shows; 0 is all")
}

// check refuses what makes no sense beside --why, and -n without it.
func (f *whyFlags) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	if !f.on {
		if changed("limit") {
			return misuse("--limit needs --why")
		}
		return nil
	}
	for _, other := range append([]string{"leaf", "format", "window", "bytes"}, windowOnly...) {
		if changed(other) {
			return misuse("--why shows what was sent; --%s is for what would be sent now", other)
		}
	}
	return nil
}

// runWhy says why a list is empty: sessions that were imported, or written by a program that
// records no requests, never have any.
func (a *app) runWhy(ctx context.Context, id string, link bool, f *whyFlags) error {
	last, err := limitIn(f.limit)
	if err != nil {
		return err
	}
	return a.withHome(ctx, false, func(h *home.Home) error {
		result, err := h.Entries.Why(ctx, home.WhyRequest{Session: id, Link: link, Last: last})
		switch {
		case err != nil:
			return err
		case a.flags.json:
			return a.printJSON(result)
		case len(result.Requests) == 0:
			a.say("no request was recorded: requests are recorded by agents, such as coppice chat")
			return nil
		}
		return a.showWhy(ctx, h, result)
	})
}

// showWhy prints a row for each request. The reasons are sentences: if they do not fit,
// they follow the table.
func (a *app) showWhy(ctx context.Context, h *home.Home, result *home.WhyResult) error {
	sessions := make([]string, len(result.Requests))
	for i := range result.Requests {
		sessions[i] = result.Requests[i].Session
	}
	// Requests of a session follow each other.
	short, err := a.listedNames(ctx, h, home.EntryNamesRequest{Sessions: slices.Compact(sessions), Link: true})
	if err != nil {
		return err
	}
	t := a.newTable("WHY", "REQUEST", "TIME", "MODEL", ">INPUT", ">READ", ">WRITTEN", ">OUTPUT", ">SAME", "REBUILT", "WHY")
	now := time.Now()
	for i := range result.Requests {
		r := &result.Requests[i]
		input, read, written, output := "-", "-", "-", "-"
		if u := r.Usage; u != nil {
			input = render.Thousands(u.Sent())
			read, written, output = render.Thousands(u.CacheRead), render.Thousands(u.CacheWrite), render.Thousands(u.Output)
		}
		same := "-"
		if r.Before > 0 {
			same = fmt.Sprintf("%d/%d", r.Same, r.Before)
		}
		t.add(short.Name(r.ID), a.when(r.Time, now), render.ModelName(r.Provider, r.Model),
			input, read, written, output, same, rebuilt(r), whyOf(r, short))
	}
	if a.isTerminal() { // a program gets every column
		t.dropEmpty("WHY")
	}
	t.spare = []string{"WRITTEN", "OUTPUT", "MODEL"}
	_, total := t.natural()
	below := a.isTerminal() && a.width() > 0 && total > a.width() && slices.Contains(t.header, "WHY")
	if below {
		t.drop("WHY")
		t.elastic = "MODEL"
	}
	if err := t.print(); err != nil || !below {
		return err
	}
	return a.reasons(result, short)
}

// reasons prints why requests were not what the cache had, a paragraph each.
func (a *app) reasons(result *home.WhyResult, short render.Names) error {
	for i := range result.Requests {
		r := &result.Requests[i]
		if why := whyOf(r, short); why != "" {
			if err := a.printText("\n" + a.wrap(short.Shown(r.ID)+": "+why, "")); err != nil {
				return err
			}
		}
	}
	return nil
}

// rebuilt says whether a request can be built again from the log.
func rebuilt(r *home.SentRequest) string {
	switch {
	case r.Rebuilt == nil:
		return "-"
	case *r.Rebuilt:
		return "yes"
	}
	return "no"
}

// whyOf says why a request was not what the cache had, and why it was not answered.
func whyOf(r *home.SentRequest, short render.Names) string {
	var why []string
	switch r.For {
	case "":
	case "branch":
		why = append(why, "it asked for a summary of a branch")
	case "probe":
		why = append(why, "it looked for what the provider refuses")
	default:
		why = append(why, "it asked for a "+r.For)
	}
	if r.Why != "" {
		line := shortIn(r.Why, short)
		if name := short.Shown(r.Changed); r.Changed != "" && !strings.Contains(line, name) {
			line += ", from entry " + name + " on"
		}
		why = append(why, line)
	}
	if r.Error != "" {
		how := "not answered: "
		if r.Response != "" {
			how = "not answered to the end: "
		}
		why = append(why, how+render.OneLine(r.Error, 0))
	}
	return strings.Join(why, "; ")
}

// shortIn shortens the ids in a sentence.
func shortIn(text string, short render.Names) string {
	words := strings.Split(text, " ")
	for i, word := range words {
		words[i] = cmp.Or(short[word], word)
	}
	return strings.Join(words, " ")
}
