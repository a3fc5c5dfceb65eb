package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// archiveCommand takes either names or an age, never both: of sessions that are named, none
// should be left out because it is too young.
func archiveCommand(a *app) *cobra.Command {
	var olderThan age
	var link bool
	cmd := &cobra.Command{
		Use:   "archive [ID…]",
		Short: "Compress sessions; they stay readable",
		Long: "Compresses sessions. Nothing else changes: they are listed, read and searched as\n" +
			"before, and the first append to one brings its plain file back. A conversation\n" +
			"that spans several sessions is compressed as a whole; --link compresses only the\n" +
			"session you name.",
		Example: "  coppice archive 0197ab\n" +
			"  coppice archive --older-than 30d",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch old := cmd.Flags().Changed("older-than"); {
			case old && len(args) > 0:
				return misuse("ids of sessions and --older-than exclude each other; give one of them")
			case !old && len(args) == 0:
				return misuse("the ids of sessions or --older-than is needed")
			}
			return a.withHome(cmd.Context(), false, func(h *home.Home) error {
				var requests []home.ArchiveRequest
				if len(args) == 0 {
					requests = append(requests, home.ArchiveRequest{OlderThan: home.Age(max(1, olderThan.Duration))})
				}
				meant, err := h.Sessions.Distinct(cmd.Context(), home.DistinctRequest{Sessions: args, Link: link})
				if err != nil {
					return err
				}
				for _, id := range meant.Sessions {
					requests = append(requests, home.ArchiveRequest{Session: id, Link: link})
				}
				return a.runArchive(cmd.Context(), h, requests)
			})
		},
	}
	cmd.Flags().Var(&olderThan, "older-than", "all inactive for this long, such as 30d, 2w or 12h")
	linkFlag(cmd, &link)
	return a.withJSON(cmd)
}

// runArchive goes on after a session that cannot be archived, since the others do not depend on
// it, and ends with what it saved. An interrupt counts more than any failure.
func (a *app) runArchive(ctx context.Context, h *home.Home, requests []home.ArchiveRequest) error {
	done, there, was, is := 0, 0, int64(0), int64(0)
	var failed []error
	for _, r := range requests {
		result, err := h.Sessions.Archive(ctx, r)
		if err != nil && ctx.Err() == nil {
			failed = append(failed, err)
		}
		if result == nil {
			continue
		}
		for _, s := range result.Sessions {
			if there++; !s.Already {
				done++
				was, is = was+s.Was, is+s.Size
			}
			if s.Already && !a.flags.json {
				a.say("session %s is archived already", render.ShortID(s.ID))
			}
			// The id in any case: a script that asks for a state gets the same from every run.
			if err := a.printID(s, s.ID); err != nil {
				return err
			}
		}
		failed = append(failed, errorsOf(result.Failed)...)
	}
	if there > 0 || len(failed) == 0 {
		sizes := ""
		if done > 0 {
			sizes = fmt.Sprintf(": %s became %s", render.Bytes(was), render.Bytes(is))
		}
		a.say("archived %s%s", render.Counted(done, "session", "sessions"), sizes)
	}
	return cmp.Or(ctx.Err(), a.sumUp(there, failed))
}

// errorsOf returns why each of several things failed.
func errorsOf(failed []home.Failure) []error {
	var errs []error
	for _, f := range failed {
		errs = append(errs, f.Cause)
	}
	return errs
}

// sumUp returns what a command ends with that was done for several sessions, like
// each: the last error is left to the caller unless some were done.
func (a *app) sumUp(done int, failed []error) error {
	for i, err := range failed {
		if done == 0 && i == len(failed)-1 {
			return err
		}
		a.sayError(err)
	}
	if len(failed) > 0 {
		return errPartial
	}
	return nil
}

// unarchiveCommand is rarely needed, because the first append does the same. It is for people
// who want to read or copy the plain file with other tools.
func unarchiveCommand(a *app) *cobra.Command {
	var r home.OpenRequest
	cmd := &cobra.Command{
		Use:   "unarchive ID…",
		Short: "Uncompress archived sessions",
		RunE: a.onHome(func(ctx context.Context, h *home.Home, args []string) error {
			return a.eachSession(ctx, h, home.DistinctRequest{Sessions: args, Link: r.Link}, func(id string) error {
				r.Session = id
				return a.runUnarchive(ctx, h, r)
			})
		}),
	}
	linkFlag(cmd, &r.Link)
	return a.withJSON(cmd)
}

// runUnarchive prints what came back before it reports what did not: a conversation of several
// sessions may be half done.
func (a *app) runUnarchive(ctx context.Context, h *home.Home, r home.OpenRequest) error {
	result, err := h.Sessions.Unarchive(ctx, r)
	if result == nil {
		return err
	}
	for _, s := range result.Sessions {
		if !a.flags.json {
			a.say("session %s is the plain file %s", render.ShortID(s.ID), s.Path)
		}
		if err := a.printID(s, s.ID); err != nil {
			return err
		}
	}
	failed := a.sumUp(len(result.Sessions), errorsOf(result.Failed))
	return cmp.Or(err, failed)
}
