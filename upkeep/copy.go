package upkeep

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
)

// CopyRequest says what is copied from one store to another.
type CopyRequest struct {
	// Sessions are those to copy, even if they were removed from the store that is written to.
	// Empty means everything: all sessions, the trash, and the notes of Rooms.
	Sessions []string
	// Rooms are the rooms whose notes are copied.
	Rooms []string
	// DropIndex deletes every index of the store that is written to. It is called if
	// something is taken out of its sessions: see clean.Options.DropDerived. It may be nil.
	DropIndex func(ctx context.Context) error
	// Progress, if not nil, is called with the progress of the work.
	Progress func(doing string, done, total int64)
}

// CopyResult is what was found and done.
type CopyResult struct {
	// Sessions is how many were looked at: Created are new, Continued have grown, Redacted were
	// rewritten because something was taken out of them, and Same were there already.
	Sessions  int `json:"sessions"`
	Created   int `json:"created"`
	Continued int `json:"continued"`
	Redacted  int `json:"redacted"`
	Same      int `json:"same"`
	// Trashed is how many removed sessions were copied to the trash. Removed is how many sessions
	// were moved there, because they had been removed.
	Trashed int `json:"trashed"`
	Removed int `json:"removed"`
	// Entries, Blobs and Notes is how many of them were written, and Size their bytes.
	Entries int   `json:"entries"`
	Blobs   int   `json:"blobs"`
	Notes   int   `json:"notes"`
	Size    int64 `json:"size"`
	// Read is how many bytes of sessions were read and compared.
	Read int64 `json:"read"`
	// StayRemoved are sessions that were not brought back, because they were removed from the
	// store that is written to, and the other store does not know of that.
	StayRemoved []string `json:"stay_removed"`
	// Conflicts are sessions that differ in a way that no copy explains. They were left as
	// they are.
	Conflicts []CopyFault `json:"conflicts"`
	// Failed are sessions of which not everything could be copied.
	Failed []CopyFault `json:"failed"`
	// Damaged are sessions that were copied with lines that cannot be read.
	Damaged []CopyFault `json:"damaged"`
	// Left are the places of the store that still have, or may have, what was taken out of the
	// other: see clean.Receipt.
	Left []clean.Left `json:"left"`
	// Receipt is what was taken out of the store because it had been taken out of the other;
	// nil if it knew about that already.
	Receipt *clean.Receipt `json:"receipt,omitempty"`
}

// CopyFault is why a session is not the same in both stores, or not whole in either.
type CopyFault struct {
	Session string `json:"session"`
	Removal string `json:"removal,omitempty"` // its ID, if it is in the trash
	Why     string `json:"why"`
}

// Copy makes a store have what another one has, and reads back everything that it writes. Lines
// are copied as they are. What is there already is compared, so that Copy goes on where an
// earlier one stopped, wherever that was:
//
//   - Blobs come before the lines that name them.
//   - A session that is not there, or is there in part, is appended to. Until it is whole,
//     it is a prefix.
//   - What was taken out of a session with Redact since is taken out of the copy, too, with
//     all that the store has of it. What was taken out of the store that is written to is never
//     brought back.
//   - A session that was removed since is moved to the trash, under the ID that its removal has
//     in the other store. What was removed from the store that is written to is not brought
//     back, not even into the trash if it was deleted for good. See store.RemovalsOf.
//   - Any other difference is a conflict, which is reported and left alone.
//   - Notes come last, because those about imports say what the sessions have.
//
// Others may write to both stores meanwhile: what comes later may be missing, and the next Copy
// brings it. The error is for what keeps everything from being copied; what concerns one
// session is in the result.
func Copy(ctx context.Context, from, to store.Store, r CopyRequest) (*CopyResult, error) {
	c := &copier{
		from: from, to: to, request: r,
		result: &CopyResult{StayRemoved: []string{}, Conflicts: []CopyFault{}, Failed: []CopyFault{}, Damaged: []CopyFault{}, Left: []clean.Left{}}, bad: make(map[string]bool),
	}
	err := c.run(ctx)
	c.result.Read = c.read.Load()
	for _, faults := range [][]CopyFault{c.result.Conflicts, c.result.Failed, c.result.Damaged} {
		slices.SortFunc(faults, func(a, b CopyFault) int {
			return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Removal, b.Removal))
		})
	}
	return c.result, err
}

