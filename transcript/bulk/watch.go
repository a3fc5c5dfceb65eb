package bulk

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/discover"
)

const (
	// recently is the age below which a file may change again without its time and size showing it.
	recently = 3 * time.Second
	// lookSeldom is how often files are looked at if the system reports changes.
	lookSeldom = time.Minute
	// lookShare bounds the processor time of looking: at most one part in so many.
	lookShare = 20
	// maxWatched is how many directories a watch follows. The system lets a user follow only so
	// many, and other programs need some of them, too.
	maxWatched = 2000
)

// Watch imports files as they grow, until the context ends, which is not an error. It calls
// look for the sources first, and then when something appears in their directories, and from time
// to time, so that it finds changes that were not reported. A file that changes is imported without looking
// for others, though no sooner than every after the last time. If the system reports no changes, Watch
// calls look every so often. With very many files, it waits longer, so that looking costs little
// processor time. A file that could not be imported is tried again when it changes, and once a minute.
// An error of look counts only the first time: later, a directory may be gone for a
// moment. After each round that added something, Watch calls added if it is set. The result says
// what was done, even when there is an error.
func Watch(ctx context.Context, im *transcript.Importer, r Request, every time.Duration, look func(*discover.Looked) error, added func()) (*Result, error) {
	if im == nil || look == nil || every <= 0 {
		return &Result{}, errors.Join(errNoImporter(), errors.New("and a way to look for sources every so often"))
	}
	run := newRun(im, r)
	w := &watch{
		look: look, every: every, failed: run.total.failed, seen: make(map[string]fs.FileInfo), other: make(map[string]bool),
		dirs: &watchedDirs{notices: r.Notices, onUnwatched: r.Untold, stops: make(map[string]func()), paths: make(map[string]bool), changes: make(chan struct{}, 1)},
	}
	defer w.dirs.close()
	for {
		sources, err := w.next()
		if err != nil {
			return run.result(), err
		}
		list := w.changed(sources)
		before := run.total.Entries
		if err := run.all(ctx, list); err != nil && ctx.Err() == nil {
			return run.result(), err
		}
		if added != nil && run.total.Entries > before && ctx.Err() == nil {
			added()
		}
		if !w.wait(ctx) {
			return run.result(), nil
		}
	}
}

// watch is one call of Watch.
type watch struct {
	look  func(*discover.Looked) error
	every time.Duration
	dirs  *watchedDirs

	sources map[string]discover.Source // those found the last time; nil before the first
	looked  time.Time                  // when that was
	cost    time.Duration              // the least time that looking took per source: more was other work on the machine
	again   bool                       // something may have been missed
	seen    map[string]fs.FileInfo     // how the sources looked
	recent  map[string]bool            // the sources that were changed so recently that another change might not show
	other   map[string]bool            // files beside the sources
	failed  map[string]bool            // the sources that could not be imported the last time
	tried   time.Time                  // when those were last tried again
}

