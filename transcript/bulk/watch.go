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
	// recently is how long ago a file may have changed for another change not to show.
	recently = 3 * time.Second
	// lookSeldom is how often files are looked at if the system reports changes.
	lookSeldom = time.Minute
	// lookShare bounds what looking takes of a processor: one part in so many.
	lookShare = 20
	// maxTold is in how many directories a watch wants to be told of changes. A user may have few
	// such wishes in all, and other programs have some, too.
	maxTold = 2000
)

// Watch imports files as they grow, until the context ends, which is not an error. It calls
// look for the sources first, and then when something appears in their directories, and from time
// to time, so that it finds whatever was not told. A file that changes is imported without looking
// for others, though no sooner than every after the last time. If nobody tells of changes, Watch
// calls look every so often. With very many files, it waits longer, so that looking takes little of
// a processor. An error of look counts only the first time: later, a directory may be gone for a
// moment. After each round that added something, Watch calls added if it is set. The result says
// what was done, even when there is an error.
func Watch(ctx context.Context, im *transcript.Importer, r Request, every time.Duration, look func(*discover.Looked) error, added func()) (*Result, error) {
	if im == nil || look == nil || every <= 0 {
		return &Result{}, errors.Join(errNoImporter(), errors.New("and a way to look for sources every so often"))
	}
	run := newRun(im, r)
	w := &watch{
		look: look, every: every, seen: make(map[string]fs.FileInfo), other: make(map[string]bool),
		told: &directories{notices: r.Notices, untold: r.Untold, stops: make(map[string]func()), paths: make(map[string]bool), news: make(chan struct{}, 1)},
	}
	defer w.told.close()
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
	told  *directories

	sources map[string]discover.Source // that were found the last time; nil if there was none
	looked  time.Time                  // when that was
	cost    time.Duration              // the least time that looking took for a source: more was not our work
	again   bool                       // something may have been missed
	seen    map[string]fs.FileInfo     // how the sources looked
	recent  map[string]bool            // the sources that were changed so recently that another change might not show
	other   map[string]bool            // files beside the sources
}

// next returns the sources that may have changed: those that were told of, or all of them.
func (w *watch) next() ([]discover.Source, error) {
	paths, all := w.told.take()
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

// all looks for the sources. paths are what was told of.
func (w *watch) all(paths []string) ([]discover.Source, error) {
	w.looked = time.Now()
	l, again, err := w.told.look(w.look)
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
			w.other[path] = true // what is not a source will not be one
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
		before, recent := w.seen[src.Path], time.Since(info.ModTime()) < recently
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
	if !w.again && len(w.recent) == 0 && !w.told.failed && ctx.Err() == nil {
		pause(ctx, max(lookSeldom, least)-least, w.told.news)
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

// directories are those in which changes are told of.
type directories struct {
	notices vfs.Notifier
	untold  func(error)
	stops   map[string]func() // by directory
	failed  bool              // nothing is told
	news    chan struct{}

	mu    sync.Mutex      // guards what follows
	paths map[string]bool // that were told of
	lost  bool            // something was not told: all must be asked for again
}

// take returns what was told since the last time: paths, or that anything may have changed.
func (d *directories) take() (paths []string, all bool) {
	select {
	case <-d.news:
	default:
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	paths = slices.Collect(maps.Keys(d.paths))
	clear(d.paths)
	return paths, d.failed || d.lost
}

// look finds the sources, and asks to be told of changes in their directories. A file that appears
// in a new directory before that is not told, so it looks there again; it reports whether that may
// still be needed.
func (d *directories) look(find func(*discover.Looked) error) (l discover.Looked, again bool, err error) {
	for range 3 { // new directories may have some in them
		l = discover.Looked{}
		err = find(&l)
		if again = d.follow(l.Dirs); !again {
			break
		}
	}
	return l, again, err
}

// follow asks to be told of changes in directories, and in no others. It reports whether there are
// some that it did not follow before.
func (d *directories) follow(dirs []string) (fresh bool) {
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
		if d.stops[dir] != nil {
			continue
		}
		stop, err := d.notices.Notify(dir, func(name string) { d.tell(dir, name) })
		switch {
		case err == nil:
			d.stops[dir], fresh = stop, true
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
			d.close() // looking finds everything, and others may need what tells of changes
			if d.failed = true; d.untold != nil {
				d.untold(err)
			}
			return false
		}
	}
	return fresh
}

// tell notes that a file in a directory has changed, or that any may have.
func (d *directories) tell(dir, name string) {
	d.mu.Lock()
	if name == "" {
		d.lost = true
	} else {
		d.paths[filepath.Join(dir, name)] = true
	}
	d.mu.Unlock()
	select {
	case d.news <- struct{}{}:
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

func (d *directories) close() {
	for _, stop := range d.stops {
		stop()
	}
	clear(d.stops)
}
