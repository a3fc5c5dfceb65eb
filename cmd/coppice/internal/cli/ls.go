package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
)

type lsFlags struct {
	since, until     string
	pinned, archived bool
	list             home.ListRequest
}

// lsCommand takes filters as arguments in the same form as search does, and as flags, which
// scripts find easier to build.
func lsCommand(a *app) *cobra.Command {
	var f lsFlags
	cmd := &cobra.Command{
		Use:     "ls [FILTER…]",
		Aliases: []string{"list"},
		Short:   "List the sessions",
		Long: "Lists the sessions, the most recently active first. A filter is agent:NAME,\nproject:NAME, tag:NAME, file:NAME, cwd:DIR, since:TIME or until:TIME (or after:\nbefore: in:).\n\n" +
			"Sessions that continue each other are one conversation, on one line, with the id\nof the first; --links lists them one by one. Subagents are counted in the session\nthat started them; --all lists them, too. --roots leaves out forks as well.\n\n" +
			"On a terminal, long values are shortened. Piped output has one session a line,\nseparated by tabs, with whole ids and plain numbers: id, updated, agent, project,\nmessages, tokens (empty if unknown), bytes, title, tags, and with --cost dollars.",
		Example: "  coppice ls\n  coppice ls agent:codex project:ledger\n  coppice ls file:store/main.go\n  coppice ls --since 7d --sort tokens",

		ValidArgsFunction: a.completeFilters(index.ListFilters()),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runLs(cmd, &f, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.list.Sort, "sort", "updated", "by updated, created, title, messages, tokens, size")
	flags.BoolVar(&f.list.Reverse, "reverse", false, "reverse the order")
	limitFlag(cmd, &f.list.Limit, 0)
	flags.Lookup("limit").Usage = "how many; 0 is all (50 on a terminal, all in a pipe)"
	flags.IntVar(&f.list.Page, "page", 1, "which page")
	flags.StringVar(&f.list.After, "after", "", "continue after this cursor, which --json prints")
	flags.StringArrayVar(&f.list.Tags, "tag", nil, "only with this tag; repeat it to require several")
	flags.StringVar(&f.list.CWD, "cwd", "", "only about this directory and those below")
	flags.StringVar(&f.list.Agent, "agent", "", "only from this program, such as claude-code")
	flags.StringVar(&f.list.Project, "project", "", "only about a directory of this name, or end of path")
	flags.StringVar(&f.list.File, "file", "", "only if a tool touched a file of this name, or end of path")
	flags.StringVar(&f.list.Key, "key", "", "only with this key")
	flags.StringVar(&f.list.Parent, "parent", "", "only forks, continuations and subagents of this session")
	flags.StringVar(&f.list.Relation, "relation", "", "only fork, continuation, recovery or subagent")
	flags.BoolVar(&f.list.All, "all", false, "list subagents, too")
	flags.BoolVar(&f.list.Roots, "roots", false, "leave out forks, too")
	flags.BoolVar(&f.list.Nonempty, "nonempty", false, "only those in which something was said")
	flags.BoolVar(&f.list.Cost, "cost", false, "what each cost")
	flags.BoolVar(&f.list.Links, "links", false, "list sessions that continue each other one by one")
	flags.StringVar(&f.since, "since", "", "only updated since: 2026-03-01, or 7d ago")
	flags.StringVar(&f.until, "until", "", "only updated before")
	flags.BoolVar(&f.pinned, "pinned", false, "only pinned ones (=false: only others)")
	flags.BoolVar(&f.archived, "archived", false, "only archived ones (=false: only others)")
	return a.withJSON(cmd)
}

// pageSize is how many sessions a list on a terminal has.
const pageSize = 50

// listRequest settles what was asked for. A person wants a page, a program everything.
func (a *app) listRequest(cmd *cobra.Command, f *lsFlags, now time.Time) (r home.ListRequest, err error) {
	r = f.list
	if r.Page < 1 {
		return r, misuse("--page is %d; the first page is 1", r.Page)
	}
	if !cmd.Flags().Changed("limit") && (a.isTerminal() || cmd.Flags().Changed("page")) {
		r.Limit = pageSize
	}
	if r.Limit, err = limitIn(r.Limit); err != nil {
		return r, err
	}
	r.Pinned, r.Archived = ifGiven(cmd, "pinned", &f.pinned), ifGiven(cmd, "archived", &f.archived)
	since, until, err := timesIn(f.since, f.until, now)
	r.Since, r.Until = cmp.Or(since, r.Since), cmp.Or(until, r.Until) // one of the arguments may say it
	return r, err
}

// runLs explains an argument that is not a filter by what was probably meant: a session to
// show, or words to search for.
func (a *app) runLs(cmd *cobra.Command, f *lsFlags, args []string) error {
	now := time.Now()
	for _, arg := range args {
		if err := f.list.Narrow(arg, now); err != nil {
			name, value, _ := strings.Cut(arg, ":")
			filter, _ := index.FilterOf(name, value)
			switch {
			case value != "" && slices.Contains(index.ListFilters(), filter):
				return usageError{err} // it is the value that is wrong
			case strings.HasPrefix(arg, "@"):
				return hinted(usageError{err}, a.command("show", []string{arg})+" shows one session")
			}
			return hinted(usageError{err}, a.command("search", []string{arg})+" searches in what was said")
		}
	}
	r, err := a.listRequest(cmd, f, now)
	if err != nil {
		return err
	}
	return a.withHome(cmd.Context(), false, func(h *home.Home) error {
		list, err := h.Sessions.List(cmd.Context(), r)
		if err != nil {
			return err
		}
		switch {
		case len(list.Unknown) > 0:
			a.sayUnknown(list.Unknown)
			return errNothingFound
		case a.flags.json:
			err = printObjects(a, list.Sessions)
		default:
			err = a.printSessions(cmd.Context(), h, list.Sessions)
		}
		if list.Next != "" && err == nil {
			a.sayMore(cmd, r, list.Next)
		}
		return err
	})
}

// sayUnknown says which filters were in vain, and what may have been meant.
func (a *app) sayUnknown(unknown []home.UnknownFilter) {
	for _, u := range unknown {
		a.say("%s", u.Text(plain.ShellWord))
	}
}

// sayMore says how to see what follows a page. A person counts pages; a program continues
// after a cursor, which stays valid when a new session changes the pages.
func (a *app) sayMore(cmd *cobra.Command, r home.ListRequest, next string) {
	more := func(flag, value string) string {
		return a.command(cmd.Name(), cmd.Flags().Args(), append(givenFlags(cmd, "after", "page"), flag, value)...)
	}
	if a.flags.json || r.After != "" {
		a.say("%s %s", a.paint(dim, "more:"), more("--after", next))
		return
	}
	a.say("%s %s", a.paint(dim, "more:"), more("--page", strconv.Itoa(max(r.Page, 1)+1)))
}

// givenFlags are the flags that the user gave, except some.
func givenFlags(cmd *cobra.Command, except ...string) (words []string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(except, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			switch {
			case f.Value.Type() != "bool":
				words = append(words, "--"+f.Name, value)
			case value == "true":
				words = append(words, "--"+f.Name)
			default:
				words = append(words, "--"+f.Name+"="+value)
			}
		}
	})
	return words
}

