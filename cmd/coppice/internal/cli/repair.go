package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/upkeep"
)

// repairCommand does only what needs no guess. It lists everything else, for a person to
// decide.
func repairCommand(a *app) *cobra.Command {
	var r home.TidyRequest
	var quarantine bool
	var restore string
	cmd := &cobra.Command{
		Use:   "repair [ID…]",
		Short: "Repair the files of a session",
		Long: "Repairs what can be repaired without guessing: a torn end, lines that were glued\n" +
			"together, a missing or misplaced header, damaged lines (a placeholder takes their place,\n" +
			"so that the entries after them stay connected), a lost record of the session's\n" +
			"continuation, repeated lines, permissions. The original file is kept in quarantine.\n\n" +
			"Prints what it did. It lists what it cannot repair and leaves it alone; the exit\n" +
			"code is then 3.\n\n" +
			"With --stale it deletes what interrupted programs left in the store: temporary\n" +
			"files that are older than an hour, and locks of sessions that do not exist.\n\n" +
			"With --blobs it deletes content that nothing in the store refers to any more: no\n" +
			"session, archived or not, and nothing in trash, quarantine or backups. Other\n" +
			"programs may keep writing. Look first: coppice repair --blobs --dry-run.\n\n" +
			"With --quarantine it lists what is in quarantine: sessions as they were before a\n" +
			"repair, and pieces that a crash tore off. With --restore it brings one of these\n" +
			"sessions back under its id, if no session has that id.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !r.Stale && !r.Blobs && !quarantine && restore == "" && len(args) == 0 {
				return misuse("a session, --stale, --blobs, --quarantine or --restore is needed")
			}
			ctx := cmd.Context()
			return a.withHome(ctx, false, func(h *home.Home) error {
				if err := a.runQuarantine(ctx, h, quarantine, restore); err != nil {
					return err
				}
				if err := a.runTidy(ctx, h, r); err != nil {
					return err
				}
				return a.eachSession(ctx, h, home.DistinctRequest{Sessions: args, Link: true}, func(id string) error {
					return a.runRepair(ctx, h, home.RepairRequest{Session: id, DryRun: r.DryRun})
				})
			})
		},
	}
	cmd.Flags().BoolVar(&r.DryRun, "dry-run", false, "only show what would be done")
	cmd.Flags().BoolVar(&r.Stale, "stale", false, "delete what interrupted programs left")
	cmd.Flags().BoolVar(&r.Blobs, "blobs", false, "delete content that nothing refers to")
	cmd.Flags().BoolVar(&quarantine, "quarantine", false, "list what is in quarantine")
	cmd.Flags().StringVar(&restore, "restore", "", "bring back the session in `FILE`, as --quarantine lists it")
	return a.withJSON(cmd)
}

// runQuarantine lists what is in quarantine, and brings one of it back.
func (a *app) runQuarantine(ctx context.Context, h *home.Home, list bool, restore string) error {
	if restore != "" {
		done, err := h.Upkeep.Readmit(ctx, home.ReadmitRequest{ID: filepath.Base(restore)})
		if err != nil {
			return err
		}
		if err := a.printID(done, done.Session); err != nil {
			return err
		}
		a.say("session %s is back as it was", done.Session)
	}
	if !list {
		return nil
	}
	found, err := h.Upkeep.Quarantine(ctx)
	if err != nil {
		return err
	}
	for _, k := range found.Kept {
		what := "a whole session"
		if k.Piece {
			what = fmt.Sprintf("a piece from byte %d", k.Offset)
		}
		if a.flags.json {
			err = a.printJSON(k)
		} else {
			err = a.print("%s: %s, %s, %s", k.ID, what, render.Bytes(k.Size), a.when(k.Time, time.Now()))
		}
		if err != nil {
			return err
		}
	}
	if len(found.Kept) == 0 {
		a.say("nothing is in quarantine")
	}
	return nil
}

// runTidy prints what was deleted before an error, since these files are gone whatever happened
// next.
func (a *app) runTidy(ctx context.Context, h *home.Home, r home.TidyRequest) error {
	result, err := h.Upkeep.Tidy(ctx, r)
	if r.Stale && (err == nil || len(result.Stale) > 0) {
		if err := a.printDeleted(result.Stale, r.DryRun, "stale file", "stale files"); err != nil {
			return err
		}
	}
	if r.Blobs && (err == nil || len(result.Blobs) > 0) {
		if err := a.printDeleted(result.Blobs, r.DryRun, "unreferenced blob", "unreferenced blobs"); err != nil {
			return err
		}
	}
	return err
}

// printDeleted prints what was deleted, or would be.
func (a *app) printDeleted(done []upkeep.Action, dryRun bool, one, many string) error {
	size := int64(0)
	for _, act := range done {
		size += act.Size
		if err := (&findings{app: a}).printAction(act); err != nil {
			return err
		}
	}
	verb := "deleted"
	if dryRun {
		verb = "would delete"
	}
	a.say("%s %s, %s", verb, render.Counted(len(done), one, many), render.Bytes(size))
	return nil
}

// runRepair names the original file that is kept, so that a repair can be taken back.
func (a *app) runRepair(ctx context.Context, h *home.Home, r home.RepairRequest) error {
	found := a.newFindings(ctx, h)
	result, err := h.Upkeep.Repair(ctx, r)
	if err != nil {
		return a.adviseRemoval(ctx, h, err)
	}
	name := render.ShortID(result.Session)
	for _, act := range result.Actions {
		if err := found.printAction(act); err != nil {
			return err
		}
	}
	if result.Kept != "" {
		a.say("the original file: %s", result.Kept)
	}
	if r.DryRun {
		a.say("%s would be made in session %s", render.Counted(len(result.Actions), "repair", "repairs"), name)
		return nil
	}
	a.say("%s made in session %s", render.Counted(len(result.Actions), "repair was", "repairs were"), name)
	for _, f := range result.Left {
		a.say("not repaired: %s %s: %s", f.Kind, render.ShortID(f.Entry), render.OneLine(f.Detail, 0))
	}
	if len(result.Left) > 0 {
		return errPartial
	}
	return nil
}

// adviseRemoval says how to get rid of a session that is beyond repair.
func (a *app) adviseRemoval(ctx context.Context, h *home.Home, err error) error {
	if e, ok := errors.AsType[*session.Error](err); ok && errors.Is(err, upkeep.ErrBeyondRepair) {
		return hinted(err, a.command("rm", []string{a.nameOf(ctx, h, e.Name)})+" moves it to the trash")
	}
	return err
}
