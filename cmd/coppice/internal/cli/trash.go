package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/render"
)

// trashCommand lists what is there if it is called alone, because the names in the list are
// what the commands below it take.
func trashCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trash",
		Short: "See, restore or delete removed sessions",
	}
	cmd.AddCommand(trashRestoreCommand(a), trashEmptyCommand(a))
	return withDefault(cmd, a.withJSON(&cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List what is in the trash, the latest removal first",
		RunE:    a.onHome(a.listTrash),
	}))
}

// listTrash shows the title and the time, by which people recognise what they removed.
func (a *app) listTrash(ctx context.Context, h *home.Home, _ []string) error {
	trash, err := h.Upkeep.Trash(ctx, home.TrashRequest{})
	if err != nil {
		return err
	}
	if len(trash.Removals) == 0 {
		a.say("the trash is empty")
	}
	t := a.newTable("TITLE", "SESSION", "REMOVED", ">SIZE", "TITLE")
	t.spare = []string{"SIZE"}
	names := a.trashNames(trash.Removals)
	return printList(a, trash.Removals, t, func(item *home.Removal) []string {
		return []string{names[item.ID], a.when(item.Removed, time.Now()), render.Bytes(item.Size), render.OneLine(item.Title, 60)}
	})
}

// trashNames returns how to show removals: in a table for a person by the
// beginning of the session's id, unless it was removed twice, elsewhere in full.
func (a *app) trashNames(items []home.Removal) map[string]string {
	sessions, names := make([]string, len(items)), make(map[string]string)
	for i := range items {
		sessions[i] = items[i].Session
	}
	short := render.ShortIDs(sessions)
	for i := range items {
		id := items[i].Session
		if names[items[i].ID] = items[i].ID; a.width() > 0 && short[id] != id {
			names[items[i].ID] = short[id]
		}
	}
	return names
}

// trashRestoreCommand takes names of sessions as well as of removals: who removed a session
// remembers the one and was told the other.
func trashRestoreCommand(a *app) *cobra.Command {
	var link bool
	cmd := &cobra.Command{
		Use:   "restore ID…",
		Short: "Bring removed sessions back",
		Long: "Brings sessions back under their ids. ID is the name of a removal, or of a session as\n" +
			"coppice rm takes it, which means its latest removal; last is the latest of all.\n\n" +
			"The rest of the same conversation and the subagents that it started come back with\n" +
			"it; --link brings back only the session you name.",
		ValidArgsFunction: a.completeTrash,
		RunE: a.onHome(func(ctx context.Context, h *home.Home, args []string) error {
			meant, err := h.Upkeep.DistinctRemovals(ctx, home.DistinctRequest{Sessions: args, Link: link})
			if err != nil {
				return err
			}
			return a.each(ctx, meant.Sessions, func(id string) error {
				return a.restoreTrashed(ctx, h, home.RestoreRequest{Session: id, Link: link})
			})
		}),
	}
	linkFlag(cmd, &link)
	return a.withJSON(cmd)
}

// restoreTrashed prints every session that came back, because what was removed as a whole comes
// back as a whole.
func (a *app) restoreTrashed(ctx context.Context, h *home.Home, r home.RestoreRequest) error {
	back, err := h.Upkeep.Restore(ctx, r)
	if back == nil {
		return err
	}
	with := ""
	if n := len(back.With); n > 0 {
		with = fmt.Sprintf(", with %s that belong to it", render.Counted(n, "session", "sessions"))
		if n == 1 {
			with = ", with a session that belongs to it"
		}
	}
	a.say("session %s is back%s", render.ShortID(back.Session), with)
	if a.flags.json {
		return errors.Join(a.printJSON(back), err)
	}
	return errors.Join(err, a.printLines(append([]string{back.Session}, back.With...)))
}

// completeTrash offers removals, with how long ago they were: titles alone do not tell two
// removals of one session apart.
func (a *app) completeTrash(cmd *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return a.offering(cmd, func(ctx context.Context, h *home.Home) (offers []cobra.Completion, err error) {
		trash, err := h.Upkeep.Trash(ctx, home.TrashRequest{Begin: begin})
		if err != nil {
			return nil, err
		}
		for _, item := range trash.Removals {
			offers = append(offers, cobra.CompletionWithDesc(item.ID, strings.TrimSpace("removed "+render.Ago(item.Removed, time.Now())+" "+render.OneLine(item.Title, 40))))
		}
		return offers, nil
	})
}

// trashEmptyCommand is the only command that deletes sessions for good, and the only one of
// these that asks.
func trashEmptyCommand(a *app) *cobra.Command {
	var olderThan age
	var yes bool
	cmd := &cobra.Command{
		Use:   "empty",
		Short: "Delete everything in the trash for good",
	}
	cmd.RunE = a.onHome(func(ctx context.Context, h *home.Home, _ []string) error {
		return a.emptyTrash(ctx, h, home.EmptyTrashRequest{All: !cmd.Flags().Changed("older-than"), OlderThan: home.Age(olderThan.Duration)}, yes)
	})
	cmd.Flags().Var(&olderThan, "older-than", "only removed this long ago, such as 30d, 2w or 12h")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return a.withJSON(cmd)
}

// emptyTrash deletes exactly what it asked about: what goes to the trash while a person thinks
// about the question stays.
func (a *app) emptyTrash(ctx context.Context, h *home.Home, r home.EmptyTrashRequest, yes bool) error {
	r.DryRun = true
	plan, err := h.Upkeep.EmptyTrash(ctx, r)
	if err != nil {
		return err
	}
	if len(plan.Removals) == 0 {
		a.say("there is nothing to delete")
		return nil
	}
	if !yes {
		what := fmt.Sprintf("%s (%s)", render.Counted(len(plan.Removals), "session", "sessions"), render.Bytes(plan.Size))
		if err := a.ask(ctx, fmt.Sprintf("delete %s for good?", what), "nothing was deleted"); err != nil {
			return err
		}
	}
	r.DryRun, r.Before = false, plan.Before // what came since was not asked about
	gone, err := h.Upkeep.EmptyTrash(ctx, r)
	if gone == nil {
		return err
	}
	if a.flags.json {
		err = errors.Join(err, a.printJSON(gone))
	} else {
		err = errors.Join(err, a.printLines(gone.Removals))
	}
	a.say("deleted %s for good", render.Counted(len(gone.Removals), "session", "sessions"))
	return err
}

// ask returns nil if the person at the terminal says yes, and an error with the text no
// otherwise. Where there is no terminal, they must have passed --yes.
func (a *app) ask(ctx context.Context, question, no string) error {
	if terminalOf(a.stdin) == nil {
		return misuse("%s cannot ask for confirmation without a terminal; pass --yes", question)
	}
	yes, err := a.isWanted(ctx, question)
	if err == nil && !yes {
		err = errors.New(no)
	}
	return err
}

// isWanted asks the person at the terminal.
func (a *app) isWanted(ctx context.Context, question string) (bool, error) {
	fmt.Fprintf(a.err, "%s [y/N] ", question)
	answer, err := gate.Await(ctx, func() (string, error) {
		answer, _ := bufio.NewReader(a.stdin).ReadString('\n')
		return strings.ToLower(strings.TrimSpace(answer)), nil
	})
	return answer == "y" || answer == "yes", err
}
