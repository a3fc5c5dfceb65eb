package upkeep

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// RemoveStale deletes what interrupted programs left in a store: old temporary files,
// and locks of sessions that do not exist. With dryRun it only returns what it would
// delete.
func RemoveStale(ctx context.Context, st store.Store, dryRun bool) ([]Action, error) {
	mender, ok := store.As[store.Mender](st)
	if !ok {
		return removeUnfinished(ctx, st, dryRun)
	}
	var stale []store.Fault
	for f, err := range mender.InspectRest(ctx) {
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
			if err := mender.Mend(ctx, f); err != nil {
				return done, err
			}
		}
		done = append(done, Action{Session: f.Name, Action: string(f.Kind), Path: f.Path, Size: f.Size, Detail: describeFault(f)})
	}
	return done, nil
}

// removeUnfinished is RemoveStale for a store that knows only what writers have not finished.
// What one may still be working on stays.
func removeUnfinished(ctx context.Context, st store.Store, dryRun bool) (done []Action, err error) {
	for p, err := range st.Parts().All(ctx) {
		if err != nil {
			return done, err
		}
		if p.Kind != store.PartTemp || dryRun && time.Since(p.Modified) < store.StaleAfter {
			continue
		}
		if !dryRun {
			err := st.Parts().Remove(ctx, p)
			if errors.Is(err, store.ErrLocked) {
				continue
			}
			if err != nil {
				return done, err
			}
		}
		done = append(done, Action{Session: p.Name, Action: string(store.FaultTemporary), Path: p.Place, Size: p.Size, Detail: "left behind by a writer that was stopped"})
	}
	return done, nil
}

// RemoveBlobs deletes content that nothing in the store refers to: no session, archived
// or not, and nothing in trash, quarantine or backups. Other processes may keep
// writing. With dryRun it only returns what it would delete. After an error it also
// returns what it has deleted.
func RemoveBlobs(ctx context.Context, st store.Store, dryRun bool) ([]Action, error) {
	unneeded, err := st.Blobs().Unreferenced(ctx)
	if err != nil {
		return nil, err
	}
	if !dryRun {
		var refs []store.Ref
		for _, blob := range unneeded {
			refs = append(refs, store.Ref(blob.Name))
		}
		var collected *store.Collected
		collected, err = st.Blobs().Collect(ctx, refs...)
		gone := make(map[string]bool)
		for _, ref := range collected.Deleted {
			gone[string(ref)] = true
		}
		// Something may refer to a blob by now, or another process has deleted it.
		unneeded = slices.DeleteFunc(unneeded, func(blob store.Part) bool { return !gone[blob.Name] })
	}
	var done []Action
	for _, blob := range unneeded {
		done = append(done, Action{Action: KindUnreferenced, Path: blob.Place, Size: blob.Size, Detail: unreferenced})
	}
	return done, err
}
