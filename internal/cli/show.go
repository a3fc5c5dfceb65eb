package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
)

type showFlags struct {
	leaf, raw       string
	all, full, link bool
}

// fetched is how much output of one call is fetched.
func (f *showFlags) fetched() int64 {
	if f.full {
		return math.MaxInt64
	}
	return render.MaxOutput
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
		case f.all:
			return a.showAll(cmd, o, f)
		case a.flags.json:
			return a.showJSON(o, leaf)
		}
		return a.showPath(cmd, o, leaf, f)
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

func (a *app) showAll(cmd *cobra.Command, o opened, f *showFlags) error {
	w, err := a.newReader(cmd, o, f)
	if err != nil {
		return err
	}
	ids, err := o.EntryIDs()
	if err != nil {
		return err
	}
	w.short = shortIDs(ids)
	if w.labels, err = o.Labels(); err != nil {
		return err
	}
	for some := range slices.Chunk(ids, render.ReadAtOnce) {
		entries, err := o.Peek(some...)
		if err != nil {
			return err
		}
		for i := range entries {
			o.conversation().FetchOutput(cmd.Context(), &entries[i], f.fetched())
			w.entry(&entries[i])
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *app) showPath(cmd *cobra.Command, o opened, leaf string, f *showFlags) error {
	w, err := a.newReader(cmd, o, f)
	if err != nil {
		return err
	}
	sh, err := render.NewOutline(o.conversation(), render.OutlineOptions{Leaf: leaf})
	if err != nil {
		return err
	}
	w.short = sh.Names
	if w.labels, err = o.Labels(); err != nil {
		return err
	}
	name, err := o.shortName(cmd.Context())
	if err != nil {
		return err
	}
	roots := sh.OtherRoots()
	if err := o.conversation().Read(cmd.Context(), roots, render.MaxOutput); err != nil {
		return err
	}
	w.branches(sh, roots, name, "here")
	for some := range slices.Chunk(sh.Path(), render.ReadAtOnce) {
		if err := a.showTwigs(cmd, o, w, sh, name, some, f.fetched()); err != nil {
			return err
		}
	}
	return w.flush()
}

// showTwigs shows a part of the path, and what branches off from it.
func (a *app) showTwigs(cmd *cobra.Command, o opened, w *reader, sh *render.Outline, name string, path []*render.Node, limit int64) error {
	wanted := slices.Clone(path)
	others := make(map[*render.Node][]*render.Node)
	for _, t := range path {
		others[t] = t.Others()
		if t == sh.Leaf {
			others[t] = t.Children
		}
		wanted = append(wanted, others[t]...)
	}
	if err := o.conversation().Read(cmd.Context(), wanted, limit); err != nil {
		return err
	}
	for _, t := range path {
		where := "here"
		if t == sh.Leaf {
			where = "below"
		}
		w.entry(&t.Entry)
		w.branches(sh, others[t], name, where)
		if err := w.flush(); err != nil {
			return err
		}
		t.Entry = session.Entry{ID: t.Entry.ID} // it is shown: let the memory go
	}
	return nil
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
