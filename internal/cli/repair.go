package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

func repairCommand(a *app) *cobra.Command {
	var dryRun, stale, blobs bool
	cmd := &cobra.Command{
		Use:   "repair [ID…]",
		Short: "Repair the files of a session",
		Long: "Repairs what can be repaired without guessing: a torn end, lines that were glued\n" +
			"together, a missing or misplaced header, damaged lines (a marker takes their place,\n" +
			"so that what hung on them still hangs together), repeated lines, permissions. The\n" +
			"file as it was is kept in quarantine.\n\n" +
			"Prints what it did. What it cannot repair is left as it is and said; the exit code\n" +
			"is then 3.\n\n" +
			"With --stale it deletes what interrupted programs left in the store: temporary\n" +
			"files that are older than an hour, and locks of sessions that do not exist.\n\n" +
			"With --blobs it deletes content that nothing in the store refers to any more: no\n" +
			"session, archived or not, and nothing in trash, quarantine or backups. Others may\n" +
			"write meanwhile. Look first: coppice repair --blobs --dry-run.",
		GroupID:           "about",
		ValidArgsFunction: a.completeSession(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !stale && !blobs && len(args) == 0 {
				return usageError{errors.New("a session, --stale or --blobs is needed")}
			}
			return a.withStore(func(st *file.Store) error {
				if stale {
					if err := a.removeStale(cmd.Context(), st, dryRun); err != nil {
						return err
					}
				}
				if blobs {
					if err := a.removeBlobs(cmd.Context(), st, dryRun); err != nil {
						return err
					}
				}
				return a.each(cmd.Context(), args, func(id string) error { return a.runRepair(cmd.Context(), st, id, dryRun) })
			})
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be done")
	cmd.Flags().BoolVar(&stale, "stale", false, "delete what interrupted programs left")
	cmd.Flags().BoolVar(&blobs, "blobs", false, "delete content that nothing refers to")
	return a.withJSON(cmd)
}

// removeStale deletes what interrupted programs left in the store.
func (a *app) removeStale(ctx context.Context, st *file.Store, dryRun bool) error {
	stale, err := st.Stale(ctx)
	if err != nil {
		return err
	}
	size := int64(0)
	for _, f := range stale {
		if !dryRun {
			if err := st.RemoveStale(ctx, f); err != nil {
				return err
			}
		}
		size += f.Size
		kind, detail := describeStale(f)
		if err := a.printAction(action{Session: f.Name, Action: kind, Path: f.Path, Size: f.Size, Detail: detail}); err != nil {
			return err
		}
	}
	what := counted(len(stale), "stale file", "stale files") + ", " + humanBytes(size)
	if dryRun {
		a.say("would delete %s", what)
	} else {
		a.say("deleted %s", what)
	}
	return nil
}

// action is something that repair does, as repair --json prints it.
type action struct {
	Session string `json:"session"` // "" if it is of no session
	Action  string `json:"action"`
	Entry   string `json:"entry,omitempty"`
	Offset  int64  `json:"offset,omitempty"` // in the file as it was
	Path    string `json:"path,omitempty"`
	Size    int64  `json:"size,omitempty"` // of a file that is deleted
	Detail  string `json:"detail"`
}

func (a *app) runRepair(ctx context.Context, st *file.Store, id string, dryRun bool) error {
	name, err := resolveSession(ctx, st, id)
	if err != nil {
		return err
	}
	modes, err := a.repairModes(st, name, dryRun)
	if err != nil {
		return err
	}
	lines, kept, err := a.repairLog(ctx, st, name, dryRun)
	if err != nil {
		return err
	}
	for _, act := range append(modes, lines...) {
		if err := a.printAction(act); err != nil {
			return err
		}
	}
	if kept != "" {
		a.say("the file as it was: %s", kept)
	}
	if dryRun {
		a.say("%s would be made in session %s", counted(len(modes)+len(lines), "repair", "repairs"), name)
		return nil
	}
	a.say("%s made in session %s", counted(len(modes)+len(lines), "repair was", "repairs were"), name)
	return a.sayLeft(ctx, st, name)
}

func (a *app) printAction(act action) error {
	if a.flags.json {
		return a.printJSON(act)
	}
	where := act.Session
	if where == "" {
		where = act.Path
	}
	if act.Offset > 0 {
		where += fmt.Sprintf(" at byte %d", act.Offset)
	}
	if act.Entry != "" {
		where += " entry " + oneLine(act.Entry, 0)
	}
	return a.print("%s: %s: %s", where, act.Action, oneLine(act.Detail, 0))
}

// sayLeft looks at the session once more.
func (a *app) sayLeft(ctx context.Context, st *file.Store, name string) error {
	c := newChecker(a, st)
	c.report = func(f finding) error {
		if f.Severity == severityFault {
			a.say("left as it is: %s %s: %s", f.Kind, f.Entry, f.Detail)
		}
		return nil
	}
	if err := c.checkSession(ctx, name); err != nil {
		return err
	}
	if c.counts[severityFault] > 0 {
		return errPartial
	}
	return nil
}

// repairModes takes away permissions that are too wide: of the session's files,
// of the directories, and of whatever else the store keeps for itself.
func (a *app) repairModes(st *file.Store, name string, dryRun bool) ([]action, error) {
	all, err := wideModes(st)
	if err != nil {
		return nil, err
	}
	c := newChecker(a, st)
	for _, path := range []string{st.Path(name), st.Path(name) + ".bak", c.store.ArchivePath(name), c.store.LockPath(name)} {
		if w, ok := wideMode(path); ok {
			all = append(all, w)
		}
	}
	var done []action
	for _, w := range all {
		if !dryRun {
			if err := os.Chmod(w.path, w.mode&w.fit); err != nil {
				return done, err
			}
		}
		done = append(done, action{
			Session: name, Action: "permissions", Path: w.path,
			Detail: fmt.Sprintf("%s had mode %04o, which becomes %04o", w.path, w.mode, w.mode&w.fit),
		})
	}
	return done, nil
}

// repairLog repairs the log, and returns what it did and where the copy is.
// While somebody writes to it, it is planned again.
func (a *app) repairLog(ctx context.Context, st *file.Store, name string, dryRun bool) (done []action, kept string, err error) {
	err = session.Retry(func() error {
		done, kept, err = a.repairOnce(ctx, st, name, dryRun)
		return err
	}, nil)
	return done, kept, err
}

func (a *app) repairOnce(ctx context.Context, st *file.Store, name string, dryRun bool) (done []action, kept string, err error) {
	raw, err := st.OpenRaw(ctx, name)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, raw.Close()) }()
	p, err := a.planRepair(ctx, st, name, raw)
	if err != nil || p == nil {
		return nil, "", err
	}
	if p.hopeless() {
		return a.repairFromBackup(ctx, st, name, dryRun)
	}
	if len(p.actions) == 0 || dryRun {
		return p.actions, "", nil
	}
	kept, err = raw.Rewrite(ctx, p.newContent())
	return p.actions, kept, err
}

// repairFromBackup is for a file in which nothing can be read.
func (a *app) repairFromBackup(ctx context.Context, st *file.Store, name string, dryRun bool) ([]action, string, error) {
	backup := st.Path(name) + ".bak"
	if !isFile(backup) {
		return nil, "", &session.Error{
			Op: "repair", Path: st.Path(name), Kind: session.ErrCorrupt, Err: errors.New("nothing in it can be read, and there is no backup"),
			Hint: "coppice rm moves it to the trash",
		}
	}
	if !dryRun {
		if err := st.RestoreBackup(ctx, name); err != nil {
			return nil, "", err
		}
	}
	return []action{{
		Session: name, Action: "backup", Path: backup,
		Detail: "nothing in the file can be read; the backup takes its place, and the file goes to quarantine",
	}}, "", nil
}
