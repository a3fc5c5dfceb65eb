package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

func rmCommand(a *app) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "rm ID…",
		Short: "Move sessions to the trash",
		Long: "Moves sessions to the trash, from which coppice trash restore brings them back,\n" +
			"and prints the name of each removal. Pinned sessions stay unless --force is given.",
		GroupID:           "keep",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeSession(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(func(st *file.Store) error {
				return a.each(cmd.Context(), args, func(id string) error { return a.removeGiven(cmd.Context(), st, id, force) })
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also those that are pinned, or of which that cannot be told")
	return cmd
}

func (a *app) removeGiven(ctx context.Context, st *file.Store, id string, force bool) error {
	name, err := resolveSession(ctx, st, id)
	if err != nil {
		return err
	}
	if !force {
		if err := a.mustNotBePinned(ctx, st, name); err != nil {
			return err
		}
	}
	title := a.titleIn(ctx, st, name)
	removal, err := removeSession(ctx, st, name)
	if err != nil {
		return err
	}
	if title != "" {
		title = fmt.Sprintf(" (%s)", title)
	}
	a.say("session %s%s is in the trash; %s brings it back", name, title, command("trash restore", []string{name}))
	return a.print("%s", removal)
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
