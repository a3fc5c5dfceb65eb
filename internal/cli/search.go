package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render/plain"
)

type searchFlags struct {
	since, until string
	kinds        []string
	live, newest bool
	search       index.SearchOptions
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
	flags.StringSliceVar(&f.kinds, "kind", nil, "only text, thinking, call, output, summary, title, tag or label")
	flags.StringSliceVar(&f.search.Tags, "tag", nil, "only in sessions with this tag")
	flags.StringVar(&f.search.CWD, "cwd", "", "only in sessions about this directory and those below")
	flags.StringVar(&f.search.Session, "session", "", "only in this session")
	flags.StringVar(&f.since, "since", "", "only since: 2026-03-01, or 7d ago")
	flags.StringVar(&f.until, "until", "", "only before")
	flags.BoolVar(&f.live, "live", false, "only on the live path, not on branches that were left")
	flags.BoolVar(&f.newest, "newest", false, "the newest first, instead of the best")
	flags.IntVarP(&f.search.Limit, "limit", "n", 20, "how many")
	return a.withJSON(cmd)
}

func (f *searchFlags) options(args []string, now time.Time) (o index.SearchOptions, err error) {
	o = f.search
	o.Query = strings.Join(args, " ")
	for _, kind := range f.kinds {
		o.Kinds = append(o.Kinds, index.Kind(kind))
	}
	if f.live {
		o.Branch = index.LiveBranch
	}
	if f.newest {
		o.Order = index.ByTime
	}
	if o.Since, err = parseWhen("--since", f.since, now); err != nil {
		return o, err
	}
	o.Until, err = parseWhen("--until", f.until, now)
	return o, err
}

func (a *app) runSearch(cmd *cobra.Command, f *searchFlags, args []string) error {
	o, err := f.options(args, time.Now())
	if err != nil {
		return err
	}
	return a.withIndex(cmd.Context(), func(ix *index.Index) error {
		results, err := ix.Search(cmd.Context(), o)
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.printHitsJSON(results.Hits)
		}
		if err := a.printHits(results.Hits); err != nil {
			return err
		}
		a.sayResults(results)
		return nil
	})
}

// sayResults tells how complete the answer is.
func (a *app) sayResults(r *index.Results) {
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
func (a *app) printHits(hits []index.Hit) error {
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
		if h.Kind != index.KindText && h.Kind != index.KindOutput {
			who = strings.TrimSpace(who + " " + string(h.Kind))
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
func (a *app) alsoIn(h index.Hit) string {
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
func (a *app) openCommand(h index.Hit) string {
	name, entry := h.Name, h.Entry
	if a.isTerminal() {
		name, entry = halfUUID(name), halfUUID(entry)
	}
	return showCommandFor(name, entry)
}

// showCommandFor is the command that shows a session up to an entry.
func showCommandFor(name, entry string) string {
	if entry == "" {
		return command("show", []string{name})
	}
	return command("show", []string{name}, "--leaf", entry)
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
func (a *app) highlight(h index.Hit) string {
	var b strings.Builder
	at := 0
	for _, r := range h.Highlights {
		if r.Start < at || r.End > len(h.Snippet) {
			continue
		}
		b.WriteString(squeezed(h.Snippet[at:r.Start]))
		b.WriteString(a.paint(red, squeezed(h.Snippet[r.Start:r.End])))
		at = r.End
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

// hitJSON is a hit in the output of --json: see docs/cli.md.
type hitJSON struct {
	Session    string    `json:"session"`
	Link       string    `json:"link,omitempty"` // the session of the conversation, if it is another
	Title      string    `json:"title"`
	Entry      string    `json:"entry"`
	Kind       string    `json:"kind"`
	Role       string    `json:"role,omitempty"`
	Tool       string    `json:"tool,omitempty"`
	Model      string    `json:"model,omitempty"`
	Time       time.Time `json:"time"`
	Live       bool      `json:"live"`
	Leaf       string    `json:"leaf"`
	Score      float64   `json:"score"`
	Snippet    string    `json:"snippet"`
	Highlights [][2]int  `json:"highlights"`
	Also       []string  `json:"also"`
	Open       string    `json:"open"`
}

func (a *app) printHitsJSON(hits []index.Hit) error {
	for _, h := range hits {
		link := h.Name
		if link == h.Session {
			link = ""
		}
		ranges := [][2]int{}
		for _, r := range h.Highlights {
			ranges = append(ranges, [2]int{r.Start, r.End})
		}
		err := a.printJSON(hitJSON{
			Session: h.Session, Link: link, Title: h.Title, Entry: h.Entry, Kind: string(h.Kind), Role: h.Role, Tool: h.Tool,
			Model: h.Model, Time: h.Time.UTC(), Live: h.Live, Leaf: h.Leaf, Score: h.Score,
			Snippet: h.Snippet, Highlights: ranges, Also: orEmpty(h.Also), Open: showCommandFor(h.Name, h.Entry),
		})
		if err != nil {
			return err
		}
	}
	return nil
}
