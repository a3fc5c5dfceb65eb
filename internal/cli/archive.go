package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

func archiveCommand(a *app) *cobra.Command {
	var olderThan age
	var link bool
	cmd := &cobra.Command{
		Use:   "archive [ID…]",
		Short: "Compress sessions, still readable",
		Long: "Compresses sessions. Nothing else changes: they are listed, read and searched as\n" +
			"before, and the first append to one brings its plain file back. A conversation\n" +
			"that goes on in several sessions is compressed as a whole; with --link, only the\n" +
			"session that is named.",
		Example: "  coppice archive 0197ab\n" +
			"  coppice archive --older-than 30d",
		GroupID:           "keep",
		ValidArgsFunction: a.completeSession(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) > 0) == cmd.Flags().Changed("older-than") {
				return usageError{errors.New("either the ids of sessions or --older-than is needed")}
			}
			return a.withStore(func(st *file.Store) error { return a.runArchive(cmd.Context(), st, args, olderThan.Duration, link) })
		},
	}
	cmd.Flags().Var(&olderThan, "older-than", "all last written to longer ago, such as 30d, 2w or 12h")
	linkFlag(cmd, &link)
	return cmd
}

func (a *app) runArchive(ctx context.Context, st *file.Store, given []string, olderThan time.Duration, link bool) error {
	before, err := statsOf(ctx, st)
	if err != nil {
		return err
	}
	if len(given) == 0 {
		link = true // each was looked at by itself
		cutoff := time.Now().Add(-olderThan)
		for name, stat := range before {
			if !stat.Archived && stat.Modified.Before(cutoff) {
				given = append(given, name)
			}
		}
		slices.Sort(given)
	}
	done := make(map[string]bool)
	err = a.each(ctx, given, func(id string) error {
		names, err := a.linksOf(ctx, st, id, link)
		if err != nil {
			return err
		}
		return a.each(ctx, names, func(name string) error {
			archived, err := a.archiveOne(ctx, st, name, before)
			if archived {
				done[name] = true
			}
			return err
		})
	})
	if err != nil && len(done) == 0 {
		return err
	}
	return errors.Join(err, a.sayArchived(ctx, st, before, done))
}

// archiveOne reports whether it archived a session, which may have been done before.
func (a *app) archiveOne(ctx context.Context, st *file.Store, name string, before map[string]store.Stat) (bool, error) {
	if before[name].Archived {
		a.say("session %s is archived already", name)
		return false, a.print("%s", name)
	}
	if err := st.Archive(ctx, name); err != nil {
		return false, err
	}
	return true, a.print("%s", name)
}

// sayArchived is the receipt.
func (a *app) sayArchived(ctx context.Context, st *file.Store, before map[string]store.Stat, done map[string]bool) error {
	after, err := statsOf(ctx, st)
	if err != nil {
		return err
	}
	was, is := int64(0), int64(0)
	for name := range done {
		was += before[name].Size
		is += after[name].Size
	}
	sizes := ""
	if len(done) > 0 {
		sizes = fmt.Sprintf(": %s became %s", humanBytes(was), humanBytes(is))
	}
	a.say("archived %s%s", counted(len(done), "session", "sessions"), sizes)
	return nil
}

// statsOf returns what the store's list tells of each session.
func statsOf(ctx context.Context, st *file.Store) (map[string]store.Stat, error) {
	stats := make(map[string]store.Stat)
	for stat, err := range st.List(ctx) {
		if err != nil && stat.Name == "" {
			return nil, err
		}
		stats[stat.Name] = stat
	}
	return stats, nil
}

func unarchiveCommand(a *app) *cobra.Command {
	var link bool
	cmd := &cobra.Command{
		Use:               "unarchive ID…",
		Short:             "Bring the plain files back",
		GroupID:           "keep",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeSession(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(func(st *file.Store) error {
				return a.each(cmd.Context(), args, func(id string) error {
					names, err := a.linksOf(cmd.Context(), st, id, link)
					if err != nil {
						return err
					}
					return a.each(cmd.Context(), names, func(name string) error { return a.unarchive(cmd.Context(), st, name) })
				})
			})
		},
	}
	linkFlag(cmd, &link)
	return cmd
}

func (a *app) unarchive(ctx context.Context, st *file.Store, name string) error {
	if err := st.Unarchive(ctx, name); err != nil {
		return err
	}
	a.say("session %s is the plain file %s", name, st.Path(name))
	return a.print("%s", name)
}
