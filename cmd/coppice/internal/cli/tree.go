package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
)

type treeFlags struct {
	all, link bool
	fold      int
}

// treeCommand draws the shape of a session. Short ids stand at every entry, because the next
// command will need one.
func treeCommand(a *app) *cobra.Command {
	var f treeFlags
	cmd := &cobra.Command{
		Use:   "tree ID",
		Short: "Draw the branches of a session",
		Long: "Tree draws every branch. The path to the leaf runs straight down; what branches off\n" +
			"is indented beside it. A subagent's session is drawn below the call that started it.\n" +
			"The ids can be used in other commands.\n\n" +
			"Sessions that continue each other are drawn as one conversation; --link draws only\n" +
			"the one you name.",
		Example: "  coppice tree 7f3a91c2\n  coppice tree 7f3a91c2 --fold 4",
		RunE:    a.onHome(func(ctx context.Context, h *home.Home, args []string) error { return a.tree(ctx, h, args[0], &f) }),
	}
	cmd.Flags().BoolVar(&f.all, "all", false, "also names, tags and labels as entries of their own")
	cmd.Flags().IntVar(&f.fold, "fold", terminal.FoldIfLong, "fold runs of more than N entries; 0 never (default: 4 if long)")
	cmd.Flags().Lookup("fold").DefValue = "" // said in words
	linkFlag(cmd, &f.link)
	return a.withJSON(a.picking(cmd))
}

// tree gives a program the nodes and a person the drawing: indentation is not something to
// parse.
func (a *app) tree(ctx context.Context, h *home.Home, id string, f *treeFlags) error {
	if a.flags.json {
		_, err := h.Entries.Tree(ctx, home.OpenRequest{Session: id, Link: f.link}, func(n home.TreeNode) error { return a.printJSON(n) })
		return err
	}
	r := home.OpenRequest{Session: id, Link: f.link}
	return withConversation(ctx, h, r, true, func(c *home.Conversation, drawn render.Conversation) error {
		return terminal.Tree(ctx, a.out, drawn, c.LeafID(), f.all, a.style(), f.fold)
	})
}
