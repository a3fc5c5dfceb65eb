package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

func fsckCommand(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "fsck [ID…]",
		Short: "Look for faults in the store",
		Long: "Reads sessions, or without an ID all of them and everything else in the store,\n" +
			"and prints every fault by name and place. It changes nothing.\n\n" +
			"Faults are damage, and things that should not be as they are; with any of them\n" +
			"the exit code is 12. Notes are worth knowing and no damage.",
		GroupID:           "about",
		ValidArgsFunction: a.completeSession(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(func(st *file.Store) error { return a.runFsck(cmd.Context(), st, args) })
		},
	})
}

// finding is a fault or a note, as fsck --json prints it.
type finding struct {
	Session  string `json:"session,omitempty"`
	Kind     string `json:"kind"`
	Severity string `json:"severity"` // fault or note
	Entry    string `json:"entry,omitempty"`
	Offset   int64  `json:"offset,omitempty"` // in the session's file
	Path     string `json:"path,omitempty"`
	Detail   string `json:"detail"`
}

const (
	severityFault = "fault"
	severityNote  = "note"
)

// The kinds of findings that package session has no name for.
const (
	kindUnreadable   = "unreadable"
	kindCorruptBlob  = "corrupt blob"
	kindUnreferenced = "unreferenced blob"
	kindLeftover     = "left-over archive"
	kindStale        = "stale temporary file"
	kindStaleLock    = "stale lock"
	kindPermissions  = "permissions"
	kindIgnored      = "ignored file"
	kindUnsynced     = "failed sync"
	kindUsage        = "usage"
	kindIndex        = "index"
)

// severityOf tells damage from what a store in good health may have, too: a tool
// that was interrupted, a conversation begun anew, blobs of deleted sessions.
func severityOf(kind string) string {
	switch kind {
	case string(session.ProblemInterrupted), string(session.ProblemRoots), kindUnreferenced, kindStale, kindStaleLock, kindLeftover:
		return severityNote
	}
	return severityFault
}

func (a *app) runFsck(ctx context.Context, st *file.Store, given []string) error {
	c := newChecker(a, st)
	if len(given) == 0 {
		if err := c.checkStore(ctx); err != nil {
			return err
		}
		return a.fsckVerdict(c)
	}
	err := a.each(ctx, given, func(id string) error {
		name, err := resolveSession(ctx, st, id)
		if err != nil {
			return err
		}
		return c.checkSession(ctx, name)
	})
	if err != nil {
		return err
	}
	return a.fsckVerdict(c)
}

// fsckVerdict says how it went. What was found has been printed.
func (a *app) fsckVerdict(c *checker) error {
	notes := c.counts[severityNote]
	if c.counts[severityFault] == 0 {
		a.say("%s checked: no faults, %s", counted(c.sessions, "session", "sessions"), counted(notes, "note", "notes"))
		return nil
	}
	hint := ""
	if bad := slices.Sorted(maps.Keys(c.bad)); len(bad) > 0 {
		hint = command("repair", bad[:1], "--dry-run") + " shows what can be done"
	}
	return &session.Error{
		Op: "fsck", Path: c.store.Dir(), Kind: session.ErrCorrupt, Hint: hint,
		Err: fmt.Errorf("%s and %s in %s", counted(c.counts[severityFault], "fault", "faults"),
			counted(notes, "note", "notes"), counted(c.sessions, "session", "sessions")),
	}
}

// checker looks for faults and reports each when it is found.
type checker struct {
	app    *app
	store  *file.Store
	report func(finding) error

	sessions int
	counts   map[string]int   // by severity
	bad      map[string]bool  // the sessions that have faults
	places   map[string]int64 // of the session at hand: where each entry is
	blind    bool             // some session could not be read
}

func newChecker(a *app, st *file.Store) *checker {
	c := &checker{
		app: a, store: st,
		counts: make(map[string]int), bad: make(map[string]bool),
		places: make(map[string]int64),
	}
	c.report = a.printFinding
	return c
}

func (c *checker) found(f finding) error {
	f.Severity = severityOf(f.Kind)
	f.Detail, _ = redact.Text(oneLine(f.Detail, 0)) // it may quote what is damaged
	c.counts[f.Severity]++
	if f.Severity == severityFault && f.Session != "" {
		c.bad[f.Session] = true
	}
	return c.report(f)
}

func (a *app) printFinding(f finding) error {
	if a.flags.json {
		return a.printJSON(f)
	}
	where := f.Session
	if where == "" {
		where = f.Path
	}
	if f.Offset > 0 {
		where += fmt.Sprintf(" at byte %d", f.Offset)
	}
	if f.Entry != "" {
		where += " entry " + oneLine(f.Entry, 0)
	}
	kind := a.paint(red, f.Kind)
	if f.Severity == severityNote {
		kind = a.paint(dim, "note: "+f.Kind)
	}
	return a.print("%s: %s: %s", where, kind, f.Detail)
}

// failed reports an error that kept a session from being looked at.
func (c *checker) failed(name string, err error) error {
	c.blind = true
	if errors.Is(err, context.Canceled) {
		return err
	}
	var e *session.Error
	detail := err.Error()
	if errors.As(err, &e) {
		plain := *e
		plain.Hint = ""
		detail = plain.Error()
	}
	return c.found(finding{Session: name, Kind: kindUnreadable, Path: c.store.Path(name), Detail: detail})
}
