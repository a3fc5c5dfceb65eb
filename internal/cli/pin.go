package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func pinCommand(a *app) *cobra.Command {
	return a.pinning("pin ID…", "Keep sessions from being removed", true)
}

func unpinCommand(a *app) *cobra.Command {
	return a.pinning("unpin ID…", "Let sessions be removed again", false)
}

func (a *app) pinning(use, short string, pinned bool) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Long: short + ".\n\nA pinned session stays when retention removes others, and rm refuses to remove\n" +
			"it unless it is forced.",
		GroupID:           "keep",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeSession(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.each(cmd.Context(), args, func(id string) error { return a.setPinned(cmd.Context(), id, pinned) })
		},
	}
}

func (a *app) setPinned(ctx context.Context, id string, pinned bool) error {
	is := "pinned"
	if !pinned {
		is = "not pinned"
	}
	return a.withEachLink(ctx, id, func(name string, links []opened) error {
		changed := false
		for _, o := range links { // all of a conversation are kept, or none
			was, err := o.Pinned()
			if err != nil {
				return err
			}
			if was == pinned {
				continue
			}
			if _, err := remark(o.Session, func() (string, error) { return o.SetPinned(pinned) }); err != nil {
				return plainly("pin", o.name, err)
			}
			changed = true
		}
		if changed {
			a.say("session %s is now %s", name, is)
		} else {
			a.say("session %s is %s already", name, is)
		}
		return a.print("%s", name)
	})
}