// next returns the sources that may have changed: those whose change was reported, or all of them.
func (w *watch) next() ([]discover.Source, error) {
	paths, all := w.dirs.reported()
	for path := range w.recent {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	var known []discover.Source
	for _, path := range slices.Compact(paths) {
		src, ok := w.sources[path]
		if ok {
			known = append(known, src)
		}
		all = all || !ok && !w.other[path]
	}
	if w.sources != nil && !all && !w.again && time.Since(w.looked) < lookSeldom {
		return known, nil
	}
	return w.all(paths)
}

// all looks for the sources. paths are the files that were reported.
func (w *watch) all(paths []string) ([]discover.Source, error) {
	w.looked = time.Now()
	if w.looked.Sub(w.tried) >= lookSeldom { // what was wrong may be over, which no file shows
		w.tried = w.looked
		for path := range w.failed {
			delete(w.seen, path)
		}
	}
	l, again, err := w.dirs.look(w.look)
	if cost := time.Since(w.looked) / time.Duration(len(l.Sources)+1); w.cost == 0 || cost < w.cost {
		w.cost = cost
	}
	if err != nil && w.sources == nil {
		return nil, err
	}
	w.again = again || err != nil
	w.sources = make(map[string]discover.Source, len(l.Sources))
	for _, src := range l.Sources {
		w.sources[src.Path] = src
	}
	for _, path := range paths {
		info, err := os.Lstat(path)
		if _, ok := w.sources[path]; !ok && err == nil && !info.IsDir() {
			w.other[path] = true // a file that is no source does not become one
		}
	}
	return l.Sources, nil
}

// changed returns the files that look different from the last time, and those that were changed
// recently.
func (w *watch) changed(sources []discover.Source) (list []discover.Source) {
	w.recent = make(map[string]bool)
	for _, src := range sources {
		info, err := os.Stat(src.Path)
		if err != nil {
			continue
		}
		before, recent := w.seen[src.Path], time.Since(info.ModTime()).Abs() < recently // a clock may be wrong
		if before == nil || before.Size() != info.Size() || !before.ModTime().Equal(info.ModTime()) || recent {
			list = append(list, src)
		}
		if w.seen[src.Path] = info; recent {
			w.recent[src.Path] = true
		}
	}
	return list
}

// wait waits until there is something to do. It reports false if ctx ends.
func (w *watch) wait(ctx context.Context) bool {
	least := max(w.every, time.Until(w.looked.Add(w.cost*time.Duration(len(w.sources)+1)*lookShare)))
	pause(ctx, least, nil)
	if !w.again && len(w.recent) == 0 && !w.dirs.failed && ctx.Err() == nil {
		pause(ctx, max(lookSeldom, least)-least, w.dirs.changes)
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

// watchedDirs are the directories whose changes the system reports.
type watchedDirs struct {
	notices     vfs.Notifier
	onUnwatched func(error)
	stops       map[string]func() // by directory
	failed      bool              // the system reports nothing
	changes     chan struct{}

	mu    sync.Mutex      // guards what follows
	paths map[string]bool // whose changes were reported
	lost  bool            // a report was lost: all must be asked for again
}

// reported returns the changes since the last call: their paths, or that anything may have changed.
func (d *watchedDirs) reported() (paths []string, all bool) {
	select {
	case <-d.changes:
	default:
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	paths = slices.Collect(maps.Keys(d.paths))
	clear(d.paths)
	return paths, d.failed || d.lost
}

// look finds the sources and follows their directories. A file that appears in a new directory
// before it is followed is not reported, so look looks again; it returns whether it may have to
// look once more.
func (d *watchedDirs) look(find func(*discover.Looked) error) (l discover.Looked, again bool, err error) {
	for range 3 { // new directories may have some in them
		l = discover.Looked{}
		err = find(&l)
		if again = d.follow(l.Dirs); !again {
			break
		}
	}
	return l, again, err
}

// follow follows these directories and no others. It returns whether some of them are new.
func (d *watchedDirs) follow(dirs []string) (fresh bool) {
	if d.notices == nil || d.failed {
		d.failed = true
		return false
	}
	d.mu.Lock()
	lost := d.lost
	d.lost = false
	d.mu.Unlock()
	if lost {
		d.close()
	}
	wanted := make(map[string]bool)
	for _, dir := range newest(dirs, maxWatched) {
		wanted[dir] = true
	}
	for dir, stop := range d.stops {
		if !wanted[dir] {
			stop()
			delete(d.stops, dir)
		}
	}
	for dir := range wanted {
		if d.stops[dir] != nil {
			continue
		}
		stop, err := d.notices.Notify(dir, func(name string) { d.note(dir, name) })
		switch {
		case err == nil:
			d.stops[dir], fresh = stop, true
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
			d.close() // looking finds everything, and other programs may need the watches
			if d.failed = true; d.onUnwatched != nil {
				d.onUnwatched(err)
			}
			return false
		}
	}
	return fresh
}

// note records that a file in a directory has changed, or that any may have.
func (d *watchedDirs) note(dir, name string) {
	d.mu.Lock()
	if name == "" {
		d.lost = true
	} else {
		d.paths[filepath.Join(dir, name)] = true
	}
	d.mu.Unlock()
	select {
	case d.changes <- struct{}{}:
	default: // it will be looked at anyway
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

func (d *watchedDirs) close() {
	for _, stop := range d.stops {
		stop()
	}
	clear(d.stops)
}
