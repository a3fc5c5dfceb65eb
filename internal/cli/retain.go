package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
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
		Long: "Moves to the trash the sessions that were last written to longer ago than\n" +
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
	cmd.Flags().Var(&f.olderThan, "older-than", "what was last written to longer ago, such as 30d, 2w or 12h")
	cmd.Flags().IntVar(&f.maxCount, "max-count", -1, "remove all but this many of the latest")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only list what would be removed")
	cmd.MarkFlagsOneRequired("older-than", "max-count")
	return a.withJSON(cmd)
}

// dated is a session with the time at which it was last written to.
type dated struct {
	store.Stat
	last   time.Time
	title  string
	pinned bool
	why    string // it is to go
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
	going, kept, unread, err := a.chooseOld(ctx, st, f)
	if err != nil {
		return err
	}
	short, err := a.sessionNames(ctx, st)
	if err != nil {
		return err
	}
	removed, size := 0, int64(0)
	t := a.newTable(3, "SESSION", "UPDATED", "SIZE", "TITLE", "REASON")
	t.right[2] = true
	for _, d := range going {
		removal := ""
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
			t.add(short(d.Name), a.when(d.last, time.Now()), humanBytes(d.Size), d.title, d.why)
			continue
		}
		if err := a.printJSON(retainJSON{d.Name, d.title, d.last.UTC(), d.Size, d.why, removal}); err != nil {
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

// chooseOld returns the sessions to remove, the oldest first, how many pinned
// ones would have gone with them, and how many could not be read.
func (a *app) chooseOld(ctx context.Context, st *file.Store, f *retainFlags) (going []dated, pinned, unread int, err error) {
	all, unread, err := a.datedSessions(ctx, st)
	if err != nil {
		return nil, 0, 0, err
	}
	cutoff := time.Now().Add(-f.olderThan.Duration)
	rank := 0
	for _, d := range all { // the latest first
		switch {
		case f.olderThan.Duration > 0 && d.last.Before(cutoff):
			d.why = "older than " + f.olderThan.String()
		case f.maxCount >= 0 && !d.pinned && rank >= f.maxCount:
			d.why = fmt.Sprintf("not among the %d latest", f.maxCount)
		case !d.pinned:
			rank++
		}
		switch {
		case d.why != "" && d.pinned:
			pinned++
		case d.why != "":
			going = append(going, d)
		}
	}
	slices.Reverse(going)
	return going, pinned, unread, nil
}

// datedSessions returns all sessions, the latest first. What cannot be read is
// reported and counted.
func (a *app) datedSessions(ctx context.Context, st *file.Store) (all []dated, unread int, err error) {
	for stat, err := range st.List(ctx) {
		if err != nil && stat.Name == "" {
			return nil, 0, err
		}
		d := dated{Stat: stat}
		if err == nil {
			err = a.date(ctx, st, &d)
		}
		if err != nil {
			a.sayError(err)
			unread++
			continue
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(x, y dated) int {
		return cmp.Or(y.last.Compare(x.last), cmp.Compare(x.Name, y.Name))
	})
	return all, unread, nil
}

// date finds out when a session was last written to: the time of its file. That
// of an archive is the time of archiving, so for one the last entry tells.
func (a *app) date(ctx context.Context, st *file.Store, d *dated) (err error) {
	s, err := session.Open(ctx, st, d.Name, a.options())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	d.last = d.Modified
	if d.Archived {
		d.last = s.Header().CreatedAt
		if e, err := s.Entry(s.LeafID()); err == nil {
			d.last = e.Timestamp
		}
	}
	if d.pinned, err = s.Pinned(); err != nil {
		return err
	}
	title, err := titleOf(s)
	d.title = oneLine(title, 0)
	return err
}
