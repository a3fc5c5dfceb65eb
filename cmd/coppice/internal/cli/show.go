package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/card"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render/terminal"
	"github.com/coppice-dev/coppice/session"
)

type showFlags struct {
	leaf, at, raw   string
	last            int
	all, full, link bool
	card            bool
}

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
		RunE: func(cmd *cobra.Command, args []string) error { return a.runShow(cmd, args[0], &f) },
	}
	cmd.Flags().StringVar(&f.leaf, "leaf", "", "show the path up to this entry: an id or a label")
	cmd.Flags().BoolVar(&f.all, "all", false, "every entry of the session, in the order of the log")
	cmd.Flags().BoolVar(&f.full, "full", false, "tool calls and results in full")
	linkFlag(cmd, &f.link)
	chainFlag(cmd)
	cmd.Flags().StringVar(&f.raw, "raw", "", "the source bytes of an imported entry")
	cmd.Flags().StringVar(&f.at, "at", "", "this entry and what is around it")
	cmd.Flags().IntVar(&f.last, "last", 0, "only the last N entries")
	cmd.Flags().BoolVar(&f.card, "card", false, "what was done, what is open, the last step, files, cost")
	cmd.MarkFlagsMutuallyExclusive("all", "leaf", "at", "raw", "card")
	cmd.MarkFlagsMutuallyExclusive("card", "last")
	cmd.MarkFlagsMutuallyExclusive("card", "full")
	cmd.MarkFlagsMutuallyExclusive("card", "link")
	cmd.MarkFlagsMutuallyExclusive("at", "last")
	return a.withJSON(a.picking(cmd))
}

func (a *app) runShow(cmd *cobra.Command, id string, f *showFlags) error {
	if f.last < 0 {
		return usageError{fmt.Errorf("--last is %d; it must not be negative", f.last)}
	}
	ctx := cmd.Context()
	return a.withHome(ctx, false, func(h *home.Home) error {
		switch {
		case f.card:
			return a.showCard(ctx, h, home.SessionRequest{Session: id})
		case f.raw != "":
			return a.showRaw(ctx, h, home.RawRequest{Session: id, Entry: f.raw})
		case a.flags.json:
			r := home.PathRequest{Session: id, Link: f.link, Leaf: f.leaf, At: f.at, All: f.all, Last: f.last}
			_, err := h.Entries.Path(ctx, r, func(e session.Entry) error { return a.printJSON(e) })
			return err
		}
		c, err := h.Conversation(ctx, home.OpenRequest{Session: id, Link: f.link})
		if err != nil {
			return err
		}
		err = a.show(ctx, c, f)
		if err == nil {
			err = c.Intact(f.at == "" && f.last == 0)
		}
		return errors.Join(err, c.Close())
	})
}

// showCard prints what a person needs to take up a conversation again.
func (a *app) showCard(ctx context.Context, h *home.Home, r home.SessionRequest) error {
	c, err := h.Sessions.Card(ctx, r)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(c)
	}
	return a.printText(strings.Join(card.Lines(c, a.style()), "\n"))
}

// showRaw prints what an entry was in the file that it was imported from.
func (a *app) showRaw(ctx context.Context, h *home.Home, r home.RawRequest) error {
	raw, err := h.Entries.Raw(ctx, r)
	if err != nil {
		return err
	}
	return a.printDocument(isJSON(raw.Data), func(w io.Writer) error {
		_, err := w.Write(raw.Data)
		return err
	})
}

// show writes a conversation for a person.
func (a *app) show(ctx context.Context, c *home.Conversation, f *showFlags) error {
	o := terminal.ShowOptions{All: f.all, Full: f.full, Last: f.last}
	var err error
	if o.Leaf, err = c.Resolve(f.leaf); err != nil {
		return err
	}
	if f.at != "" {
		if o.At, err = c.Resolve(f.at); err != nil {
			return err
		}
	}
	drawn, err := c.Rendered(ctx)
	if err != nil {
		return err
	}
	o.Hints = terminal.Hints{
		Branch: func(entry string) string { return a.command("show", []string{drawn.Name}, "--leaf", entry) },
		Whole:  a.command("show", []string{drawn.Name}),
		Folded: "--full shows them",
	}
	if f.leaf != "" {
		o.Hints.Whole = a.command("show", []string{drawn.Name}, "--leaf", f.leaf)
	}
	return terminal.Show(ctx, a.out, drawn, a.style(), o)
}