// printSessions prints a table for people. Where all sessions are from one agent, its column
// goes before that of the project, and columns that are empty are not shown at all.
func (a *app) printSessions(ctx context.Context, h *home.Home, sessions []home.SessionInfo) error {
	if len(sessions) == 0 {
		a.say("no sessions")
		return nil
	}
	if !a.isTerminal() {
		return a.printSessionLines(sessions)
	}
	dirs := make([]string, len(sessions))
	for i := range sessions {
		dirs[i] = sessions[i].CWD
	}
	projectNames := render.ShortDirs(dirs)
	short, err := namesIn(ctx, h, sessions)
	if err != nil {
		return err
	}
	now := time.Now()
	t := a.newTable("TITLE", "ID", "UPDATED", "AGENT", "PROJECT", ">MSGS", ">TOKENS", ">COST", ">SIZE", "TITLE", "TAGS")
	t.spare, t.least = []string{"SIZE", "TAGS", "PROJECT", "AGENT", "TOKENS", "MSGS", "COST", "UPDATED"}, 24
	if !slices.ContainsFunc(sessions, func(s home.SessionInfo) bool { return s.Agent != sessions[0].Agent }) {
		t.spare[2], t.spare[3] = t.spare[3], t.spare[2] // the agent says nothing where all have the same
	}
	projects, tags := maxProject, maxTags
	if a.width() < tight {
		projects, tags = tightColumn, tightColumn
	}
	for i := range sessions {
		s := &sessions[i]
		t.add(a.paint(cyan, short.Shown(s.Name)), a.when(s.Updated, now), render.OneLine(s.Agent, maxAgent), endOf(projectNames.Shown(s.CWD), projects),
			strconv.Itoa(s.Messages), home.ShortTokens(s), cost(s), render.Bytes(s.Size), titleWithMarks(*s), render.OneLine(strings.Join(s.Tags, " "), tags))
	}
	t.dropEmpty("TAGS", "COST", "PROJECT", "AGENT")
	return t.print()
}

