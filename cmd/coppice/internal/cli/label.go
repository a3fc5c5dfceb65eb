package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// labelCommand takes the text as separate words, so that a label of several words needs no
// quotes.
func labelCommand(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "label ID ENTRY TEXT…",
		Short: "Give an entry a name",
		Long: "Gives an entry a label, which you can use wherever a command takes an entry. An\n" +
			"empty TEXT removes the label; - reads it from standard input.",
		RunE: a.onHome(func(ctx context.Context, h *home.Home, args []string) error {
			label, err := a.flagText(strings.Join(args[2:], " "))
			if err != nil {
				return err
			}
			named, err := h.Entries.Label(ctx, home.LabelRequest{Session: args[0], Entry: args[1], Label: label})
			if err != nil {
				return err
			}
			short, err := a.entryNames(ctx, h, named.Session, named.Target)
			if err != nil {
				return err
			}
			line := fmt.Sprintf("entry %s is now %q", short.Shown(named.Target), named.Label)
			if named.Label == "" {
				line = fmt.Sprintf("entry %s has no label now", short.Shown(named.Target))
			}
			return a.done(named, named.Entry, line)
		}),
	})
}

// renameCommand does nothing else to a session than to name it: the id stays, and with it every
// link.
func renameCommand(a *app) *cobra.Command {
	var r home.RenameRequest
	var auto autoFlags
	cmd := &cobra.Command{
		Use:   "rename ID [NAME…]",
		Short: "Give a session a display name",
		Long: "Gives a session a display name; - reads it from standard input. An empty NAME\n" +
			"removes the name. With --auto, the model in the settings (coppice config) reads the\n" +
			"conversation and chooses one.",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			r.Session, r.Name = args[0], strings.Join(args[1:], " ")
			if r.Auto, err = auto.request(a, &r.Name); err != nil {
				return err
			}
			if auto.on == (len(args) > 1) {
				return misuse("give either a NAME or --auto")
			}
			return a.withHome(cmd.Context(), false, func(h *home.Home) error { return a.rename(cmd.Context(), h, r) })
		},
	}
	auto.register(cmd, "auto", "choose the name")
	return a.withJSON(cmd)
}

// rename also says what the name was: a model may have chosen the new one, and the old one was
// perhaps better.
func (a *app) rename(ctx context.Context, h *home.Home, r home.RenameRequest) error {
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
	return a.done(renamed, renamed.Entry, line+wroteIt(renamed.Auto))
}
