package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice"
	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render/plain"
)

type searchFlags struct {
	since, until string
	search       coppice.FindRequest
}

func searchCommand(a *app) *cobra.Command {
	var f searchFlags
	cmd := &cobra.Command{
		Use:   "search QUERY…",
		Short: "Find what was said, done and answered",
		Long: `Find what was said, thought, called and answered, in all sessions.

Words must all be there; "a phrase" as it stands; a OR b; -not; begin*.
Code is found whole and by its parts: parseHeader, parse, header.
Filters can be part of the query: role:user tool:bash model:… tag:… cwd:…
session:… since:7d until:2026-03-01 branch:live`,
		Example: "  coppice search retry backoff\n" +
			"  coppice search '\"connection refused\" role:tool since:30d'\n" +
			"  coppice search parseHeader --live",
		GroupID: "read",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runSearch(cmd, &f, args) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.search.Roles, "role", nil, "only messages of this role")
	flags.StringSliceVar(&f.search.Tools, "tool", nil, "only calls and output of this tool")
	flags.StringSliceVar(&f.search.Models, "model", nil, "only what this model said")
	flags.StringSliceVar(&f.search.Kinds, "kind", nil, "only text, thinking, call, output, summary, title, tag or label")
	flags.StringSliceVar(&f.search.Tags, "tag", nil, "only in sessions with this tag")
	flags.StringVar(&f.search.CWD, "cwd", "", "only in sessions about this directory and those below")
	flags.StringVar(&f.search.Session, "session", "", "only in this session")
	flags.StringVar(&f.since, "since", "", "only since: 2026-03-01, or 7d ago")
	flags.StringVar(&f.until, "until", "", "only before")
	flags.BoolVar(&f.search.Live, "live", false, "only on the live path, not on branches that were left")
	flags.BoolVar(&f.search.Newest, "newest", false, "the newest first, instead of the best")
	flags.IntVarP(&f.search.Limit, "limit", "n", 20, "how many")
	return a.withJSON(cmd)
}

func (f *searchFlags) request(args []string, now time.Time) (r coppice.FindRequest, err error) {
	r = f.search
	r.Query = strings.Join(args, " ")
	if r.Since, err = parseWhen("--since", f.since, now); err != nil {
		return r, err
	}
	r.Until, err = parseWhen("--until", f.until, now)
	return r, err
}

func (a *app) runSearch(cmd *cobra.Command, f *searchFlags, args []string) error {
	r, err := f.request(args, time.Now())
	if err != nil {
		return err
	}
	return a.withHome(cmd.Context(), false, func(h *coppice.Home) error {
		found, err := h.Search.Find(cmd.Context(), r)
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.printHitsJSON(found.Hits)
		}
		if err := a.printHits(found.Hits); err != nil {
			return err
		}
		a.sayResults(found)
		return nil
	})
}

// sayResults tells how complete the answer is.
func (a *app) sayResults(r *coppice.FindResult) {
	shown := len(r.Hits)
	for _, h := range r.Hits {
		shown += len(h.Also)
	}
	switch {
	case len(r.Hits) == 0:
		a.say("nothing found")
	case r.Bounded:
		a.say("%s", a.paint(dim, fmt.Sprintf("the best of the newest %d matches; there are older ones (narrow it with since:, role:, tool: …)", r.Matches)))
	case r.Matches > shown:
		a.say("%s", a.paint(dim, fmt.Sprintf("%d of %d matches (-n for more)", shown, r.Matches)))
	}
}

// printHits prints each hit with the command that opens its place.
func (a *app) printHits(hits []coppice.Hit) error {
	now := time.Now()
	for i, h := range hits {
		if i > 0 {
			if err := a.print(""); err != nil {
				return err
			}
		}
		who := h.Role
		if h.Tool != "" {
			who = h.Tool
		}
		if h.Kind != string(index.KindText) && h.Kind != string(index.KindOutput) {
			who = strings.TrimSpace(who + " " + h.Kind)
		}
		branch := ""
		if !h.Live {
			branch = a.paint(yellow, "  (a branch that was left)")
		}
		err := a.print("%s  %s  %s%s", a.paint(bold, oneLine(h.Title, 60)), a.paint(dim, a.when(h.Time, now)), a.paint(blue, oneLine(who, 0)), branch)
		if err == nil {
			err = a.printText(a.wrap(a.highlight(h), "  "))
		}
		if err == nil {
			err = a.print("  %s", a.paint(dim, a.openCommand(h)+a.alsoIn(h)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// alsoIn tells in which other sessions the hit is: the first, and how many more.
func (a *app) alsoIn(h coppice.Hit) string {
	if len(h.Also) == 0 {
		return ""
	}
	first := h.Also[0]
	if a.isTerminal() {
		first = halfUUID(first)
	}
	text := "  # also in " + plain.ShellWord(first)
	if more := len(h.Also) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// openCommand is the command that shows a hit in its place, with ids that a
// person can still read on a terminal.
func (a *app) openCommand(h coppice.Hit) string {
	name, entry := h.Name(), h.Entry
	if a.isTerminal() {
		name, entry = halfUUID(name), halfUUID(entry)
	}
	return showCommandFor(name, entry)
}

// showCommandFor is the command that shows an entry in its place.
func showCommandFor(name, entry string) string {
	if entry == "" {
		return command("show", []string{name})
	}
	return command("show", []string{name}, "--at", entry)
}

// halfUUID is the first half of a UUID of ours, which has the time and a counter
// and so is as good as the whole; other ids stay whole.
func halfUUID(id string) string {
	if len(id) == 36 && id[8] == '-' && id[13] == '-' && id[14] == '7' && id[18] == '-' {
		return id[:18]
	}
	return id
}

// highlight marks what matched in the snippet, which is made harmless and put
// onto one line piece by piece, so that the ranges still hold.
func (a *app) highlight(h coppice.Hit) string {
	var b strings.Builder
	at := 0
	for _, r := range h.Highlights {
		from, to := r[0], r[1]
		if from < at || to > len(h.Snippet) {
			continue
		}
		b.WriteString(squeezed(h.Snippet[at:from]))
		b.WriteString(a.paint(red, squeezed(h.Snippet[from:to])))
		at = to
	}
	b.WriteString(squeezed(h.Snippet[at:]))
	return b.String()
}

// squeezed is a piece of text on one line, without runs of spaces.
func squeezed(text string) string {
	text = plain.Flat(text)
	for strings.Contains(text, "  ") {
		text = strings.ReplaceAll(text, "  ", " ")
	}
	return text
}

// hitJSON is a hit in the output of --json, with the command that opens it.
type hitJSON struct {
	*coppice.Hit
	Open string `json:"open"`
}

func (a *app) printHitsJSON(hits []coppice.Hit) error {
	for i := range hits {
		h := &hits[i]
		if err := a.printJSON(hitJSON{h, showCommandFor(h.Name(), h.Entry)}); err != nil {
			return err
		}
	}
	return nil
}
