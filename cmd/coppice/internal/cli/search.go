package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
)

type searchFlags struct {
	since, until string
	search       home.FindRequest
}

// searchCommand takes its words without quotes. A query can say everything that the flags can;
// these are for scripts, and for a shell that completes them.
func searchCommand(a *app) *cobra.Command {
	var f searchFlags
	cmd := &cobra.Command{
		Use:   "search QUERY…",
		Short: "Find what was said, done and answered",
		Long: `Finds what was said, thought, called and answered, in all sessions.

Every word must match, in any form: in one text or, if none has them all, in several
of one conversation. Also: "an exact phrase"; a OR b; -not; prefix*.
Code matches as a whole and by its parts: parseHeader, parse, header. To search for an
option, put -- before the query: search -- --no-verify.
Filters can be part of the query:

  kind:output role:user tool:bash model:… tag:… agent:… project:… file:main.go
  cwd:… session:… since:7d until:2026-03-01 branch:live (or after: before: in:)

The exit code is 1 if nothing was found.`,
		Example: "  coppice search retry backoff\n" +
			"  coppice search '\"connection refused\" role:tool since:30d'\n" +
			"  coppice search -- git commit --no-verify",

		Args:              cobra.ArbitraryArgs, // none with flags
		ValidArgsFunction: a.completeFilters(index.Filters()),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && cmd.Flags().NFlag() == 0 {
				return misuse("no words were given; the command is: %s", useLine(cmd))
			}
			return a.runSearch(cmd, &f, args)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.search.Roles, "role", nil, "only messages of this role")
	flags.StringArrayVar(&f.search.Tools, "tool", nil, "only calls and output of this tool")
	flags.StringArrayVar(&f.search.Models, "model", nil, "only what this model said")
	flags.StringArrayVar(&f.search.Kinds, "kind", nil, "only text, thinking, call, output, title, tag, note, …")
	flags.StringArrayVar(&f.search.Tags, "tag", nil, "only in sessions with this tag")
	flags.StringVar(&f.search.CWD, "cwd", "", "only in sessions about this directory and those below")
	flags.StringVar(&f.search.Agent, "agent", "", "only in sessions from this program")
	flags.StringVar(&f.search.Project, "project", "", "only in sessions about a directory of this name")
	flags.StringVar(&f.search.File, "file", "", "only in sessions whose tools touched a file of this name")
	flags.StringVar(&f.search.Session, "session", "", "only in this session")
	flags.StringVar(&f.since, "since", "", "only since: 2026-03-01, or 7d ago")
	flags.StringVar(&f.until, "until", "", "only before")
	flags.BoolVar(&f.search.Live, "live", false, "only on the live path, not on abandoned branches")
	flags.BoolVar(&f.search.Newest, "newest", false, "the newest first, instead of the best")
	limitFlag(cmd, &f.search.Limit, 20)
	return a.withJSON(cmd)
}

// errNothingFound ends a search as grep does: with exit code 1 and nothing more to
// say.
var errNothingFound = errors.New("nothing found")

// request makes the request from the words and the flags.
func (f *searchFlags) request(args []string, now time.Time) (r home.FindRequest, err error) {
	r = f.search
	r.Query = strings.Join(args, " ")
	if r.Limit, err = limitIn(r.Limit); err != nil {
		return r, err
	}
	r.Since, r.Until, err = timesIn(f.since, f.until, now)
	return r, err
}

// runSearch prints the hits first and then how complete they are, so that a person reads that
// last, below the list.
func (a *app) runSearch(cmd *cobra.Command, f *searchFlags, args []string) error {
	r, err := f.request(args, time.Now())
	if err != nil {
		return err
	}
	return a.withHome(cmd.Context(), false, func(h *home.Home) error {
		found, err := h.Search.Find(cmd.Context(), r)
		if err != nil {
			return err
		}
		if a.flags.json {
			hits := make([]hitJSON, len(found.Hits))
			for i := range found.Hits {
				h := &found.Hits[i]
				hits[i] = hitJSON{h, found.Across, found.Bounded, a.showCommandFor(h.Name(), h.Entry)}
			}
			err = printObjects(a, hits)
		} else {
			err = a.printHits(cmd, h, found.Hits)
		}
		a.sayResults(cmd, found)
		for _, name := range found.NotFilters {
			a.say("%s: is not a filter and was searched as text; the filters are %s", name, strings.Join(index.Filters(), ", "))
		}
		a.sayUnknown(found.Unknown)
		if err == nil && len(found.Hits) == 0 {
			return errNothingFound
		}
		return err
	})
}