const (
	tight       = 100 // columns, below which a list shortens more
	maxTags     = 24  // columns
	maxAgent    = 12
	maxProject  = 16
	tightColumn = 10 // of the two where the list is tight
)

// endOf shortens a path at its beginning: its end says most.
func endOf(path string, width int) string {
	if over := ansi.StringWidth(path) - width; over > 0 {
		return ansi.TruncateLeft(path, over+1, "…")
	}
	return path
}

// printSessionLines prints a list for cut and awk: nothing shortened, no marks, and
// numbers that can be added up.
func (a *app) printSessionLines(sessions []home.SessionInfo) error {
	for i := range sessions {
		s := &sessions[i]
		cells := []string{
			s.Name, rfc3339(s.Updated), s.Agent, s.Project, strconv.Itoa(s.Messages), counted(s),
			strconv.FormatInt(s.Size, 10), s.Title, strings.Join(s.Tags, " "),
		}
		if s.Cost != nil {
			cells = append(cells, strconv.FormatFloat(float64(s.Cost.CostMicroUSD)/1e6, 'f', -1, 64))
		}
		for at := range cells {
			cells[at] = render.OneLine(cells[at], 0)
		}
		if err := a.printText(strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return nil
}

// cost says what a session cost, if that was asked for and anything was spent.
func cost(s *home.SessionInfo) string {
	if s.Cost == nil || s.Cost.Responses == 0 {
		return ""
	}
	return home.ShortCost(s.Cost)
}

// counted is tokens for a program.
func counted(s *home.SessionInfo) string {
	if s.TokensFrom == "" {
		return ""
	}
	return strconv.FormatInt(s.Tokens, 10)
}

// titleWithMarks tells in front of the title what is special about a session.
func titleWithMarks(s home.SessionInfo) string {
	var marks []string
	mark := func(is bool, text string) {
		if is {
			marks = append(marks, text)
		}
	}
	mark(s.Pinned, "★")
	mark(s.Archived, "(archived)")
	mark(s.Links > 1, "("+render.Counted(s.Links, "session", "sessions")+")")
	mark(len(s.Missing) > 0, fmt.Sprintf("(%d missing)", len(s.Missing)))
	mark(s.Subagents > 0, "("+render.Counted(s.Subagents, "subagent", "subagents")+")")
	mark(s.Problems > 0, "(damaged: coppice fsck)")
	return strings.Join(append(marks, cmp.Or(render.OneLine(s.Title, 0), render.Untitled)), " ")
}
