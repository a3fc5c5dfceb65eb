package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// retainCommand is the only way in which age removes a session, and it never runs by itself. It
// wants at least one limit: without any, nothing would be old.
func retainCommand(a *app) *cobra.Command {
	var r home.RetainRequest
	var olderThan age
	var maxCount int
	cmd := &cobra.Command{
		Use:   "retain",
		Short: "Move old sessions to the trash",
		Long: "Moves old sessions to the trash: those last active longer ago than --older-than,\n" +
			"and of the rest all but the --max-count latest. Pinned sessions are kept and not\n" +
			"counted; so are sessions that cannot be read. Coppice never does this on its own,\n" +
			"and coppice trash restore brings a session back.",
		Example: "  coppice retain --older-than 90d --dry-run\n" +
			"  coppice retain --max-count 1000",
		RunE: func(cmd *cobra.Command, _ []string) error {
			r.OlderThan = home.Age(olderThan.Duration)
			r.MaxCount = ifGiven(cmd, "max-count", &maxCount)
			return a.withHome(cmd.Context(), false, func(h *home.Home) error { return a.runRetain(cmd.Context(), h, r) })
		},
	}
	cmd.Flags().Var(&olderThan, "older-than", "inactive for this long, such as 30d, 2w or 12h")
	cmd.Flags().IntVar(&maxCount, "max-count", -1, "remove all but this many of the latest")
	cmd.Flags().BoolVar(&r.DryRun, "dry-run", false, "only list what would be removed")
	cmd.MarkFlagsOneRequired("older-than", "max-count")
	return a.withJSON(cmd)
}

// runRetain counts as done even if nothing was old enough: it is run by timers, which take
// every other exit code for a failure.
func (a *app) runRetain(ctx context.Context, h *home.Home, r home.RetainRequest) error {
	short, err := sessionNames(ctx, h, home.SessionNamesRequest{All: true}) // before some of them go
	if err != nil {
		return err
	}
	result, err := h.Upkeep.Retain(ctx, r)
	if result == nil {
		return err
	}
	t := a.newTable("TITLE", "SESSION", "UPDATED", ">SIZE", "TITLE", "REASON")
	t.spare = []string{"SIZE", "UPDATED"}
	if err := printList(a, result.Sessions, t, func(s *home.Retired) []string {
		name := s.ID
		if a.width() > 0 {
			name = short.Name(s.ID)
		}
		return []string{name, a.when(s.Updated, time.Now()), render.Bytes(s.Size), render.OneLine(s.Title, 0), s.Reason}
	}); err != nil {
		return err
	}
	a.sayRetained(r.DryRun, result)
	failed := a.sumUp(1, errorsOf(result.Failed)) // whatever could be read was looked at
	return cmp.Or(err, failed)
}

// sayRetained says how to bring a session back, but only if one has gone.
func (a *app) sayRetained(dryRun bool, r *home.RetainResult) {
	verb, hint := "are now in the trash", "; "+a.command("trash restore ID", nil)+" brings one back"
	if dryRun {
		verb, hint = "would go to the trash", ""
	}
	if len(r.Sessions) == 0 {
		hint = ""
	}
	stay := ""
	if r.Pinned > 0 {
		stay = fmt.Sprintf("; kept because pinned: %d", r.Pinned)
	}
	a.say("sessions that %s: %d (%s)%s%s", verb, len(r.Sessions), render.Bytes(r.Size), stay, hint)
}
