package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

func labelCommand(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "label ID ENTRY TEXT…",
		Short: "Give an entry a name",
		Long: "Gives an entry a label, which you can use wherever a command takes an entry. An\n" +
			"empty TEXT removes the label; - reads it from standard input.",
		GroupID: "organise",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runLabel(cmd.Context(), home.LabelRequest{Session: args[0], Entry: args[1], Label: strings.Join(args[2:], " ")})
		},
	})
}

func (a *app) runLabel(ctx context.Context, r home.LabelRequest) (err error) {
	if r.Label, err = a.flagText(r.Label); err != nil {
		return err
	}
	return a.withHome(ctx, false, func(h *home.Home) error {
		named, err := h.Entries.Label(ctx, r)
		if err != nil {
			return err
		}
		short, err := a.entryNames(ctx, h, named.Session, named.Target)
		if err != nil {
			return err
		}
		target := short.Shown(named.Target)
		line := fmt.Sprintf("entry %s is now %q", target, named.Label)
		if named.Label == "" {
			line = fmt.Sprintf("entry %s has no label now", target)
		}
		return a.done(named, named.Entry, line)
	})
}

func renameCommand(a *app) *cobra.Command {
	var auto autoFlags
	cmd := &cobra.Command{
		Use:   "rename ID [NAME…]",
		Short: "Give a session a display name",
		Long: "Gives a session a display name; - reads it from standard input. An empty NAME\n" +
			"removes the name. With --auto, the model in the settings (coppice config) reads the\n" +
			"conversation and chooses one.",
		GroupID: "organise",
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := auto.request(a)
			if err != nil {
				return err
			}
			if auto.on == (len(args) > 1) {
				return usageError{errors.New("give either a NAME or --auto")}
			}
			r := home.RenameRequest{Session: args[0], Auto: request}
			if !auto.on {
				r.Name = strings.Join(args[1:], " ")
			}
			return a.runRename(cmd.Context(), r)
		},
	}
	auto.register(cmd, "auto", "choose the name")
	return a.withJSON(cmd)
}

func (a *app) runRename(ctx context.Context, r home.RenameRequest) (err error) {
	if r.Name, err = a.flagText(r.Name); err != nil {
		return err
	}
	return a.withHome(ctx, false, func(h *home.Home) error {
		renamed, err := h.Sessions.Rename(ctx, r)
		if err != nil {
			return err
		}
		line := fmt.Sprintf("session %s is now %q", render.ShortID(renamed.Session), renamed.Name)
		if renamed.Name == "" {
			line = fmt.Sprintf("session %s has no name now", render.ShortID(renamed.Session))
		}
		if renamed.Was != "" {
			line += fmt.Sprintf("; it was %q", renamed.Was)
		}
		line += wroteIt(renamed.Auto)
		return a.done(renamed, renamed.Entry, line)
	})
}
