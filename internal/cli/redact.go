package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store/file"
)

type redactFlags struct {
	all, apply, dryRun, link bool
}

func redactCommand(a *app) *cobra.Command {
	var f redactFlags
	cmd := &cobra.Command{
		Use:   "redact [ID…]",
		Short: "Find secrets and take them out for good",
		Long: "Lists the keys, tokens and passwords in sessions, each with its place, and never\n" +
			"the secret itself. With --apply each is replaced by [REDACTED:kind]: in the log, in\n" +
			"blobs, in what was kept of an import's source, in the trash and in quarantine, and\n" +
			"the index is made anew. A receipt tells what was done and where a secret is left,\n" +
			"because another session has it too, say; the exit code is then 3.\n\n" +
			"This is the one command that nothing brings back: look with --dry-run first. A\n" +
			"secret that was ever written down should be revoked all the same.",
		Example: "  coppice redact 0197ab --dry-run\n" +
			"  coppice redact --all --apply",
		GroupID:           "keep",
		ValidArgsFunction: a.completeSession(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) > 0) == f.all {
				return usageError{errors.New("either the ids of sessions or --all is needed")}
			}
			return a.withStore(func(st *file.Store) error { return a.runRedact(cmd.Context(), st, args, &f) })
		},
	}
	cmd.Flags().BoolVar(&f.all, "all", false, "all sessions, and what the trash has of removed ones")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only list what was found")
	cmd.Flags().BoolVar(&f.apply, "apply", false, "replace what was found")
	linkFlag(cmd, &f.link)
	cmd.MarkFlagsOneRequired("dry-run", "apply")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "apply")
	return a.withJSON(cmd)
}

func (a *app) runRedact(ctx context.Context, st *file.Store, given []string, f *redactFlags) error {
	var names []string
	for _, id := range given {
		links, err := a.linksOf(ctx, st, id, f.link)
		if err != nil {
			return err
		}
		names = append(names, links...)
	}
	if f.apply {
		a.finishRedaction(ctx, st)
	}
	bar := a.newProgress("")
	sweep, err := clean.LookWith(ctx, st, clean.Options{Sessions: names, Progress: bar.showDoing})
	bar.done()
	if err != nil {
		return err
	}
	if err := a.printSecrets(sweep.Secrets); err != nil {
		return err
	}
	if !f.apply {
		a.say("%s found; nothing was changed", counted(len(sweep.Secrets), "secret", "secrets"))
		for _, l := range sweep.Unread {
			a.say("%s %s: %s", a.paint(yellow, "warning:"), l.Path, oneLine(l.Why, 0))
		}
		if len(sweep.Unread) > 0 {
			return errPartial
		}
		return nil
	}
	return a.applyRedaction(ctx, st, sweep)
}

// applyRedaction replaces what was found. The index goes first: if we do not come
// to the end, there is none that still has a secret.
func (a *app) applyRedaction(ctx context.Context, st *file.Store, sweep *clean.Sweep) error {
	var dropped []string
	if len(sweep.Secrets) > 0 {
		var err error
		if dropped, err = a.dropIndexes(st); err != nil {
			return err
		}
	}
	receipt, err := sweep.Apply(ctx)
	path := ""
	if err == nil && len(dropped) > 0 {
		path, err = a.rebuildIndex(ctx, st, dropped[0])
	}
	if err := errors.Join(a.printReceipt(receipt, path), err); err != nil {
		a.sayUnfinished(st)
		return err
	}
	if len(receipt.Left) > 0 {
		a.say("not all of it could be taken out; the receipt names what is left. coppice redact --all --apply also looks at the other sessions")
		return errPartial
	}
	return nil
}

// sayUnfinished tells what becomes of a redaction that did not come to its end.
func (a *app) sayUnfinished(st *file.Store) {
	if yes, err := clean.Unfinished(st); yes && err == nil {
		a.say("not all was taken out; every file is whole. The next command that writes to the store does the rest, or: %s", command("redact", nil, "--all", "--apply"))
	}
}

// prepare is done before every command: the settings are read, and what an
// interrupted redaction has left is done before anything else is written.
func (a *app) prepare(cmd *cobra.Command) error {
	if err := a.settle(); err != nil || !writers[strings.TrimPrefix(cmd.CommandPath(), "coppice ")] {
		return err
	}
	if _, err := os.Stat(a.config.Dir.value); err != nil {
		return nil // there is nothing yet; what is wrong the command will say
	}
	return a.withStore(func(st *file.Store) error {
		a.finishRedaction(cmd.Context(), st)
		return nil
	})
}