// sayResults tells how complete the answer is.
func (a *app) sayResults(cmd *cobra.Command, r *home.FindResult) {
	shown := len(r.Hits)
	if r.Across {
		a.say("%s", a.paint(dim, "no text has all of this; these conversations have it in several texts"))
	}
	switch {
	case len(r.Hits) == 0 && r.Bounded:
		a.say("nothing found among the newest texts; to search older ones would take long (narrow the search with until:, session:, role: …)")
	case len(r.Hits) == 0:
		a.say("nothing found")
		for _, query := range r.DidYouMean {
			a.say("did you mean: %s", a.command("search", []string{query}, givenFlags(cmd)...))
		}
	case r.Bounded:
		a.say("%s", a.paint(dim, fmt.Sprintf("the best of the newest %s matches; there are older ones (narrow the search with since:, role:, tool: …)", render.Thousands(r.Matches))))
	case r.Matches > shown:
		a.say("%s", a.paint(dim, fmt.Sprintf("%d of %s matches (-n shows more)", shown, render.Thousands(r.Matches))))
	}
}

// printHits prints a block for each conversation: its title, and each hit in it
// with the command that opens its place.
func (a *app) printHits(cmd *cobra.Command, h *home.Home, hits []home.Hit) error {
	var order, names []string
	blocks := make(map[string][]*home.Hit)
	for i := range hits {
		id := hits[i].Session
		if blocks[id] == nil {
			order = append(order, id)
		}
		blocks[id] = append(blocks[id], &hits[i])
		names = append(append(names, hits[i].Name()), hits[i].Also...)
	}
	short, err := sessionNames(cmd.Context(), h, home.SessionNamesRequest{Sessions: names})
	if err != nil {
		return err
	}
	var lines []string
	for i, id := range order {
		block := blocks[id]
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, a.paint(bold, cmp.Or(render.OneLine(block[0].Title, 70), render.Untitled)))
		if len(order) > 1 && len(block) > maxInBlock+1 {
			block = block[:maxInBlock]
		}
		for _, h := range block {
			lines = append(lines, a.hitLines(h, short)...)
		}
		if more := len(blocks[id]) - len(block); more > 0 {
			here := a.command("search", cmd.Flags().Args(), append(givenFlags(cmd, "session"), "--session", short.Name(block[0].Name()))...)
			lines = append(lines, "  "+a.paint(dim, fmt.Sprintf("… %d more here: %s", more, here)))
		}
	}
	return a.printLines(lines)
}

// maxInBlock is how many hits of one conversation are shown, so that one that is
// all about the query does not hide the others.
const maxInBlock = 4

// hitLines are the time and origin of a hit, what matched, and the command that shows it.
func (a *app) hitLines(h *home.Hit, short render.Names) []string {
	head := "  " + a.paint(dim, a.when(h.Time, time.Now())+" · ") + a.paint(blue, whoSaid(h))
	if !h.Live {
		head += a.paint(yellow, " · a branch that was left")
	}
	lines := append([]string{head}, strings.Split(a.wrap(a.highlight(h), "    "), "\n")...)
	return append(lines, "    "+a.paint(dim, a.showCommandFor(short.Name(h.Name()), render.ShortID(h.Entry))+alsoIn(h, short)))
}

// whoSaid is who or what a hit comes from: a role, a tool, or what else it is.
func whoSaid(h *home.Hit) string {
	who := cmp.Or(h.Tool, h.Role)
	if h.Kind != string(index.KindText) && h.Kind != string(index.KindOutput) {
		who = strings.TrimSpace(who + " " + h.Kind)
	}
	return render.OneLine(who, 0)
}

// alsoIn names the other sessions that have the hit: the first, and how many more.
func alsoIn(h *home.Hit, short render.Names) string {
	if len(h.Also) == 0 {
		return ""
	}
	text := "  # also in " + plain.ShellWord(short.Name(h.Also[0]))
	if more := len(h.Also) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// showCommandFor is the command that shows an entry in its place.
func (a *app) showCommandFor(name, entry string) string {
	if entry == "" {
		return a.command("show", []string{name})
	}
	return a.command("show", []string{name}, "--at", entry)
}

// highlight marks what matched in the snippet, which is made harmless and put
// onto one line piece by piece, so that the ranges still hold.
func (a *app) highlight(h *home.Hit) string {
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

// hitJSON is a hit in the output of --json, with what holds for all hits and the command that
// opens it.
type hitJSON struct {
	*home.Hit
	Across  bool   `json:"across,omitempty"`
	Bounded bool   `json:"bounded,omitempty"`
	Open    string `json:"open"`
}
