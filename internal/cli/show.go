package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/render/terminal"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

type showFlags struct {
	leaf, raw       string
	all, full, link bool
}

func showCommand(a *app) *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Read a conversation",
		Long: "Show prints the path from the beginning to the leaf, or to another entry with\n" +
			"--leaf. Where the conversation branched it says how to see the other branches.\n\n" +
			"Sessions that continue each other are shown as one conversation, whichever of\n" +
			"them is named; --link shows the one that is named alone.",
		Example: "  coppice show 0199\n" +
			"  coppice show 0199 --full --color always | less -R\n" +
			"  coppice show 0199 --json | jq -r .message.role",
		GroupID:           "read",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeSession(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runShow(cmd, args[0], &f) },
	}
	cmd.Flags().StringVar(&f.leaf, "leaf", "", "the entry at which the path ends: an id or a label")
	cmd.Flags().BoolVar(&f.all, "all", false, "every entry of the session, in the order of the log")
	cmd.Flags().BoolVar(&f.full, "full", false, "all of tool calls and results")
	linkFlag(cmd, &f.link)
	chainFlag(cmd)
	cmd.Flags().StringVar(&f.raw, "raw", "", "the bytes of the source that an imported entry was made of")
	cmd.MarkFlagsMutuallyExclusive("all", "leaf", "raw")
	_ = cmd.RegisterFlagCompletionFunc("leaf", a.completeEntries)
	_ = cmd.RegisterFlagCompletionFunc("raw", a.completeEntries)
	return a.withJSON(cmd)
}

func (a *app) runShow(cmd *cobra.Command, id string, f *showFlags) error {
	if f.raw != "" {
		return a.withLink(cmd.Context(), id, f.raw, func(o opened) error { return a.showRaw(cmd.Context(), o, f.raw) })
	}
	return a.withConversation(cmd.Context(), id, f.link, func(o opened) error {
		leaf, err := resolveEntry(o.Session, f.leaf)
		if err != nil {
			return err
		}
		switch {
		case f.all && a.flags.json:
			return a.showAllJSON(o)
		case a.flags.json:
			return a.showJSON(o, leaf)
		}
		return a.show(cmd.Context(), o, leaf, f)
	})
}

// showRaw prints what an entry was in the file that it was imported from.
func (a *app) showRaw(ctx context.Context, o opened, given string) error {
	id, err := resolveEntry(o.Session, given)
	if err != nil {
		return err
	}
	e, err := o.Entry(id)
	if err != nil {
		return err
	}
	raw, err := transcript.Raw(ctx, o.store, o.Session, &e)
	if err != nil {
		return err
	}
	return a.printDocument(isJSON(raw), func(w io.Writer) error {
		_, err := w.Write(raw)
		return err
	})
}

func (a *app) showAllJSON(o opened) error {
	for e, err := range o.Entries() {
		if err == nil {
			err = a.printJSON(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) showJSON(o opened, leaf string) error {
	path, err := pathTo(o.Session, leaf)
	if err != nil {
		return err
	}
	for i := range path {
		if err := a.printJSON(path[i]); err != nil {
			return err
		}
	}
	return nil
}

// pathTo returns the path to a leaf, which may be before the first entry.
func pathTo(s *session.Session, leaf string) ([]session.Entry, error) {
	if leaf == "" {
		return nil, nil
	}
	return s.PathTo(leaf)
}

// show writes a conversation for a person.
func (a *app) show(ctx context.Context, o opened, leaf string, f *showFlags) error {
	c, err := a.drawn(ctx, o)
	if err != nil {
		return err
	}
	return terminal.Show(ctx, a.out, c, a.style(), terminal.ShowOptions{
		Leaf: leaf, All: f.all, Full: f.full,
		Hints: terminal.Hints{
			Branch: func(entry string) string { return showCommandFor(c.Name, entry) },
			Folded: "--full shows them",
		},
	})
}
