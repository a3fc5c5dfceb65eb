package all_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store/vfs/notify"
	"github.com/coppice-dev/coppice/transcript/bulk"
	"github.com/coppice-dev/coppice/transcript/discover"
)

// TestBulkWatchIsToldOfNewFiles: files that appear in a directory that was empty, and in one that
// is new, are imported long before everything is looked at again. A file that only grows is
// imported without looking for others.
func TestBulkWatchIsToldOfNewFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(n int, parts ...string) string {
		return filepath.Join(append(append([]string{dir}, parts...), id(n)+".jsonl")...)
	}
	write(t, path(1, "old"), talk(id(1), 1))
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	steps := []func(){
		func() { write(t, path(2, "empty"), talk(id(2), 1)) },
		func() {
			if err := os.MkdirAll(filepath.Join(dir, "new", "below"), 0o700); err != nil {
				t.Error(err)
			}
			time.AfterFunc(200*time.Millisecond, func() { write(t, path(3, "new", "below"), talk(id(3), 1)) }) // as somebody who thinks before the first word
		},
		func() { write(t, path(3, "new", "below"), talk(id(3), 2)) },
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	looked, before, grew := 0, 0, 0
	r, err := bulk.Watch(ctx, importer(), bulk.Request{Notices: notify.New()}, 10*time.Millisecond,
		func(l *discover.Looked) error { looked++; return l.In(dir) },
		func() {
			if len(steps) == 0 {
				grew = looked - before
				cancel()
				return
			}
			before = looked
			steps[0]()
			steps = steps[1:]
		})
	if err != nil || r.Entries != 4 || r.Files != 3 || grew > 0 {
		t.Errorf("got %+v, %v; want four entries of three files; it looked %d times because one grew", r.Total, err, grew)
	}
}
