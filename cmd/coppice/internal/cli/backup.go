package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/upkeep/backup"
)

// backupCommand both makes and verifies a backup, so that on a bad day there is only one name
// to remember.
func backupCommand(a *app) *cobra.Command {
	var r home.BackupRequest
	var verify bool
	cmd := &cobra.Command{
		Use:   "backup DIR|FILE",
		Short: "Back up everything, or verify a backup",
		Long: "Backs up all sessions, including those in the trash, with everything that belongs to\n" +
			"them. Other programs may keep writing. coppice restore turns a backup into a home\n" +
			"again.\n\n" +
			"A DIR is brought up to date: files that it already has are checked and copied again\n" +
			"only if they are damaged, and files that were redacted or deleted in the home are\n" +
			"removed. A FILE must end in .tar.zst; it is written in full and then replaces the\n" +
			"older one. If anything interrupts that, the older backup stays.\n\n" +
			"If a file of the home cannot be read, the older backup stays and the exit code is 3;\n" +
			"--partial replaces it with one that lacks that file. If a session is damaged and the\n" +
			"older backup has more of it, its older version stays, and the exit code is 3, too.\n\n" +
			"With --verify nothing is written: the backup is read, and every file is compared\n" +
			"with its hash.",
		Example: "  coppice backup /media/usb/coppice\n" +
			"  coppice backup ~/coppice.tar.zst\n" +
			"  coppice backup --verify ~/coppice.tar.zst",
		RunE: func(cmd *cobra.Command, args []string) error {
			if verify {
				return a.runVerify(cmd.Context(), args[0])
			}
			r.To = args[0]
			return a.withHome(cmd.Context(), false, func(h *home.Home) error { return a.runBackup(cmd.Context(), h, r) })
		},
	}
	cmd.Flags().BoolVar(&verify, "verify", false, "write nothing; check a backup")
	cmd.Flags().BoolVar(&r.Partial, "partial", false, "replace an older backup even if some files cannot be read")
	cmd.MarkFlagsMutuallyExclusive("verify", "partial")
	return a.withJSON(cmd)
}

// runBackup says all that went wrong, also when a backup was made: files of the home that
// cannot be read are bad news that may show up nowhere else.
func (a *app) runBackup(ctx context.Context, h *home.Home, r home.BackupRequest) error {
	done, err := h.Upkeep.Backup(ctx, r)
	if done == nil {
		return err
	}
	a.bar.done()
	for _, f := range done.Unread {
		a.say("%s %s cannot be read: %s", a.paint(yellow, "warning:"), f.Path, f.Why)
	}
	for _, f := range done.Older {
		a.say("%s session %s (%s) is damaged: %s; that version stays", a.paint(yellow, "warning:"), f.Session, f.Path, f.Why)
	}
	if len(done.Older) > 0 && (err == nil || errors.Is(err, home.ErrPartial)) && !done.Kept {
		a.say("%s restores what the backup has into another directory; do that before you repair, because the backup after a repair takes the repaired session",
			a.command("restore", []string{done.Path}, "--dir", "DIR"))
	}
	for _, f := range done.Damaged {
		a.say("%s %s is damaged, so nothing of the older backup was kept that the home has lost: %s", a.paint(yellow, "warning:"), f.Path, f.Why)
	}
	if done.Mended > 0 && !done.Kept {
		a.say("%s the older backup had %s; what the home has of that was written again, but the disk of the backup may be failing",
			a.paint(yellow, "warning:"), render.Counted(done.Mended, "damaged file", "damaged files"))
	}
	switch {
	case err != nil && !errors.Is(err, home.ErrPartial):
		return err
	case done.Kept:
		a.say("the older backup %s was left as it is; %s replaces it by one without these files", done.Path, a.command("backup --partial", []string{r.To}))
	default:
		a.say("backed up %s in %s; wrote %s (%s)", sessionsAndSize(done.Sessions, done.Size), done.Path,
			render.Counted(done.Copied, "file", "files"), render.Bytes(done.Written))
	}
	if a.flags.json {
		return errors.Join(a.printJSON(done), err)
	}
	return err
}

// runVerify needs no home: a backup is checked on the machine that it is on, which may be
// another one.
func (a *app) runVerify(ctx context.Context, path string) error {
	bar := a.newProgress()
	found, err := home.VerifyBackup(ctx, home.VerifyBackupRequest{Path: path}, &home.Options{Progress: bar.show})
	bar.done()
	if found == nil {
		return err
	}
	a.sayDamaged(found.Damaged...)
	for _, u := range found.Unreadable {
		a.say("note: %s has %s that could not be read in the home either", u.Path, render.Counted(u.Lines, "line", "lines"))
	}
	if n := len(found.Missing); n > 0 {
		a.say("note: sessions refer to %s that the home did not have either", render.Counted(n, "piece of content", "pieces of content"))
	}
	if home.KindOf(err) == home.KindCorrupt {
		err = hinted(err, a.command("backup", []string{path})+" replaces what is damaged, if the home still has it; if not, "+
			a.command("restore --partial", []string{path})+" restores the rest")
	}
	if a.flags.json {
		return errors.Join(a.printJSON(found), err)
	}
	if err == nil {
		a.say("%s is whole: %s, made %s", found.Path, sessionsAndSize(found.Sessions, found.Size), found.Created.Local().Format("2006-01-02 15:04"))
	}
	return err
}

// sayDamaged lists the faults of a backup, by the session where one is known: a person cares
// about the conversation, and about the path only to find it.
func (a *app) sayDamaged(damaged ...backup.Fault) {
	for _, d := range damaged {
		what := d.Path
		if d.Session != "" {
			what = fmt.Sprintf("session %s (%s)", d.Session, d.Path)
		}
		a.say("damaged: %s: %s", what, d.Why)
	}
}

func sessionsAndSize(n int, size int64) string {
	return fmt.Sprintf("%s (%s)", render.Counted(n, "session", "sessions"), render.Bytes(size))
}