// copier is one Copy.
type copier struct {
	from, to store.Store
	request  CopyRequest
	guard    *clean.Guard // what must not come into the store
	removals struct{ from, to *store.Removals }
	total    int64 // bytes of all logs
	read     atomic.Int64

	mu     sync.Mutex // guards what follows
	result *CopyResult
	bad    map[string]bool // sessions that are not the same now
}

func (c *copier) run(ctx context.Context) error {
	if unfinished, err := clean.Unfinished(ctx, c.from); err != nil || unfinished {
		return cmp.Or(err, error(&session.Error{
			Op: "copy", Path: c.from.Where(), Kind: session.ErrLocked, Err: errors.New("a redaction there is not finished, so secrets would be copied"),
			Hint: "wait for it, or let the next command that writes there finish it",
		}))
	}
	if err := c.adoptRedactions(ctx); err != nil {
		return err
	}
	names := c.request.Sessions
	if len(names) > 0 {
		return c.copyLogs(ctx, pair{from: c.from, to: c.to}, names)
	}
	// Notes say what sessions have, so they are read before these.
	notes, err := c.readNotes(ctx)
	if err != nil {
		return err
	}
	if err := c.copyRemovals(ctx); err != nil {
		return err
	}
	if names, err = store.Names(ctx, c.from); err != nil {
		return err
	}
	if names, err = c.notRemoved(ctx, names); err != nil {
		return err
	}
	if err := c.copyLogs(ctx, pair{from: c.from, to: c.to}, names); err != nil {
		return err
	}
	if err := c.writeNotes(ctx, notes); err != nil {
		return err
	}
	return c.collect(ctx)
}

// adoptRedactions takes the secrets out of the store that were taken out of the other one.
func (c *copier) adoptRedactions(ctx context.Context) (err error) {
	c.result.Receipt, err = clean.Adopt(ctx, c.to, c.from, clean.Options{Progress: c.request.Progress, DropDerived: c.request.DropIndex})
	if c.result.Receipt != nil {
		c.result.Left = append(c.result.Left, c.result.Receipt.Left...)
	}
	if err == nil {
		c.guard, err = clean.LoadGuard(ctx, c.to)
	}
	return err
}

// pair is what logs are copied between: two stores, or what they have in the trash.
type pair struct {
	from, to store.Store
	trash    bool // both are the trash
	removed  bool // only from is
}

// maxCopiers is how many sessions are copied at the same time. While one waits for the disk or
// a server, the others go on.
const maxCopiers = 8

// copyLogs copies the logs of those names, the largest first, so that none is left for last.
func (c *copier) copyLogs(ctx context.Context, p pair, names []string) error {
	stats := make([]store.Stat, 0, len(names))
	for _, name := range names {
		stat, err := p.from.Stat(ctx, name)
		if errors.Is(err, store.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			stat.Name = name // copying it says what is wrong
		}
		stats = append(stats, stat)
		c.total += stat.Size
	}
	slices.SortFunc(stats, func(a, b store.Stat) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.Name, b.Name))
	})
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan store.Stat)
	var workers sync.WaitGroup
	for range min(maxCopiers, len(stats)) {
		workers.Go(func() {
			w := &logCopier{copier: c, pair: p}
			err := w.copyAll(ctx, next)
			if err != nil {
				cancel(err)
			}
		})
	}
	for _, stat := range stats {
		select {
		case next <- stat:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// recordOutcome records the outcome for a session. An error that would affect every session ends
// the work.
func (c *copier) recordOutcome(ctx context.Context, p pair, name string, err error, did changesMade) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !p.trash {
		c.result.Sessions++
	}
	fault := CopyFault{Session: name}
	if p.trash {
		fault.Removal = name
		fault.Session, _, _ = store.ParseRemoval(name)
	}
	differs, ok := errors.AsType[*difference](err)
	switch {
	case err == nil:
		did.count(c.result, p.trash)
		if did.damaged > 0 {
			fault.Why = counted(int64(did.damaged), "line", "lines") + " of it cannot be read, and came as in the original; fsck says more"
			c.result.Damaged = append(c.result.Damaged, fault)
		}
		return nil
	case ctx.Err() != nil, errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrClosed):
		return err
	case ok:
		fault.Why = differs.why
		c.result.Conflicts = append(c.result.Conflicts, fault)
	default:
		fault.Why = err.Error()
		c.result.Failed = append(c.result.Failed, fault)
	}
	if !p.trash {
		c.bad[name] = true
	}
	return nil
}

// changesMade says what was done to a log.
type changesMade struct {
	created, grown, replaced, removed bool
	damaged                           int // lines that were copied
}

