package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

func rmCommand(a *app) *cobra.Command {
	var force, link bool
	cmd := &cobra.Command{
		Use:   "rm ID…",
		Short: "Move sessions to the trash",
		Long: "Moves sessions to the trash, from which coppice trash restore brings them back,\n" +
			"and prints the name of each removal. A conversation that goes on in several\n" +
			"sessions goes as a whole; --link removes only the session that is named. Pinned\n" +
			"sessions stay unless --force is given.",
		GroupID:           "keep",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeSession(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(func(st *file.Store) error {
				return a.each(cmd.Context(), args, func(id string) error { return a.removeGiven(cmd.Context(), st, id, link, force) })
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also those that are pinned, or of which that cannot be told")
	linkFlag(cmd, &link)
	return cmd
}

func (a *app) removeGiven(ctx context.Context, st *file.Store, id string, link, force bool) error {
	names, err := a.linksOf(ctx, st, id, link)
	if err != nil {
		return err
	}
	for _, name := range names {
		if force {
			break
		}
		if err := a.mustNotBePinned(ctx, st, name); err != nil {
			return err
		}
	}
	title := a.titleIn(ctx, st, names[0])
	if title != "" {
		title = fmt.Sprintf(" (%s)", title)
	}
	// The last goes first: what is left of a removal that is cut short is then a
	// conversation without its end, not one with a hole.
	var removals []string
	for _, name := range slices.Backward(names) {
		removal, err := removeSession(ctx, st, name)
		if err != nil {
			return err
		}
		removals = append(removals, removal)
	}
	back := command("trash restore", names)
	if len(names) == 1 {
		a.say("session %s%s is in the trash; %s brings it back", names[0], title, back)
	} else {
		a.say("conversation %s%s, %d sessions, is in the trash; %s brings it back", names[0], title, len(names), back)
	}
	for _, removal := range slices.Backward(removals) {
		if err := a.print("%s", removal); err != nil {
			return err
		}
	}
	return nil
}

// mustNotBePinned returns an error if a session is pinned, or if that cannot be
// told. One that has not a single entry has none that pins it.
func (a *app) mustNotBePinned(ctx context.Context, st *file.Store, name string) error {
	pinned, err := a.isPinned(ctx, st, name)
	switch {
	case errors.Is(err, session.ErrCorrupt):
		return nil
	case err != nil:
		return &session.Error{
			Op: "rm", Name: name, Err: fmt.Errorf("whether it is pinned cannot be told: %w", err),
			Hint: "--force removes it all the same",
		}
	case pinned:
		return &session.Error{
			Op: "rm", Name: name, Err: errors.New("the session is pinned"),
			Hint: "coppice unpin first, or --force",
		}
	}
	return nil
}

func (a *app) isPinned(ctx context.Context, st *file.Store, name string) (pinned bool, err error) {
	s, err := session.Open(ctx, st, name, a.options())
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.Pinned()
}

// removeSession moves a session to the trash and returns the name of the
// removal.
func removeSession(ctx context.Context, st *file.Store, name string) (string, error) {
	if err := st.Remove(ctx, name); err != nil {
		return "", err
	}
	items, err := st.Trash(ctx)
	if err != nil {
		return "", err
	}
	for _, item := range items { // the latest first
		if item.Name == name {
			return item.ID, nil
		}
	}
	return name, nil // somebody emptied the trash
}
