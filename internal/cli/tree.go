package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
)

type treeFlags struct {
	all, link bool
	fold      int
}

func treeCommand(a *app) *cobra.Command {
	var f treeFlags
	cmd := &cobra.Command{
		Use:   "tree ID",
		Short: "Draw the branches of a session",
		Long: "Tree draws every branch. The path to the leaf runs straight down; what branches\n" +
			"off stands indented beside it. The ids can be given to other commands.\n\n" +
			"Sessions that continue each other are drawn as one conversation; --link draws\n" +
			"the one that is named alone.",
		Example:           "  coppice tree 0199\n  coppice tree 0199 --fold 4",
		GroupID:           "read",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeSession(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runTree(cmd, args[0], &f) },
	}
	cmd.Flags().BoolVar(&f.all, "all", false, "also names, tags and labels as entries of their own")
	cmd.Flags().IntVar(&f.fold, "fold", terminal.FoldIfLong, "fold runs of more than N entries; 0 never (default: 20 if long)")
	cmd.Flags().Lookup("fold").DefValue = "" // said in words
	linkFlag(cmd, &f.link)
	return a.withJSON(cmd)
}

func (a *app) runTree(cmd *cobra.Command, id string, f *treeFlags) error {
	return a.withConversation(cmd.Context(), id, f.link, func(o opened) error {
		out, err := render.NewOutline(o.conversation(), render.OutlineOptions{Leaf: o.LeafID(), All: f.all || a.flags.json})
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.treeJSON(cmd.Context(), o.conversation(), out)
		}
		return terminal.Tree(cmd.Context(), a.out, o.conversation(), out, a.style(), f.fold)
	})
}

// treeNode is a line of tree --json.
type treeNode struct {
	ID        string  `json:"id"`
	ParentID  *string `json:"parent_id"`
	Depth     int     `json:"depth"`
	Children  int     `json:"children"`
	Type      string  `json:"type"`
	Role      string  `json:"role,omitempty"`
	Timestamp string  `json:"timestamp,omitempty"`
	Label     string  `json:"label,omitempty"`
	Live      bool    `json:"live"`
	Leaf      bool    `json:"leaf"`
	Text      string  `json:"text"`
}

func (a *app) treeJSON(ctx context.Context, c render.Conversation, out *render.Outline) error {
	depths := make(map[*render.Node]int)
	for nodes, err := range c.ReadChunks(ctx, out.Order, render.MaxOutput) {
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if n.Parent != nil {
				depths[n] = depths[n.Parent] + 1
			}
			if err := a.printJSON(newTreeNode(out, n, depths[n])); err != nil {
				return err
			}
		}
	}
	return nil
}

func newTreeNode(out *render.Outline, n *render.Node, depth int) treeNode {
	line := treeNode{
		ID: n.Entry.ID, Depth: depth, Type: string(n.Entry.Type), Children: len(n.Children), Timestamp: rfc3339(n.Entry.Timestamp),
		Label: n.Label, Live: n.Live, Leaf: n == out.Leaf, Text: render.Gist(&n.Entry, 0),
	}
	if n.Parent != nil {
		line.ParentID = &n.Parent.Entry.ID
	}
	if n.Entry.Message != nil {
		line.Role = n.Entry.Message.Role
	}
	return line
}