func (d changesMade) count(r *CopyResult, trash bool) {
	switch {
	case trash && d.created:
		r.Trashed++
	case trash:
	case d.removed:
		r.Removed++
	case d.replaced:
		r.Redacted++
	case d.created:
		r.Created++
	case d.grown:
		r.Continued++
	default:
		r.Same++
	}
}

// difference is why a session is in conflict.
type difference struct{ why string }

func (d *difference) Error() string { return d.why }

func differs(format string, args ...any) error { return &difference{fmt.Sprintf(format, args...)} }

// reportProgress reports progress: n more bytes were read.
func (c *copier) reportProgress(n int) {
	read := c.read.Add(int64(n))
	if c.request.Progress != nil {
		c.request.Progress("copying", min(read, c.total), c.total)
	}
}

// note is a note that was read.
type note struct {
	room, name string
	data       []byte
}

func (c *copier) readNotes(ctx context.Context) (all []note, err error) {
	for _, room := range c.request.Rooms {
		list, err := c.from.Notes(room).List(ctx)
		if err != nil {
			return nil, err
		}
		for _, n := range list {
			data, err := c.from.Notes(room).Read(ctx, n.Name)
			if errors.Is(err, store.ErrNotExist) {
				continue // removed meanwhile
			}
			if err != nil {
				return nil, err
			}
			all = append(all, note{room, n.Name, data})
		}
	}
	return all, nil
}

// writeNotes writes the notes that are missing, except those that name a session which differs:
// they would be wrong. Without them an import only reads more again than necessary.
func (c *copier) writeNotes(ctx context.Context, notes []note) error {
	for _, n := range notes {
		if c.isBad(n.data) {
			continue
		}
		has, err := c.guard.Has(n.data)
		if err != nil || has {
			continue
		}
		there, err := c.to.Notes(n.room).Read(ctx, n.name)
		switch {
		case err == nil && bytes.Equal(there, n.data):
			continue
		case err != nil && !errors.Is(err, store.ErrNotExist):
			return err
		}
		if err := c.writeNote(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) isBad(note []byte) bool {
	for name := range c.bad {
		if bytes.Contains(note, []byte(`"`+name+`"`)) {
			return true
		}
	}
	return false
}

func (c *copier) writeNote(ctx context.Context, n note) error {
	h, err := c.holdBlobs(ctx)
	if err != nil {
		return err
	}
	defer h.release()
	if err := h.copyNamed(ctx, n.data); err != nil {
		if _, ok := errors.AsType[*difference](err); ok {
			return nil // it has a blob that must not come back
		}
		return err
	}
	notes := c.to.Notes(n.room)
	if err := notes.Write(ctx, n.name, n.data); err != nil {
		return err
	}
	back, err := notes.Read(ctx, n.name)
	if err == nil && !bytes.Equal(back, n.data) {
		err = unlike("copy note", n.name, c.to)
	}
	c.result.Notes++
	c.result.Size += int64(len(n.data))
	return err
}

// unlike is the error for data that reads back differently.
func unlike(op, name string, st store.Store) error {
	return &store.Error{
		Op: op, Name: name, Path: st.Where(), Kind: store.ErrCorrupt, Err: errors.New("what was read back is not what was written"),
		Hint: "check the disk or the server, and copy again",
	}
}

// collect deletes blobs that only older versions of sessions named, because something was taken
// out of these since.
func (c *copier) collect(ctx context.Context) error {
	if c.guard == nil {
		return nil
	}
	ours := make(map[store.Ref]bool)
	for ref, err := range c.from.Blobs().All(ctx) {
		if err != nil {
			return err
		}
		ours[ref] = true
	}
	var others []store.Ref
	for ref, err := range c.to.Blobs().All(ctx) {
		if err != nil {
			return err
		}
		if !ours[ref] {
			others = append(others, ref)
		}
	}
	if len(others) == 0 {
		return nil
	}
	collected, err := c.to.Blobs().Collect(ctx, others...)
	for ref, parts := range collected.Named {
		if !slices.ContainsFunc(parts, func(p store.Part) bool { return p.Kind != store.PartTemp }) {
			c.result.Left = append(c.result.Left, clean.Left{
				Path: c.to.Parts().Where(store.PartBlob, string(ref)),
				Why:  "a writer that may have been stopped still names it; it can be deleted an hour later, with repair --stale and another copy",
			})
		}
	}
	return err
}
