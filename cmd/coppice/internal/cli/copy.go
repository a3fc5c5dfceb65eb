package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/upkeep"
)

// copyCommand can be run again and again: it brings what is new, so one command both moves a
// home to another kind of store and keeps a second one up to date.
func copyCommand(a *app) *cobra.Command {
	var r home.CopyRequest
	cmd := &cobra.Command{
		Use:   "copy [ID…]",
		Short: "Copy sessions to another home",
		Long: "Copies all sessions, or some, to another home: a directory, which is made if need be,\n" +
			"or a database, which coppice migrate has prepared. Everything that belongs to them\n" +
			"is copied with them, and without ID also the trash and what is known about\n" +
			"imports. What was written is read back and compared.\n\n" +
			"Run it again to bring what is new; if it was stopped, it goes on where it was. Others\n" +
			"may keep writing to both homes. What was redacted is redacted in the copy, too, and\n" +
			"what was removed is moved to its trash. What was removed in the copy stays removed,\n" +
			"unless you name it. A session that was continued or changed in the copy is left as it\n" +
			"is and reported, and the exit code is then 3.",
		Example: "  coppice copy --to postgres://user@db.example.com/agents\n" +
			"  coppice copy --from postgres://user@db/agents --to ~/sessions\n" +
			"  coppice copy last --to /media/usb/sessions",
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Sessions = args
			return a.runCopy(cmd.Context(), r)
		},
	}
	cmd.Flags().StringVar(&r.From, "from", "", "the home to copy from, a `HOME` (default: yours)")
	cmd.Flags().StringVar(&r.To, "to", "", "the home to copy to, a `HOME`")
	_ = cmd.MarkFlagRequired("to")
	return a.withJSON(cmd)
}

// runCopy reports the sessions that need a decision before the sum, and says how to make it: a
// conflict is never resolved on its own, in either direction.
func (a *app) runCopy(ctx context.Context, r home.CopyRequest) error {
	bar := a.newProgress()
	o := a.options(bar)
	did, err := home.Copy(ctx, r, &o)
	bar.done()
	if did == nil {
		return err
	}
	if a.flags.json {
		return errors.Join(a.printJSON(did), err)
	}
	a.sayStayRemoved(did)
	a.sayFaults("conflict", did.Conflicts)
	a.sayFaults("not copied", did.Failed)
	a.sayFaults("damaged", did.Damaged)
	for _, l := range did.Left {
		a.say("%s the copy may still have a secret, in %s: %s", a.paint(yellow, "warning:"), l.Path, l.Why)
	}
	if len(did.Conflicts) > 0 {
		a.say("what is in conflict was left as it is: to take the original instead, remove the session in the copy (%s) and copy it by its id",
			a.command("rm", nil, "--dir", did.To))
	}
	a.say("%s", copied(did))
	return err
}

// sayStayRemoved names the sessions that were removed in the copy.
func (a *app) sayStayRemoved(did *home.CopyResult) {
	for i, name := range did.StayRemoved {
		if i == maxFaults {
			a.say("%d more stay removed; --json lists them all", len(did.StayRemoved)-i)
			break
		}
		a.say("session %s was removed in the copy, and stays so", name)
	}
	if len(did.StayRemoved) > 0 {
		a.say("to bring one back, copy it by its id")
	}
}

// maxFaults is how many sessions are listed one by one.
const maxFaults = 20

// sayFaults lists what is wrong with sessions up to a limit. If a whole store is out of reach,
// a thousand equal lines would hide the one that explains it.
func (a *app) sayFaults(what string, faults []upkeep.CopyFault) {
	for i, f := range faults {
		if i == maxFaults {
			a.say("%s: %d more; --json lists them all", a.paint(yellow, what), len(faults)-i)
			return
		}
		where := ""
		if f.Removal != "" {
			where = " in the trash"
		}
		a.say("%s: session %s%s: %s", a.paint(yellow, what), f.Session, where, f.Why)
	}
}

// copied says what was done in one line.
func copied(did *home.CopyResult) string {
	var parts []string
	add := func(n int, one, many string) {
		if n > 0 {
			parts = append(parts, render.Counted(n, one, many))
		}
	}
	add(did.Created, "new session", "new sessions")
	add(did.Continued, "continued", "continued")
	add(did.Redacted, "redacted", "redacted")
	add(did.Removed, "moved to the trash", "moved to the trash")
	add(did.Trashed, "in the trash", "in the trash")
	add(len(did.StayRemoved), "stays removed", "stay removed")
	add(did.Same, "as before", "as before")
	add(len(did.Conflicts), "conflict", "conflicts")
	add(len(did.Failed), "not copied", "not copied")
	if len(parts) == 0 {
		parts = []string{"there is nothing to copy"}
	}
	return fmt.Sprintf("copied %s to %s: %s; wrote %s", did.From, did.To, strings.Join(parts, ", "), render.Bytes(did.Size))
}
