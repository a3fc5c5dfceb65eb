package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
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
	cmd.Flags().IntVar(&f.fold, "fold", foldIfLong, "fold runs of more than N entries; 0 never (default: 20 if long)")
	cmd.Flags().Lookup("fold").DefValue = "" // said in words
	linkFlag(cmd, &f.link)
	return a.withJSON(cmd)
}

const (
	foldIfLong = -1
	longTree   = 200
	longRun    = 20
)

func (a *app) runTree(cmd *cobra.Command, id string, f *treeFlags) error {
	return a.withConversation(cmd.Context(), id, f.link, func(o opened) error {
		sh, err := render.NewOutline(o.conversation(), render.OutlineOptions{Leaf: o.LeafID(), All: f.all || a.flags.json})
		if err != nil {
			return err
		}
		if a.flags.json {
			return a.treeJSON(cmd.Context(), o, sh)
		}
		d := drawing{talk: &a.talk, shape: sh, fold: f.fold, width: a.width()}
		if f.fold < 0 {
			d.fold = 0
			if len(sh.Order) > longTree {
				d.fold = longRun
			}
		}
		return d.draw(func(twigs []*render.Node) error { return o.conversation().Read(cmd.Context(), twigs, render.MaxOutput) })
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

func (a *app) treeJSON(ctx context.Context, o opened, sh *render.Outline) error {
	depths := make(map[*render.Node]int)
	for some := range slices.Chunk(sh.Order, render.ReadAtOnce) {
		if err := o.conversation().Read(ctx, some, render.MaxOutput); err != nil {
			return err
		}
		if err := a.treeLinesJSON(sh, some, depths); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) treeLinesJSON(sh *render.Outline, twigs []*render.Node, depths map[*render.Node]int) error {
	for _, t := range twigs {
		n := treeNode{
			ID: t.Entry.ID, Type: string(t.Entry.Type), Children: len(t.Children), Timestamp: rfc3339(t.Entry.Timestamp),
			Label: t.Label, Live: t.Live, Leaf: t == sh.Leaf, Text: render.Gist(&t.Entry, 0),
		}
		if t.Parent != nil {
			n.ParentID, n.Depth = &t.Parent.Entry.ID, depths[t.Parent]+1
		}
		depths[t] = n.Depth
		if t.Entry.Message != nil {
			n.Role = t.Entry.Message.Role
		}
		if err := a.printJSON(n); err != nil {
			return err
		}
		t.Entry = session.Entry{ID: t.Entry.ID} // it is printed: let the memory go
	}
	return nil
}

// isMark reports whether an entry is worth seeing in a run that is folded.
func (d *drawing) isMark(t *render.Node) bool {
	return t.Label != "" || t == d.shape.Leaf || len(t.Children) != 1 || t.Entry.Type == session.TypeCompaction
}
