package upkeep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// CheckRequest says what to check.
type CheckRequest struct {
	// Sessions are those to check. Empty means all of them, and everything else
	// in the store.
	Sessions []string
	// Index is the path of the store's index, which is part of a check of everything; ""
	// means that there is none. VerifyIndex looks for damage in it.
	Index       string
	VerifyIndex func(ctx context.Context, path string) error
	// Each gets every finding as it is made. It may be nil. If it returns an
	// error, the check ends with that error.
	Each func(Finding) error
}

// CheckResult sums up a check.
type CheckResult struct {
	Sessions int      `json:"sessions"` // how many were checked
	Faults   int      `json:"faults"`
	Warnings int      `json:"warnings"`
	Notes    int      `json:"notes"`
	Damaged  []string `json:"damaged"` // the sessions that have faults, sorted
}

// Check looks for faults in a store: in what its sessions say, in how they are kept, and in
// what is kept beside them. It works on every store; a
// store.Mender is checked more closely. It changes nothing. Secrets that a finding would
// quote are replaced.
func Check(ctx context.Context, st store.Store, r CheckRequest) (*CheckResult, error) {
	c := &checker{store: st, request: r, bad: make(map[string]bool)}
	err := c.run(ctx)
	c.result.Damaged = slices.AppendSeq([]string{}, maps.Keys(c.bad)) // JSON has no null for a list
	slices.Sort(c.result.Damaged)
	return &c.result, err
}

// checker looks for faults and passes each on when it is found.
type checker struct {
	store   store.Store
	request CheckRequest
	result  CheckResult
	bad     map[string]bool // the sessions that have faults
	blind   bool            // some session could not be read
	removal string          // whose log is checked, if that is in the trash
}

func (c *checker) run(ctx context.Context) error {
	for _, name := range c.request.Sessions {
		if err := c.checkSession(ctx, name); err != nil {
			return err
		}
	}
	if len(c.request.Sessions) > 0 {
		return nil
	}
	return c.checkStore(ctx)
}

// found counts a finding and passes it on. For imported, see severityOf. Nobody works with what
// is in the trash, so damage there is a warning, and notes do not count.
func (c *checker) found(f Finding, imported bool) error {
	f.Severity = severityOf(f.Kind, imported)
	if c.removal != "" {
		if f.Severity == Note {
			return nil
		}
		f.Severity, f.Removal = Warning, c.removal
	}
	f.Detail, _ = redact.Text(f.Detail) // it may quote damaged text
	switch f.Severity {
	case Note:
		c.result.Notes++
	case Warning:
		c.result.Warnings++
	default:
		c.result.Faults++
		if f.Session != "" {
			c.bad[f.Session] = true
		}
	}
	if c.request.Each == nil {
		return nil
	}
	return c.request.Each(f)
}

// checkStore looks at all sessions and at everything else in the store.
func (c *checker) checkStore(ctx context.Context) error {
	names, err := namesIn(ctx, c.store)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := c.checkSession(ctx, name); err != nil {
			return err
		}
	}
	for _, check := range []func(context.Context) error{c.checkTrash, c.checkRest, c.checkBlobs, c.checkIndex} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkTrash looks at the sessions that were removed and can still be restored.
func (c *checker) checkTrash(ctx context.Context) (err error) {
	trash, err := c.store.Trash().Read()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, trash.Close()) }()
	ids, err := namesIn(ctx, trash)
	if err != nil {
		return err
	}
	for _, id := range ids {
		name, _, ok := store.ParseRemoval(id)
		if !ok {
			continue
		}
		removed := &checker{store: removedLog{c.store, trash, name, id}, request: CheckRequest{Each: c.request.Each}, removal: id}
		if err := removed.checkSession(ctx, name); err != nil {
			return err
		}
		c.result.Warnings += removed.result.Warnings
	}
	return nil
}

