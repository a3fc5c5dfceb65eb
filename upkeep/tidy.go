package upkeep

import (
	"context"
	"errors"
	"slices"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// RemoveStale deletes what interrupted programs left in a store: old temporary files,
// and locks of sessions that do not exist. With dryRun it only returns what it would
// delete.
func RemoveStale(ctx context.Context, st store.Store, dryRun bool) ([]Action, error) {
	inspector, ok := st.(store.Inspector)
	if !ok {
		return nil, nil // such a store has nothing of the kind
	}
	var stale []store.Fault
	for f, err := range inspector.InspectRest(ctx) {
		if err != nil {
			return nil, err
		}
		if f.Kind == store.FaultTemporary || f.Kind == store.FaultLock {
			stale = append(stale, f)
		}
	}
	var done []Action
	for _, f := range stale {
		if !dryRun {
			if err := inspector.Mend(ctx, f); err != nil {
				return done, err
			}
		}
		done = append(done, Action{Session: f.Name, Action: string(f.Kind), Path: f.Path, Size: f.Size, Detail: describeFault(f)})
	}
	return done, nil
}

// RemoveBlobs deletes content that nothing in the store refers to: no session, archived
// or not, and nothing in trash, quarantine or backups. Other processes may keep
// writing. With dryRun it only returns what it would delete. After an error it also
// returns what it has deleted.
func RemoveBlobs(ctx context.Context, st store.Store, dryRun bool) ([]Action, error) {
	auditor, ok := st.(store.Auditor)
	collector, deletes := st.Blobs().(store.Collector)
	if !ok || !deletes {
		return nil, &session.Error{Op: "delete blobs", Err: errors.ErrUnsupported}
	}
	unneeded, err := auditor.Unreferenced(ctx)
	if err != nil {
		return nil, err
	}
	if !dryRun {
		var refs []store.Ref
		for _, blob := range unneeded {
			refs = append(refs, blob.Ref)
		}
		var deleted []store.Ref
		deleted, err = collector.Collect(ctx, refs...)
		gone := make(map[store.Ref]bool)
		for _, ref := range deleted {
			gone[ref] = true
		}
		// Something may refer to a blob by now, or another process has deleted it.
		unneeded = slices.DeleteFunc(unneeded, func(blob store.Unreferenced) bool { return !gone[blob.Ref] })
	}
	var done []Action
	for _, blob := range unneeded {
		done = append(done, Action{Action: KindUnreferenced, Path: blob.Path, Size: blob.Size, Detail: unreferenced})
	}
	return done, err
}
