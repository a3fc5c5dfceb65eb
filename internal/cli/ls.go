package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coppice-dev/coppice"
	"github.com/coppice-dev/coppice/index"
)

type lsFlags struct {
	sort, since, until        string
	reverse, pinned, archived bool
	list                      coppice.ListRequest
}

func lsCommand(a *app) *cobra.Command {
	var f lsFlags
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the sessions",
		Long: "List the sessions, the latest first. What is shortened on a terminal is whole\nin the output of --json.\n\n" +
			"Sessions that continue each other are one conversation, on one line, with the id\nof the first; --links lists them one by one.\n\n" +
			"Subagents, which a tool call of another session started, are counted there and\nlisted only with --all, --parent or --relation.",
		GroupID: "read",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runLs(cmd, &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.sort, "sort", "updated", "updated, created, title, messages, tokens or size")
	flags.BoolVar(&f.reverse, "reverse", false, "the other way round")
	flags.IntVarP(&f.list.Limit, "limit", "n", 50, "how many; 0 is all")
	flags.StringVar(&f.list.After, "after", "", "go on where a page ended: the cursor that it printed")
	flags.StringSliceVar(&f.list.Tags, "tag", nil, "only with this tag; several must all be there")
	flags.StringVar(&f.list.CWD, "cwd", "", "only about this directory and those below")
	flags.StringVar(&f.list.Key, "key", "", "only with this key")
	flags.StringVar(&f.list.Parent, "parent", "", "only forks, continuations and subagents of this session")
	flags.StringVar(&f.list.Relation, "relation", "", "only fork, continuation, recovery or subagent")
	flags.BoolVar(&f.list.All, "all", false, "list subagents, too")
	flags.BoolVar(&f.list.Links, "links", false, "list sessions that continue each other one by one")
	flags.StringVar(&f.since, "since", "", "only updated since: 2026-03-01, or 7d ago")
	flags.StringVar(&f.until, "until", "", "only updated before")
	flags.BoolVar(&f.pinned, "pinned", false, "only pinned ones (=false: only others)")
	flags.BoolVar(&f.archived, "archived", false, "only archived ones (=false: only others)")
	return a.withJSON(cmd)
}

// request settles what was asked for.
func (f *lsFlags) request(cmd *cobra.Command, now time.Time) (r coppice.ListRequest, err error) {
	r = f.list
	r.Sort, r.Reverse = f.sort, f.reverse
	switch {
	case r.Limit == 0:
		r.Limit = -1
	case r.Limit < 0:
		return r, usageError{fmt.Errorf("--limit is %d; it must not be negative, and 0 lists all", r.Limit)}
	}
	if cmd.Flags().Changed("pinned") {
		r.Pinned = &f.pinned
	}
	if cmd.Flags().Changed("archived") {
		r.Archived = &f.archived
	}
	if r.Since, err = parseWhen("--since", f.since, now); err != nil {
		return r, err
	}
	r.Until, err = parseWhen("--until", f.until, now)
	return r, err
}

// parseWhen reads a time as a person gives it: a day, a moment, or an age.
func parseWhen(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, ok := index.ParseTime(text, now)
	if !ok {
		return t, usageError{fmt.Errorf("%s: %q is not a time; give 2026-03-01, 2026-03-01T15:04 or an age such as 7d", flag, text)}
	}
	return t, nil
}

func (a *app) runLs(cmd *cobra.Command, f *lsFlags) error {
	r, err := f.request(cmd, time.Now())
	if err != nil {
		return err
	}
	return a.withHome(cmd.Context(), false, func(h *coppice.Home) error {
		list, err := h.Sessions.List(cmd.Context(), r)
		if err != nil {
			return err
		}
		if a.flags.json {
			err = a.printSessionsJSON(list.Sessions)
		} else {
			err = a.printSessions(list.Sessions)
		}
		if list.Next != "" && err == nil {
			a.say("%s %s", a.paint(dim, "more:"), nextPage(cmd, list.Next))
		}
		return err
	})
}

const (
	narrow   = 100 // columns, below which a list leaves something out
	mostTags = 30  // columns
)

// nextPage is the command that goes on where a page ended: the same flags with
// another cursor.
func nextPage(cmd *cobra.Command, cursor string) string {
	var words []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name == "after" {
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
	return command(cmd.Name(), nil, append(words, "--after", cursor)...)
}

func (a *app) printSessions(sessions []coppice.SessionInfo) error {
	if len(sessions) == 0 {
		a.say("no sessions")
		return nil
	}
	ids := make([]string, len(sessions))
	for i := range sessions {
		ids[i] = sessions[i].Name
	}
	short, now := shortIDs(ids), time.Now()
	if !a.isTerminal() {
		for id := range short {
			short[id] = id // a program should get the whole id
		}
	}
	t := a.newTable(5, "ID", "UPDATED", "MSGS", "TOKENS", "SIZE", "TITLE", "TAGS")
	t.right[2], t.right[3], t.right[4] = true, true, true
	for _, s := range sessions {
		t.add(a.paint(cyan, short[s.Name]), a.when(s.Updated, now), strconv.Itoa(s.Messages),
			humanCount(s.Tokens), humanBytes(s.Size), titleWithMarks(s), oneLine(strings.Join(s.Tags, " "), mostTags))
	}
	if width := a.width(); width > 0 && width < narrow {
		t.drop(4) // the title says more than the size
	}
	return t.print()
}

// titleWithMarks tells in front of the title what is special about a session.
func titleWithMarks(s coppice.SessionInfo) string {
	var marks []string
	if s.Pinned {
		marks = append(marks, "★")
	}
	if s.Archived {
		marks = append(marks, "(archived)")
	}
	if s.Links > 1 {
		marks = append(marks, "("+counted(s.Links, "session", "sessions")+")")
	}
	if len(s.Missing) > 0 {
		marks = append(marks, fmt.Sprintf("(%d missing)", len(s.Missing)))
	}
	if s.Subagents > 0 {
		marks = append(marks, "("+counted(s.Subagents, "subagent", "subagents")+")")
	}
	if s.Problems > 0 {
		marks = append(marks, "(damaged: coppice fsck)")
	}
	title := oneLine(s.Title, 0)
	switch {
	case title == "" && s.Messages == 0:
		title = "(empty)"
	case title == "":
		title = "(no prompt)"
	}
	return strings.Join(append(marks, title), " ")
}

func (a *app) printSessionsJSON(sessions []coppice.SessionInfo) error {
	for i := range sessions {
		if err := a.printJSON(&sessions[i]); err != nil {
			return err
		}
	}
	return nil
}