// removedLog is a store as it would be if a log were back from the trash.
type removedLog struct {
	store.Store
	trash    store.Store
	name, id string
}

func (r removedLog) Open(ctx context.Context, name string) (store.Log, error) {
	if name == r.name {
		return r.trash.Open(ctx, r.id)
	}
	return r.Store.Open(ctx, name)
}

// namesIn returns the names of all sessions, sorted, including unreadable ones.
func namesIn(ctx context.Context, st store.Store) ([]string, error) {
	names, err := store.Names(ctx, st)
	slices.Sort(names)
	return names, err
}

// checkRest asks the store about faults that belong to no single session.
func (c *checker) checkRest(ctx context.Context) error {
	mender, ok := store.As[store.Mender](c.store)
	if !ok {
		return nil
	}
	for f, err := range mender.InspectRest(ctx) {
		if err == nil {
			err = c.found(findingOf(f, ""), false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// findingOf turns a store's fault into a finding. The name of a session that does not
// exist is only in the text.
func findingOf(f store.Fault, session string) Finding {
	return Finding{Session: session, Kind: string(f.Kind), Path: f.Path, Size: f.Size, Detail: describeFault(f)}
}

func describeFault(f store.Fault) string {
	switch f.Kind {
	case store.FaultPermissions:
		return fmt.Sprintf("%s has mode %04o, wider than %04o", f.Path, f.Mode, f.Fit)
	case store.FaultLeftover:
		return "an interrupted archiving left it beside the plain file, which counts"
	case store.FaultUnsynced:
		return "the disk refused to confirm a write; the next append rewrites the session"
	case store.FaultTemporary:
		return "left behind by a writer that was stopped"
	case store.FaultLock:
		return fmt.Sprintf("the lock of a session %q that does not exist", f.Name)
	}
	if f.Err != nil {
		return f.Err.Error()
	}
	return string(f.Kind)
}

func counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// checkBlobs looks at the blobs that nothing refers to. The others were read with their
// sessions.
func (c *checker) checkBlobs(ctx context.Context) error {
	all, err := c.store.Blobs().Unreferenced(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && c.blind:
		return nil // the session's finding says why
	case err != nil:
		return c.found(Finding{Kind: KindUnreadable, Detail: "cannot tell which blobs are needed: " + err.Error()}, false)
	}
	for _, blob := range all {
		f := Finding{Kind: KindUnreferenced, Path: blob.Place, Size: blob.Size, Detail: unreferenced}
		_, err := c.store.Blobs().Get(ctx, store.Ref(blob.Name))
		switch {
		case errors.Is(err, store.ErrNotExist):
			continue
		case errors.Is(err, store.ErrCorrupt):
			f.Kind, f.Detail = KindCorruptBlob, "the content does not match its name; no session refers to it"
		case err != nil:
			f.Kind, f.Detail = KindUnreadable, err.Error()
		}
		if err := c.found(f, false); err != nil {
			return err
		}
	}
	return nil
}

const unreferenced = "no session refers to it"

// checkIndex looks for damage in the index. That is never serious, because the index can be
// rebuilt.
func (c *checker) checkIndex(ctx context.Context) error {
	if c.request.Index == "" {
		return nil
	}
	err := c.request.VerifyIndex(ctx, c.request.Index)
	if !errors.Is(err, store.ErrCorrupt) {
		return err
	}
	return c.found(Finding{Kind: KindIndex, Path: c.request.Index, Detail: "damaged: " + err.Error()}, false)
}

// unreadable reports an error that kept a session from being checked.
func (c *checker) unreadable(name string, err error) error {
	c.blind = true
	if errors.Is(err, context.Canceled) {
		return err
	}
	var e *session.Error
	f := Finding{Session: name, Kind: KindUnreadable, Detail: err.Error()}
	if errors.As(err, &e) {
		plain := *e
		plain.Hint = ""
		f.Path, f.Detail = e.Path, plain.Error()
	}
	return c.found(f, false)
}
