package bulk

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/discover"
)

const (
	// recently is how long ago a file may have changed for another change not to show.
	recently = 3 * time.Second
	// lookSeldom is how often files are looked at if the system reports changes.
	lookSeldom = time.Minute
)

// Watch imports files as they grow, until the context ends, which is not an error. It calls
// list for the sources when something changes in their directories or in those above, though no
// sooner than every after the last time, and from time to time, so that it finds new files too. If
// nobody tells of changes, it calls list every so often. An error of list counts only the first
// time: later, a directory may be gone for a moment. After each round that added something, Watch
// calls added if it is set. The result says what was done, even when there is an error.
func Watch(ctx context.Context, im *transcript.Importer, r Request, every time.Duration, list func() ([]discover.Source, error), added func()) (*Result, error) {
	if im == nil || list == nil || every <= 0 {
		return &Result{}, errors.Join(errNoImporter(), errors.New("and a list of sources to ask for every so often"))
	}
	run := newRun(im, r)
	seen := make(map[string]fs.FileInfo)
	told := &watchedDirs{notices: r.Notices, onUnwatched: r.Untold, stops: make(map[string]func()), changes: make(chan struct{}, 1)}
	defer told.close()
	for first := true; ; first = false {
		sources, err := list()
		if err != nil && first {
			return run.result(), err
		}
		told.follow(sources) // before they are looked at: later changes are reported
		list, fresh := changed(sources, seen)
		before := run.total.Entries
		if err := run.all(ctx, list); err != nil && ctx.Err() == nil {
			return run.result(), err
		}
		if added != nil && run.total.Entries > before && ctx.Err() == nil {
			added()
		}
		if !told.wait(ctx, every, fresh || err != nil) {
			return run.result(), nil
		}
	}
}

// changed returns the files that look different from the last time, and those
// that were changed so recently that another change might not show: fresh says that there are some.
func changed(sources []discover.Source, seen map[string]fs.FileInfo) (list []discover.Source, fresh bool) {
	for _, src := range sources {
		info, err := os.Stat(src.Path)
		if err != nil {
			continue
		}
		before, recent := seen[src.Path], time.Since(info.ModTime()) < recently
		if before == nil || before.Size() != info.Size() || !before.ModTime().Equal(info.ModTime()) || recent {
			list = append(list, src)
		}
		seen[src.Path], fresh = info, fresh || recent
	}
	return list, fresh
}

// watchedDirs are the directories whose changes the system reports.
type watchedDirs struct {
	notices     vfs.Notifier
	onUnwatched func(error)
	stops       map[string]func() // by directory
	changes     chan struct{}
	lost        atomic.Bool // a report was lost: all must be asked for again
	failed      bool        // not all of them are watched
}

// follow watches the directories of sources, and those above, where new
// directories are made.
func (d *watchedDirs) follow(sources []discover.Source) {
	if d.notices == nil || d.failed {
		d.failed = true
		return
	}
	if d.lost.Swap(false) {
		d.close()
	}
	for _, src := range sources {
		dir := filepath.Dir(src.Path)
		for _, dir := range []string{dir, filepath.Dir(dir)} {
			if err := d.add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				if d.failed = true; d.onUnwatched != nil {
					d.onUnwatched(err)
				}
				return
			}
		}
	}
}

func (d *watchedDirs) add(dir string) error {
	if d.stops[dir] != nil {
		return nil
	}
	stop, err := d.notices.Notify(dir, func(name string) {
		if name == "" {
			d.lost.Store(true)
		}
		select {
		case d.changes <- struct{}{}:
		default: // it will be looked at anyway
		}
	})
	if err == nil {
		d.stops[dir] = stop
	}
	return err
}

// wait waits until the sources should be looked at again. It reports false if ctx ends.
func (d *watchedDirs) wait(ctx context.Context, every time.Duration, soon bool) bool {
	pause(ctx, every, nil)
	if !soon && !d.failed && ctx.Err() == nil {
		pause(ctx, max(lookSeldom, every)-every, d.changes)
	}
	return ctx.Err() == nil
}

func pause(ctx context.Context, d time.Duration, news <-chan struct{}) {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-ctx.Done():
	case <-news:
	case <-late.C:
	}
}

func (d *watchedDirs) close() {
	for _, stop := range d.stops {
		stop()
	}
	clear(d.stops)
}
