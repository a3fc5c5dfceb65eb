package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/upkeep"
)

type retainFlags struct {
	olderThan age
	maxCount  int
	dryRun    bool
}

func retainCommand(a *app) *cobra.Command {
	var f retainFlags
	cmd := &cobra.Command{
		Use:   "retain",
		Short: "Move old sessions to the trash",
		Long: "Moves to the trash the sessions in which something was last said longer ago than\n" +
			"--older-than, and of the others all but the --max-count latest. Pinned sessions\n" +
			"stay and are not counted; what cannot be read stays, too. Nothing of this ever\n" +
			"happens by itself, and coppice trash restore brings a session back.",
		Example: "  coppice retain --older-than 90d --dry-run\n" +
			"  coppice retain --max-count 1000",
		GroupID: "keep",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("max-count") && f.maxCount < 0 {
				return usageError{errors.New("--max-count is negative")}
			}
			if cmd.Flags().Changed("older-than") && f.olderThan.Duration == 0 {
				return usageError{errors.New("--older-than 0 would remove every session; if you mean that, use --max-count 0")}
			}
			return a.withStore(func(st *file.Store) error { return a.runRetain(cmd.Context(), st, &f) })
		},
	}
	cmd.Flags().Var(&f.olderThan, "older-than", "what was last active longer ago, such as 30d, 2w or 12h")
	cmd.Flags().IntVar(&f.maxCount, "max-count", -1, "remove all but this many of the latest")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only list what would be removed")
	cmd.MarkFlagsOneRequired("older-than", "max-count")
	return a.withJSON(cmd)
}

// retainJSON is what retain --json prints for each session to be removed. The
// removal is there when it was.
type retainJSON struct {
	ID      string    `json:"id"`
	Title   string    `json:"title"`
	Updated time.Time `json:"updated"`
	Size    int64     `json:"size"`
	Reason  string    `json:"reason"`
	Removal string    `json:"removal,omitempty"`
}

func (a *app) runRetain(ctx context.Context, st *file.Store, f *retainFlags) error {
	unread := 0
	all, err := upkeep.Survey(ctx, st, func(_ string, err error) {
		a.sayError(err)
		unread++
	})
	if err != nil {
		return err
	}
	going, kept := upkeep.Rule{OlderThan: f.olderThan.Duration, MaxCount: f.maxCount}.Choose(all, time.Now())
	short, err := a.sessionNames(ctx, st)
	if err != nil {
		return err
	}
	removed, size := 0, int64(0)
	t := a.newTable(3, "SESSION", "UPDATED", "SIZE", "TITLE", "REASON")
	t.right[2] = true
	for _, d := range going {
		removal, title := "", oneLine(a.wholeTitle(ctx, st, d.Name), 0)
		if !f.dryRun {
			if removal, err = a.removeUnpinned(ctx, st, d.Name); err != nil {
				a.sayError(err)
				unread++
				continue
			}
		}
		removed++
		size += d.Size
		if !a.flags.json {
			t.add(short(d.Name), a.when(d.Active, time.Now()), humanBytes(d.Size), title, f.why(d.Reason))
			continue
		}
		if err := a.printJSON(retainJSON{d.Name, title, d.Active.UTC(), d.Size, f.why(d.Reason), removal}); err != nil {
			return err
		}
	}
	if removed > 0 && !a.flags.json {
		if err := t.print(); err != nil {
			return err
		}
	}
	a.sayRetained(f, removed, size, kept)
	if unread > 0 {
		return errPartial
	}
	return nil
}

// sessionNames returns how to show the ids of sessions: in a table for a person
// the shortest prefix that means them, elsewhere in full.
func (a *app) sessionNames(ctx context.Context, st *file.Store) (func(string) string, error) {
	if a.width() == 0 {
		return func(id string) string { return id }, nil
	}
	stats, err := statsOf(ctx, st)
	if err != nil {
		return nil, err
	}
	short := shortIDs(slices.Collect(maps.Keys(stats)))
	return func(id string) string { return short[id] }, nil
}

func (a *app) sayRetained(f *retainFlags, removed int, size int64, pinned int) {
	verb, hint := "are now in the trash", "; coppice trash restore ID brings one back"
	if f.dryRun {
		verb, hint = "would go to the trash", ""
	}
	if removed == 0 {
		hint = ""
	}
	stay := ""
	if pinned > 0 {
		stay = fmt.Sprintf("; kept because pinned: %d", pinned)
	}
	a.say("sessions that %s: %d (%s)%s%s", verb, removed, humanBytes(size), stay, hint)
}

// removeUnpinned looks at the pin once more: choosing can have taken a while.
func (a *app) removeUnpinned(ctx context.Context, st *file.Store, name string) (string, error) {
	if err := a.mustNotBePinned(ctx, st, name); err != nil {
		return "", err
	}
	return removeSession(ctx, st, name)
}

// why says why a session goes.
func (f *retainFlags) why(r upkeep.Reason) string {
	if r == upkeep.TooOld {
		return "older than " + f.olderThan.String()
	}
	return fmt.Sprintf("not among the %d latest", f.maxCount)
}
