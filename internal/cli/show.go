package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/session"
)

type showFlags struct {
	leaf      string
	all, full bool
}

func showCommand(a *app) *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Read a conversation",
		Long: "Show prints the path from the beginning to the leaf, or to another entry with\n" +
			"--leaf. Where the conversation branched it says how to see the other branches.",
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
	cmd.MarkFlagsMutuallyExclusive("all", "leaf")
	_ = cmd.RegisterFlagCompletionFunc("leaf", a.completeEntries)
	return a.withJSON(cmd)
}

func (a *app) runShow(cmd *cobra.Command, id string, f *showFlags) error {
	return a.withOpened(cmd.Context(), id, func(o opened) error {
		leaf, err := resolveEntry(o.Session, f.leaf)
		if err != nil {
			return err
		}
		switch {
		case f.all && a.flags.json:
			return a.showAllJSON(o)
		case f.all:
			return a.showAll(cmd, o, f)
		case a.flags.json:
			return a.showJSON(o, leaf)
		}
		return a.showPath(cmd, o, leaf, f)
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

func (a *app) showAll(cmd *cobra.Command, o opened, f *showFlags) error {
	w, err := a.newReader(cmd, o, f)
	if err != nil {
		return err
	}
	ids, err := o.entryIDs(cmd.Context())
	if err != nil {
		return err
	}
	w.short = shortIDs(ids)
	if w.labels, err = o.Labels(); err != nil {
		return err
	}
	for e, err := range o.Entries() {
		if err == nil {
			w.entry(&e)
			err = w.flush()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) showPath(cmd *cobra.Command, o opened, leaf string, f *showFlags) error {
	w, err := a.newReader(cmd, o, f)
	if err != nil {
		return err
	}
	sh, err := o.shape(cmd.Context(), leaf, false)
	if err != nil {
		return err
	}
	w.short = sh.short
	if w.labels, err = o.Labels(); err != nil {
		return err
	}
	name, err := o.shortName(cmd.Context())
	if err != nil {
		return err
	}
	var path []*twig
	for t := sh.leaf; t != nil; t = t.parent {
		path = append(path, t)
	}
	w.branches(sh, sh.otherRoots(), name, "here")
	for i := len(path) - 1; i >= 0; i-- {
		w.entry(&path[i].entry)
		if i > 0 {
			w.branches(sh, path[i].others(), name, "here")
		} else {
			w.branches(sh, path[i].children, name, "below")
		}
		if err := w.flush(); err != nil {
			return err
		}
	}
	return w.flush()
}

// newReader prepares to write a conversation, and writes its head.
func (a *app) newReader(cmd *cobra.Command, o opened, f *showFlags) (*reader, error) {
	w := &reader{talk: &a.talk, now: time.Now(), width: a.readingWidth(), full: f.full, tools: make(map[string]string)}
	title, err := titleOf(o.Session)
	if err != nil {
		return nil, err
	}
	tags, err := o.Tags()
	if err != nil {
		return nil, err
	}
	h := o.Header()
	w.head(title, &h, tags)
	return w, w.flush()
}

// readingWidth is the width for text that is read: no wider than a person can
// follow; 0 where lines are not to be broken.
func (a *app) readingWidth() int {
	const most = 110
	return min(a.width(), most)
}

// moreLines says that something was folded away.
func moreLines(n int) string {
	return fmt.Sprintf("… %s (--full shows them)", counted(n, "more line", "more lines"))
}
