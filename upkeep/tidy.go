package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

// removeBlobs deletes the blobs that nothing refers to.
func (a *app) removeBlobs(ctx context.Context, st *file.Store, dryRun bool) error {
	unreferenced, err := st.Unreferenced(ctx)
	if err != nil {
		return err
	}
	var failed error
	if !dryRun {
		var refs []store.Ref
		for _, blob := range unreferenced {
			refs = append(refs, blob.Ref)
		}
		removal, err := st.RemoveBlobs(ctx, refs...)
		failed = err
		// One may have been named since, or deleted by somebody else.
		deleted := make(map[store.Ref]bool)
		for _, ref := range removal.Deleted {
			deleted[ref] = true
		}
		unreferenced = slices.DeleteFunc(unreferenced, func(blob file.Unreferenced) bool { return !deleted[blob.Ref] })
	}
	size := int64(0)
	for _, blob := range unreferenced {
		size += blob.Size
		act := action{Action: kindUnreferenced, Path: blob.Path, Size: blob.Size, Detail: describeUnreferenced(blob)}
		if err := a.printAction(act); err != nil {
			return errors.Join(failed, err)
		}
	}
	what := counted(len(unreferenced), "unreferenced blob", "unreferenced blobs") + ", " + humanBytes(size)
	if dryRun {
		a.say("would delete %s", what)
	} else {
		a.say("deleted %s", what)
	}
	return failed
}

func describeUnreferenced(blob file.Unreferenced) string {
	return humanBytes(blob.Size) + " that no session refers to"
}
