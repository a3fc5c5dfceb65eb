package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

// mostCompletions is how many sessions the shell is offered, the latest first.
const mostCompletions = 100

// completeSession offers session ids, with titles, for the first argument; with
// most greater than one, for as many; with 0, for all.
func (a *app) completeSession(most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most || a.settle() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var offers []cobra.Completion
		_ = a.withStore(func(st *file.Store) error { // without a store there is nothing to offer
			names := latestNames(cmd.Context(), st, begin)
			for _, name := range names {
				// Of a conversation that goes on in several sessions one is enough.
				if !slices.Contains(args, name) && !slices.Contains(names, continues(cmd.Context(), st, name)) {
					offers = append(offers, cobra.CompletionWithDesc(name, a.titleIn(cmd.Context(), st, name)))
				}
			}
			return nil
		})
		return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// continues returns the session that a session continues, or "".
func continues(ctx context.Context, st *file.Store, name string) string {
	s, err := session.Open(ctx, st, name, nil)
	if err != nil {
		return ""
	}
	defer s.Close()
	if h := s.Header(); h.Relation == session.RelationContinuation {
		return h.ParentSession
	}
	return ""
}

func latestNames(ctx context.Context, st *file.Store, begin string) []string {
	var found []store.Stat
	for stat, err := range st.List(ctx) {
		if err == nil && strings.HasPrefix(stat.Name, begin) {
			found = append(found, stat)
		}
	}
	slices.SortFunc(found, func(a, b store.Stat) int {
		return cmp.Or(b.Modified.Compare(a.Modified), cmp.Compare(b.Name, a.Name))
	})
	var names []string
	for _, stat := range found[:min(len(found), mostCompletions)] {
		names = append(names, stat.Name)
	}
	return names
}

// titleIn is the title of a session of a store, or "" if it cannot be read.
func (a *app) titleIn(ctx context.Context, st *file.Store, name string) string {
	return oneLine(a.wholeTitle(ctx, st, name), 60)
}

// wholeTitle is the title of a session, or "" if it cannot be read.
func (a *app) wholeTitle(ctx context.Context, st *file.Store, name string) string {
	s, err := session.Open(ctx, st, name, a.options())
	if err != nil {
		return ""
	}
	defer s.Close()
	title, _ := titleOf(s)
	return title
}

// titleOf is the name of a session, or else the first line of what its user said
// first, as in the index.
func titleOf(s *session.Session) (string, error) {
	title, err := s.Name()
	if title != "" || err != nil {
		return title, err
	}
	ids, err := s.EntryIDs()
	if err != nil {
		return "", err
	}
	const few = 16 // it is nearly always among the first
	for some := range slices.Chunk(ids, few) {
		entries, err := s.Peek(some...)
		if err != nil {
			return "", err
		}
		for i := range entries {
			title = index.BetterTitle(title, index.TitleIn(&entries[i]))
		}
		if title != "" && !index.IsCommand(title) {
			break
		}
	}
	return title, nil
}

// completeEntries offers, for a flag, the labels and the ends of the branches of
// the session in the first argument.
func (a *app) completeEntries(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 || a.settle() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var offers []cobra.Completion
	_ = a.withConversation(cmd.Context(), args[0], false, func(o opened) error {
		out, err := render.NewOutline(o.conversation(), render.OutlineOptions{Leaf: o.LeafID()})
		if err != nil {
			return err
		}
		var offered []*render.Node
		for _, t := range out.Order {
			if len(t.Children) == 0 || t.Label != "" {
				offered = append(offered, t)
			}
		}
		if err := o.conversation().Read(cmd.Context(), offered, render.MaxOutput); err != nil {
			return err
		}
		for _, t := range offered {
			offers = append(offers, cobra.CompletionWithDesc(out.Names.Name(t.Entry.ID), oneLine(t.Label+" "+render.Gist(&t.Entry, 60), 60)))
		}
		return nil
	})
	return offers, cobra.ShellCompDirectiveNoFileComp
}
