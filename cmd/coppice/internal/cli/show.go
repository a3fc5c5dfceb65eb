package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/card"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
	"github.com/coppice-dev/coppice/session"
)

type showFlags struct {
	home.PathRequest
	raw        string
	full, card bool
}

// showCommand reads a conversation in the way that a person would tell it: along one path.
// Everything else (the whole log, one entry, the source bytes) is a flag, of which only one
// makes sense at a time.
func showCommand(a *app) *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Read a conversation",
		Long: "Prints a conversation from its beginning to the leaf, or to the entry given\n" +
			"with --leaf. Where it branches, it prints the commands that show the other\n" +
			"branches. With --at it prints an entry and what is around it, and with --card what\n" +
			"you need to take the conversation up again: what was asked and done, what is\n" +
			"open, the last step, the files that were changed, and the cost.\n\n" +
			"Sessions that continue each other are one conversation, whichever of them you\n" +
			"name; --link shows only the one you name.",
		Example: "  coppice show 7f3a91c2\n" +
			"  coppice show last --last 5\n" +
			"  coppice show 7f3a91c2 --at c48d02ee\n" +
			"  coppice show 7f3a91c2 --json | jq -r .message.role",
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.Last < 0 {
				return misuse("--last is %d; it must not be negative", f.Last)
			}
			f.Session = args[0]
			return a.withHome(cmd.Context(), false, func(h *home.Home) error { return a.show(cmd.Context(), h, &f) })
		},
	}
	cmd.Flags().StringVar(&f.Leaf, "leaf", "", "show the path up to this entry: an id or a label")
	cmd.Flags().BoolVar(&f.All, "all", false, "every entry of the session, in the order of the log")
	cmd.Flags().BoolVar(&f.full, "full", false, "tool calls and results in full")
	linkFlag(cmd, &f.Link)
	chainFlag(cmd)
	cmd.Flags().StringVar(&f.raw, "raw", "", "the source bytes of an imported entry")
	cmd.Flags().StringVar(&f.At, "at", "", "this entry and what is around it")
	cmd.Flags().IntVar(&f.Last, "last", 0, "only the last N entries")
	cmd.Flags().BoolVar(&f.card, "card", false, "what was done, what is open, the last step, files, cost")
	cmd.MarkFlagsMutuallyExclusive("all", "leaf", "at", "raw", "card")
	cmd.MarkFlagsMutuallyExclusive("card", "last")
	cmd.MarkFlagsMutuallyExclusive("card", "full")
	cmd.MarkFlagsMutuallyExclusive("card", "link")
	cmd.MarkFlagsMutuallyExclusive("at", "last")
	return a.withJSON(a.picking(cmd))
}

// show writes for a program what the log has, and for a person what can be read on a screen. So
// only the second says what it folded.
func (a *app) show(ctx context.Context, h *home.Home, f *showFlags) error {
	switch {
	case f.card:
		return a.showCard(ctx, h, home.SessionRequest{Session: f.Session})
	case f.raw != "":
		return a.showRaw(ctx, h, home.RawRequest{Session: f.Session, Entry: f.raw})
	case a.flags.json:
		_, err := h.Entries.Path(ctx, f.PathRequest, func(e session.Entry) error { return a.printJSON(e) })
		return err
	}
	r, whole := home.OpenRequest{Session: f.Session, Link: f.Link}, f.At == "" && f.Last == 0
	return withConversation(ctx, h, r, whole, func(c *home.Conversation, drawn render.Conversation) error {
		return a.showPath(ctx, c, drawn, f)
	})
}

// showCard prints what a person needs to take up a conversation again.
func (a *app) showCard(ctx context.Context, h *home.Home, r home.SessionRequest) error {
	c, err := h.Sessions.Card(ctx, r)
	if err != nil || a.flags.json {
		return a.asJSON(c, err)
	}
	return a.printText(strings.Join(card.Lines(c, a.style()), "\n"))
}

// showRaw prints what an entry was in the file that it was imported from.
func (a *app) showRaw(ctx context.Context, h *home.Home, r home.RawRequest) error {
	raw, err := h.Entries.Raw(ctx, r)
	if err != nil {
		return err
	}
	return a.printBytes(raw.Data)
}

// withConversation draws a conversation for a person. What cannot be read of what was drawn, or of
// all of it if whole is set, is an error in the end: the rest is worth reading before that.
func withConversation(ctx context.Context, h *home.Home, r home.OpenRequest, whole bool, draw func(*home.Conversation, render.Conversation) error) error {
	c, err := h.Conversation(ctx, r)
	if err != nil {
		return err
	}
	drawn, err := c.Rendered(ctx)
	if err == nil {
		err = draw(c, drawn)
	}
	if err == nil {
		err = c.Intact(whole)
	}
	return errors.Join(err, c.Close())
}

// showPath writes a conversation, with the commands that show what is beside the path.
func (a *app) showPath(ctx context.Context, c *home.Conversation, drawn render.Conversation, f *showFlags) (err error) {
	o := terminal.ShowOptions{All: f.All, Full: f.full, Last: f.Last}
	if o.Leaf, err = c.Resolve(f.Leaf); err != nil {
		return err
	}
	if f.At != "" {
		if o.At, err = c.Resolve(f.At); err != nil {
			return err
		}
	}
	o.Hints = terminal.Hints{
		Branch: func(entry string) string { return a.command("show", []string{drawn.Name}, "--leaf", entry) },
		Whole:  a.command("show", []string{drawn.Name}),
		Folded: "--full shows them",
	}
	if f.Leaf != "" {
		o.Hints.Whole = a.command("show", []string{drawn.Name}, "--leaf", f.Leaf)
	}
	return terminal.Show(ctx, a.out, drawn, a.style(), o)
}
