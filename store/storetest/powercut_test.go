package storetest_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// twin is a store that knows another on the same disk, as another process has it.
type twin struct {
	store.Store
	other store.Store
}

// cuttable returns a store of files on a disk in memory, as change leaves it, and
// the function that cuts the power in the worst way.
func cuttable(sync file.Sync, change func(*hooked, *parts)) func(t *testing.T) (store.Store, func() store.Store) {
	return func(t *testing.T) (store.Store, func() store.Store) {
		disk := vfstest.NewMemory()
		open := func(fs vfs.FS) *file.Store {
			st, err := file.Open("/d", &file.Options{FS: fs, Sync: sync})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { st.Close() })
			return st
		}
		st := open(disk)
		p := &parts{Store: twin{st, open(disk)}, create: st.Create, open: st.Open, list: st.List, remove: st.Remove, blobs: st.Blobs()}
		p.wrapLog = func(_ string, log store.Log) store.Log {
			l := hook(log)
			change(l, p)
			return l
		}
		return p, func() store.Store { return open(disk.CrashClone(nil, vfstest.LoseAll)) }
	}
}

func TestPowerCut(t *testing.T) {
	t.Parallel()
	for name, sync := range map[string]file.Sync{"always": file.Always, "every hour": file.Every(time.Hour), "never": file.Never} {
		t.Run(name, func(t *testing.T) { storetest.RunPowerCut(t, cuttable(sync, func(*hooked, *parts) {})) })
	}
}

// brokenFlush are stores that do not sync by themselves and whose Flush is wrong
// in one way each, under the check that must notice and a word on what is wrong.
var brokenFlush = map[string]func(*hooked, *parts){
	"Lines does nothing":   func(l *hooked, _ *parts) { l.flush = func(context.Context) error { return nil } },
	"Created does nothing": func(l *hooked, _ *parts) { l.flush = func(context.Context) error { return nil } },
	"Reopened another handle": func(l *hooked, p *parts) {
		l.flush = func(ctx context.Context) error {
			other, err := p.Store.Open(ctx, "a")
			if err != nil {
				return err
			}
			defer other.Close()
			return other.Flush(ctx)
		}
	},
	"Blobs are forgotten": func(_ *hooked, p *parts) { p.blobs = p.Store.(twin).other.Blobs() },
	"Rounds only the first": func(l *hooked, _ *parts) {
		inner, done := l.flush, false
		l.flush = func(ctx context.Context) error {
			if done {
				return nil
			}
			done = true
			return inner(ctx)
		}
	},
}

// TestBrokenFlush is what the children of TestPowerCutCanFail run.
func TestBrokenFlush(t *testing.T) {
	if change := brokenFlush[os.Getenv(brokenEnv)]; change != nil {
		storetest.RunPowerCut(t, cuttable(file.Never, change))
	}
}

func TestPowerCutCanFail(t *testing.T) {
	t.Parallel()
	for what := range brokenFlush {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			wantFails(t, "TestBrokenFlush", what)
		})
	}
}
