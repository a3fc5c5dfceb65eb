package file_test

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

// An empty file beside an archive, as touch makes it, does not hide the archive from
// anybody, and whoever changes the log does not take the archive for a left-over.
func TestEmptyFileBesideAnArchive(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for what, change := range map[string]func(*testing.T, *file.Store, store.Log){
		"read": func(*testing.T, *file.Store, store.Log) {},
		"append": func(t *testing.T, st *file.Store, _ store.Log) {
			log, err := st.Open(ctx, "a")
			must(t, err)
			defer log.Close()
			end, err := log.End(ctx)
			must(t, err)
			_, err = log.Append(ctx, end, []byte(`{"n":3}`))
			must(t, err)
		},
		"append to an open log": func(t *testing.T, _ *file.Store, log store.Log) {
			end, err := log.End(ctx)
			must(t, err)
			_, err = log.Append(ctx, end, []byte(`{"n":3}`))
			must(t, err)
		},
		"archive":   func(t *testing.T, st *file.Store, _ store.Log) { must(t, st.Archive(ctx, "a")) },
		"unarchive": func(t *testing.T, st *file.Store, _ store.Log) { must(t, st.Unarchive(ctx, "a")) },
		"remove": func(t *testing.T, st *file.Store, _ store.Log) {
			must(t, st.Remove(ctx, "a"))
			if _, err := st.Open(ctx, "a"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the removed log: %v", err)
			}
			must(t, st.Trash().Restore(ctx, mustTrash(t, st)[0].ID))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			st := open(t, &file.Options{Sync: file.Never})
			before := mustCreate(t, st, "a", `{"n":1}`, `{"n":2}`)
			must(t, st.Archive(ctx, "a"))
			must(t, os.WriteFile(st.Path("a"), nil, 0o600))

			for stat, err := range st.List(ctx) {
				if err != nil || !stat.Archived || stat.Size == 0 {
					t.Errorf("listed as %+v, %v", stat, err)
				}
			}
			for fault, err := range st.InspectLog(ctx, "a") {
				t.Errorf("it has a fault: %+v, %v", fault, err)
			}
			change(t, st, before)
			log, err := st.Open(ctx, "a")
			must(t, err)
			defer log.Close()
			if got := linesOf(t, log); len(got) < 2 || !slices.Equal(got[:2], []string{`{"n":1}`, `{"n":2}`}) {
				t.Errorf("the log has %q", got)
			}
		})
	}
}