// writers are the commands that write to sessions. (Others have to do with them
// only when they are asked to; redact sees to it by itself.)
var writers = map[string]bool{
	"new": true, "append": true, "import": true, "branch": true, "fork": true, "merge": true, "compact": true, "revert": true,
	"label": true, "rename": true, "tag": true, "pin": true, "unpin": true, "rm": true, "trash restore": true, "trash empty": true,
	"archive": true, "unarchive": true, "index rebuild": true,
}

// finishRedaction does what an interrupted redaction has left to do. What goes
// wrong is said, and left for the next time.
func (a *app) finishRedaction(ctx context.Context, st *file.Store) {
	if unfinished, err := clean.Unfinished(st); err != nil || !unfinished {
		return // what is wrong with the store the command will say
	}
	if err := a.finish(ctx, st); err != nil {
		a.say("%s an interrupted redaction could not be finished: %v", a.paint(yellow, "warning:"), err)
	}
}

func (a *app) finish(ctx context.Context, st *file.Store) error {
	if _, err := a.dropIndexes(st); err != nil {
		return err
	}
	bar := a.newProgress("")
	receipt, err := clean.Finish(ctx, st, clean.Options{Progress: bar.showDoing})
	bar.done()
	if err != nil || receipt == nil {
		return err
	}
	a.say("a redaction that was interrupted is finished now: %s taken out of %s", counted(len(receipt.Kinds), "kind of secrets", "kinds of secrets"),
		counted(len(receipt.Sessions)+len(receipt.Copies), "file", "files"))
	for _, l := range receipt.Left {
		a.say("%s a secret is left in %s: %s", a.paint(yellow, "warning:"), l.Path, oneLine(l.Why, 0))
	}
	return nil
}

// indexFiles are the endings of the files that SQLite keeps a database in.
var indexFiles = []string{"", "-wal", "-shm", "-journal"}

// dropIndexes deletes the store's indexes, wherever they may be, and returns where
// there were some.
func (a *app) dropIndexes(st *file.Store) ([]string, error) {
	var had []string
	for _, path := range a.indexPaths(st) {
		for _, suffix := range indexFiles {
			err := os.Remove(path + suffix)
			switch {
			case err == nil && !slices.Contains(had, path):
				had = append(had, path)
			case err != nil && !errors.Is(err, fs.ErrNotExist):
				return had, &session.Error{Op: "delete the index", Path: path + suffix, Err: err, Hint: "another program may be using it"}
			}
		}
	}
	return had, nil
}

// indexPaths are the places where this user may have an index of the store: beside
// the sessions, and in the cache. The latter's name is made of the store's, which
// may have been another, through a link.
func (a *app) indexPaths(st *file.Store) []string {
	paths := []string{st.IndexPath(), a.cachedIndexPath(st.Dir())}
	if real, err := filepath.EvalSymlinks(st.Dir()); err == nil && real != st.Dir() {
		paths = append(paths, a.cachedIndexPath(real))
	}
	return paths
}

// rebuildIndex makes the index again, where it was.
func (a *app) rebuildIndex(ctx context.Context, st *file.Store, path string) (string, error) {
	ix, err := a.openIndexAt(ctx, st, path)
	if err != nil {
		return "", err
	}
	return path, errors.Join(a.catchUp(ctx, ix), ix.Close())
}

// cleanAndSay is for session.Options.Clean: it takes out of an entry what was taken
// out of the store before, and if that is wanted all secrets, and tells of each.
func (a *app) cleanAndSay(e *session.Entry, all bool) error {
	if a.unguarded != nil {
		return a.unguarded
	}
	var found []redact.Finding
	var err error
	if all {
		found, err = clean.Entry(e)
	}
	if err == nil {
		var more []redact.Finding
		more, err = a.guard.Entry(e)
		found = append(found, more...)
	}
	for _, f := range found {
		a.say("redacted: %s at %s: %s", f.Kind, oneLine(f.Path, 0), oneLine(f.Preview, 0))
	}
	return err
}

// withRedact gives a writing command the flag --redact.
func (a *app) withRedact(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&a.flags.redact, "redact", "", "take secrets out: true or false (default: the setting redact)")
	cmd.Flags().Lookup("redact").NoOptDefVal = "true"
	return cmd
}

// redacts reports whether secrets are to be taken out of what is written.
func (c *config) redacts() (bool, error) {
	switch c.Redact.value {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, usageError{fmt.Errorf("redact is %q (%s); it must be true or false", c.Redact.value, c.Redact.origin)}
}
