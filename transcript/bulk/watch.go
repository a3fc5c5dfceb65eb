package bulk

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
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
	// lookShare bounds what looking takes of a processor: one part in so many.
	lookShare = 50
	// maxTold is in how many directories a watch wants to be told of changes. A user may have few
	// such wishes in all, and other programs have some, too.
	maxTold = 2000
)

// Watch imports files as they grow, until the context ends, which is not an error. It calls
// look for the sources when something changes in their directories, though no sooner than every
// after the last time, and from time to time, so that it finds whatever was not told. If nobody
// tells of changes, it calls look every so often. With very many files, it waits longer, so that
// looking takes little of a processor. An error of look counts only the first time: later, a
// directory may be gone for a moment. After each round that added something, Watch calls added if
// it is set. The result says what was done, even when there is an error.
func Watch(ctx context.Context, im *transcript.Importer, r Request, every time.Duration, look func(*discover.Looked) error, added func()) (*Result, error) {
	if im == nil || look == nil || every <= 0 {
		return &Result{}, errors.Join(errNoImporter(), errors.New("and a way to look for sources every so often"))
	}
	run := newRun(im, r)
	seen := make(map[string]fs.FileInfo)
	told := &watchedDirs{notices: r.Notices, onUnwatched: r.Untold, stops: make(map[string]func()), changes: make(chan struct{}, 1)}
	defer told.close()
	for first := true; ; first = false {
		var l discover.Looked
		began := time.Now()
		err := look(&l)
		if err != nil && first {
			return run.result(), err
		}
		told.follow(l.Dirs) // before the files are looked at: what changes from now on is told
		list, fresh := changed(l.Sources, seen)
		took := time.Since(began)
		before := run.total.Entries
		if err := run.all(ctx, list); err != nil && ctx.Err() == nil {
			return run.result(), err
		}
		if added != nil && run.total.Entries > before && ctx.Err() == nil {
			added()
		}
		if !told.wait(ctx, max(every, took*lookShare), fresh || err != nil) {
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

// follow asks to be told of changes in directories, and in no others.
func (d *directories) follow(dirs []string) {
	if d.notices == nil || d.failed {
		d.failed = true
		return
	}
	if d.lost.Swap(false) {
		d.close()
	}
	wanted := make(map[string]bool)
	for _, dir := range newest(dirs, maxTold) {
		wanted[dir] = true
	}
	for dir, stop := range d.stops {
		if !wanted[dir] {
			stop()
			delete(d.stops, dir)
		}
	}
	for dir := range wanted {
		if err := d.add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			d.close() // looking finds everything, and others may need what tells of changes
			if d.failed = true; d.untold != nil {
				d.untold(err)
			}
			return
		}
	}
}

// newest returns at most n of the directories: those in which something appeared last.
func newest(dirs []string, n int) []string {
	if len(dirs) <= n {
		return dirs
	}
	at := make(map[string]time.Time, len(dirs))
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil {
			at[dir] = info.ModTime()
		}
	}
	dirs = slices.Clone(dirs)
	slices.SortStableFunc(dirs, func(a, b string) int { return at[b].Compare(at[a]) })
	return dirs[:n]
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
