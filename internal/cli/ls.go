package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/window"
)

type lsFlags struct {
	sort, since, until        string
	reverse, pinned, archived bool
	all                       bool
	list                      index.ListOptions
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
	flags.BoolVar(&f.all, "all", false, "list subagents, too")
	flags.BoolVar(&f.list.Links, "links", false, "list sessions that continue each other one by one")
	flags.StringVar(&f.since, "since", "", "only updated since: 2026-03-01, or 7d ago")
	flags.StringVar(&f.until, "until", "", "only updated before")
	flags.BoolVar(&f.pinned, "pinned", false, "only pinned ones (=false: only others)")
	flags.BoolVar(&f.archived, "archived", false, "only archived ones (=false: only others)")
	return a.withJSON(cmd)
}

// options settles what was asked for.
func (f *lsFlags) options(cmd *cobra.Command, now time.Time) (o index.ListOptions, err error) {
	o = f.list
	o.Sort = index.Sort(f.sort)
	// The latest and the largest first, but titles from A to Z.
	o.Desc = (o.Sort != index.ByTitle) != f.reverse
	if o.Limit == 0 {
		o.Limit = -1
	}
	o.Fold = !f.all && o.Parent == "" && o.Relation == ""
	o.Links = o.Links || o.Relation == session.RelationContinuation // a conversation continues nothing
	if cmd.Flags().Changed("pinned") {
		o.Pinned = &f.pinned
	}
	if cmd.Flags().Changed("archived") {
		o.Archived = &f.archived
	}
	if o.Since, err = parseWhen("--since", f.since, now); err != nil {
		return o, err
	}
	o.Until, err = parseWhen("--until", f.until, now)
	return o, err
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
	o, err := f.options(cmd, time.Now())
	if err != nil {
		return err
	}
	return a.withIndex(cmd.Context(), func(ix *index.Index) error {
		if err := a.findParent(cmd.Context(), ix, &o); err != nil {
			return err
		}
		sessions, next, err := ix.List(cmd.Context(), o)
		if err != nil {
			return err
		}
		if a.flags.json {
			err = a.printSessionsJSON(sessions)
		} else {
			err = a.printSessions(sessions)
		}
		if next != "" && err == nil {
			a.say("%s %s", a.paint(dim, "more:"), nextPage(cmd, next))
		}
		return err
	})
}

// findParent completes the id of the parent. One that is no longer in the store
// stays as it was given: its children still name it.
func (a *app) findParent(ctx context.Context, ix *index.Index, o *index.ListOptions) error {
	if o.Parent == "" {
		return nil
	}
	s, err := a.sessionIn(ctx, ix, o.Parent)
	switch {
	case errors.Is(err, store.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	o.Parent = s.ID
	return nil
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

func (a *app) printSessions(sessions []index.Session) error {
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
func titleWithMarks(s index.Session) string {
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

// sessionJSON is a session in the output of --json: see docs/cli.md.
type sessionJSON struct {
	ID           string        `json:"id"`
	Name         string        `json:"name"`
	Key          string        `json:"key,omitempty"`
	Title        string        `json:"title"`
	Named        bool          `json:"named"`
	Tags         []string      `json:"tags"`
	CWD          string        `json:"cwd,omitempty"`
	Created      time.Time     `json:"created"`
	Updated      time.Time     `json:"updated"`
	Messages     int           `json:"messages"`
	Entries      int           `json:"entries"`
	Branches     int           `json:"branches"`
	Tokens       int64         `json:"tokens"`
	TokensFrom   string        `json:"tokens_from,omitempty"`
	Context      int64         `json:"context_tokens"`
	Size         int64         `json:"size"`
	Models       []index.Count `json:"models"`
	Tools        []index.Count `json:"tools"`
	Parent       string        `json:"parent,omitempty"`
	Relation     string        `json:"relation,omitempty"`
	Continuation int           `json:"continuation_index,omitempty"`
	ContinuedTo  string        `json:"continued_to,omitempty"`
	Links        int           `json:"links"`
	Missing      []string      `json:"missing"`
	Conversation string        `json:"conversation,omitempty"`
	Subagents    int           `json:"subagents"`
	Pinned       bool          `json:"pinned"`
	Archived     bool          `json:"archived"`
	Leaf         string        `json:"leaf"`
	Problems     int           `json:"problems"`
}

func (a *app) printSessionsJSON(sessions []index.Session) error {
	for _, s := range sessions {
		err := a.printJSON(sessionJSON{
			ID: s.ID, Name: s.Name, Key: s.Key, Title: s.Title, Named: s.Named, Tags: orEmpty(s.Tags), CWD: s.CWD,
			Created: s.Created.UTC(), Updated: s.Updated.UTC(), Messages: s.Messages, Entries: s.Entries,
			Branches: s.Branches, Tokens: s.Tokens, TokensFrom: tokensFrom(s), Context: s.Context, Size: s.Size,
			Models: orEmpty(s.Models), Tools: orEmpty(s.Tools),
			Parent: s.Parent, Relation: s.Relation, Continuation: s.Continuation, ContinuedTo: s.ContinuedTo,
			Links: max(s.Links, 1), Missing: orEmpty(s.Missing), Conversation: s.Conversation, Subagents: s.Subagents,
			Pinned: s.Pinned, Archived: s.Archived, Leaf: s.Leaf, Problems: s.Problems,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// tokensFrom says who counted a session's tokens: its providers, or whoever
// recorded them with the messages.
func tokensFrom(s index.Session) string {
	switch {
	case s.Tokens == 0:
		return ""
	case s.Reported:
		return window.Reported.String()
	}
	return window.Recorded.String()
}

// orEmpty makes a missing list an empty one: programs should not meet null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return slices.Clone(list)
}
