package bulk

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/discover"
)

// Watch imports files as they grow, until the context ends, which is not an error. It calls
// list for the sources again and again, so that it finds new files too. An error of list
// counts only the first time: later, a directory may be gone for a moment. After each round
// that added something, Watch calls added if it is set. The result says what was done, even
// when there is an error.
func Watch(ctx context.Context, im *transcript.Importer, r Request, every time.Duration, list func() ([]discover.Source, error), added func()) (*Result, error) {
	if im == nil || list == nil || every <= 0 {
		return &Result{}, errors.Join(errNoImporter(), errors.New("and a list of sources to ask for every so often"))
	}
	run := newRun(im, r)
	seen := make(map[string]fs.FileInfo)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for first := true; ; first = false {
		sources, err := list()
		if err != nil && first {
			return run.result(), err
		}
		before := run.total.Entries
		if err := run.all(ctx, changed(sources, seen)); err != nil && ctx.Err() == nil {
			return run.result(), err
		}
		if added != nil && run.total.Entries > before && ctx.Err() == nil {
			added()
		}
		select {
		case <-ctx.Done():
			return run.result(), nil
		case <-tick.C:
		}
	}
}

// changed returns the files that look different from the last time, and those
// that were changed so recently that another change might not show.
func changed(sources []discover.Source, seen map[string]fs.FileInfo) []discover.Source {
	const recent = 3 * time.Second
	var list []discover.Source
	for _, src := range sources {
		info, err := os.Stat(src.Path)
		if err != nil {
			continue
		}
		before := seen[src.Path]
		if before == nil || before.Size() != info.Size() || !before.ModTime().Equal(info.ModTime()) || time.Since(info.ModTime()) < recent {
			list = append(list, src)
		}
		seen[src.Path] = info
	}
	return list
}
