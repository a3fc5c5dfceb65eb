package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

func trashCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "trash",
		Short:   "See, restore or delete what was removed",
		GroupID: "keep",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(trashListCommand(a), trashRestoreCommand(a), trashEmptyCommand(a))
	return cmd
}

func trashListCommand(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "ls",
		Short: "List what is in the trash, the latest removal first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(func(st *file.Store) error { return a.listTrash(cmd.Context(), st) })
		},
	})
}

// trashJSON is what trash ls --json prints for each removal.
type trashJSON struct {
	ID      string    `json:"id"`
	Session string    `json:"session"`
	Title   string    `json:"title"`
	Removed time.Time `json:"removed"`
	Size    int64     `json:"size"`
}

func (a *app) listTrash(ctx context.Context, st *file.Store) error {
	items, err := st.Trash(ctx)
	if err != nil {
		return err
	}
	// What is in the trash lies there as it lay in the store, so that titles can
	// be read; those of archived sessions cannot.
	trashed, err := st.ReadTrash()
	if err != nil {
		return err
	}
	defer trashed.Close()
	t := a.newTable(3, "SESSION", "REMOVED", "SIZE", "TITLE")
	t.right[2] = true
	names := a.trashNames(items)
	for i, item := range items {
		title := a.titleIn(ctx, trashed, item.ID)
		if !a.flags.json {
			t.add(names[i], a.when(item.Removed, time.Now()), humanBytes(item.Size), title)
			continue
		}
		if err := a.printJSON(trashJSON{item.ID, item.Name, title, item.Removed, item.Size}); err != nil {
			return err
		}
	}
	switch {
	case len(items) == 0:
		a.say("the trash is empty")
	case !a.flags.json:
		return t.print()
	}
	return nil
}

// trashNames returns how to show removals: in a table for a person by a prefix
// of the session's id, unless it was removed twice, elsewhere in full.
func (a *app) trashNames(items []file.Trashed) []string {
	names := make([]string, len(items))
	for i := range items {
		names[i] = items[i].Name
	}
	short := shortIDs(names)
	for i := range items {
		if a.width() > 0 && short[items[i].Name] != items[i].Name {
			names[i] = short[items[i].Name]
		} else {
			names[i] = items[i].ID
		}
	}
	return names
}

func trashRestoreCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "restore ID…",
		Short: "Bring removed sessions back",
		Long: "Brings sessions back under their ids. ID is the id or the key of a session, of\n" +
			"which the latest removal is meant, or the name of a removal, or a prefix of one.",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeTrash,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(func(st *file.Store) error {
				return a.each(cmd.Context(), args, func(id string) error { return a.restore(cmd.Context(), st, id) })
			})
		},
	}
}

func (a *app) completeTrash(cmd *cobra.Command, args []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var offers []cobra.Completion
	if a.settle() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	_ = a.withStore(func(st *file.Store) error { // without a store there is nothing to offer
		items, err := st.Trash(cmd.Context())
		for _, item := range items {
			if strings.HasPrefix(item.ID, begin) {
				offers = append(offers, cobra.CompletionWithDesc(item.ID, "removed "+ago(item.Removed, time.Now())))
			}
		}
		return err
	})
	return offers, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) restore(ctx context.Context, st *file.Store, given string) error {
	item, err := resolveTrashed(ctx, st, given)
	if err != nil {
		return err
	}
	if err := st.Restore(ctx, item.ID); err != nil {
		if errors.Is(err, session.ErrExist) {
			err = &session.Error{
				Op: "restore", Name: item.Name, Kind: session.ErrExist, Err: errors.New("a session of that id is in the store"),
				Hint: "remove that one first; the one in the trash was left there",
			}
		}
		return err
	}
	a.say("session %s is back", item.Name)
	return a.print("%s", item.Name)
}

// resolveTrashed returns the removal that a user means: by its name or, like a
// session in the store (see resolveSession), by the session's id, its key, or a
// prefix. Of several removals of one session the latest is meant.
func resolveTrashed(ctx context.Context, st *file.Store, given string) (file.Trashed, error) {
	items, err := st.Trash(ctx)
	if err != nil {
		return file.Trashed{}, err
	}
	latest := make(map[string]file.Trashed) // by session
	var names []string
	add := func(item file.Trashed) {
		if _, seen := latest[item.Name]; !seen {
			latest[item.Name] = item
			names = append(names, item.Name)
		}
	}
	for _, item := range items {
		if item.ID == given || item.Name == given {
			return item, nil
		}
	}
	ofKey := idOfKey(given)
	for _, item := range items {
		if item.Name == ofKey {
			return item, nil
		}
		if given != "" && strings.HasPrefix(item.ID, given) {
			add(item)
		}
	}
	if len(names) == 0 && given != "" {
		found, err := trashedByKey(ctx, st, given)
		if err != nil {
			return file.Trashed{}, err
		}
		for _, item := range items {
			if slices.Contains(found, item.ID) {
				add(item)
			}
		}
	}
	name, err := theOne("session in the trash", given, names)
	return latest[name], err
}

// trashedByKey returns the removals of sessions that have a key which their ids are
// not made of. What was archived before it was removed cannot be asked.
func trashedByKey(ctx context.Context, st *file.Store, key string) ([]string, error) {
	trashed, err := st.ReadTrash()
	if err != nil {
		return nil, err
	}
	found, err := sessionsByKey(ctx, trashed, key)
	return found, errors.Join(err, trashed.Close())
}

func trashEmptyCommand(a *app) *cobra.Command {
	var olderThan age
	var yes bool
	cmd := &cobra.Command{
		Use:   "empty",
		Short: "Delete for good what is in the trash",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(func(st *file.Store) error { return a.emptyTrash(cmd.Context(), st, olderThan.Duration, yes) })
		},
	}
	cmd.Flags().Var(&olderThan, "older-than", "only what was removed longer ago, such as 30d, 2w or 12h")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) emptyTrash(ctx context.Context, st *file.Store, olderThan time.Duration, yes bool) error {
	before := time.Now().Add(-olderThan)
	items, err := st.Trash(ctx)
	if err != nil {
		return err
	}
	n, size := 0, int64(0)
	for _, item := range items {
		if item.Removed.Before(before) {
			n++
			size += item.Size
		}
	}
	if n == 0 {
		a.say("there is nothing to delete")
		return nil
	}
	what := fmt.Sprintf("%s (%s)", counted(n, "session", "sessions"), humanBytes(size))
	if !yes {
		if err := a.ask(fmt.Sprintf("delete %s for good?", what)); err != nil {
			return err
		}
	}
	gone, err := st.EmptyTrash(ctx, before)
	for _, item := range gone {
		err = errors.Join(err, a.print("%s", item.ID))
	}
	a.say("deleted %s for good", counted(len(gone), "session", "sessions"))
	return err
}

// ask returns nil if the person at the terminal says yes. Where there is none,
// --yes must have been given.
func (a *app) ask(question string) error {
	f, ok := a.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return usageError{fmt.Errorf("%s there is nobody to ask; --yes says so", question)}
	}
	fmt.Fprintf(a.err, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(f).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return nil
	}
	return errors.New("nothing was deleted")
}
