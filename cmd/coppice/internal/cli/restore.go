package cli

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// restoreCommand never writes over a home: it wants an empty place, so that nothing is lost if
// the wrong backup was named.
func restoreCommand(a *app) *cobra.Command {
	var r home.RestoreBackupRequest
	cmd := &cobra.Command{
		Use:   "restore DIR|FILE",
		Short: "Restore everything from a backup",
		Long: "Restores what coppice backup wrote, into the directory of the sessions or the one\n" +
			"that --dir names, which must be empty or not exist. Every file is checked, and the\n" +
			"home appears only when all of it has been restored.\n\n" +
			"A damaged backup is refused, with a list of what is damaged. --partial restores the\n" +
			"rest: whole files, and as much of damaged sessions as can be read. It lists what is\n" +
			"missing, and the exit code is then 3.\n\n" +
			"To bring back a session that was removed, use coppice trash restore.",
		Example: "  coppice restore ~/coppice.tar.zst\n" +
			"  coppice restore /media/usb/coppice --dir /srv/sessions",
		RunE: func(cmd *cobra.Command, args []string) error {
			r.From = args[0]
			return a.runRestore(cmd.Context(), r)
		},
	}
	cmd.Flags().BoolVar(&r.Partial, "partial", false, "restore what can be read of a damaged backup")
	return a.withJSON(cmd)
}

// runRestore lists what is missing. Nothing in the new home knows about that, so this list is
// the only trace of it.
func (a *app) runRestore(ctx context.Context, r home.RestoreBackupRequest) error {
	bar := a.newProgress()
	done, err := home.RestoreBackup(ctx, "", r, &home.Options{Settings: a.settings, Progress: bar.show})
	bar.done()
	if done == nil {
		return a.hintRestore(err, r)
	}
	missing := 0
	for _, d := range done.Damaged {
		switch {
		case d.Lost && d.Session != "":
			missing++
			a.say("missing: session %s (%s): %s", d.Session, d.Path, d.Why)
		case d.Lost:
			a.say("left out: %s: %s", d.Path, d.Why)
		default:
			a.sayDamaged(d)
		}
	}
	a.say("restored %s of %s to %s", sessionsAndSize(done.Sessions, done.Size), done.From, done.Dir)
	if missing > 0 {
		a.say("%s missing, and nothing in the new home knows about that: keep this list", render.Counted(missing, "session is", "sessions are"))
	}
	if len(done.Damaged) > missing {
		a.say("%s shows what is wrong with the sessions that are there", a.command("fsck", nil, "--dir", done.Dir))
	}
	if a.flags.json {
		return errors.Join(a.printJSON(done), err)
	}
	return err
}

// hintRestore says which command or flag helps.
func (a *app) hintRestore(err error, r home.RestoreBackupRequest) error {
	switch home.KindOf(err) {
	case home.KindNotFound, home.KindInvalid:
		other := a.command("import", []string{r.From}) + " takes sessions that were exported; --dir uses a home"
		if _, gone := os.Lstat(r.From); gone != nil {
			other = a.command("trash restore", []string{r.From}) + " brings back a session that was removed"
		}
		return hinted(err, home.HintOf(err)+"; "+other)
	case home.KindExists:
		return hinted(err, "--dir chooses another directory; or move this one away first")
	case home.KindCorrupt:
		return hinted(err, a.command("restore --partial", []string{r.From})+" restores the rest; if the home is still there, "+a.elsewhere().command("backup", []string{r.From})+" mends the backup")
	}
	return err
}
