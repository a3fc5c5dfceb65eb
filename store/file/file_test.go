package file_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// open returns a store in a directory of the test's.
func open(t *testing.T, o *file.Options) *file.Store {
	t.Helper()
	st, err := file.Open(filepath.Join(t.TempDir(), "sessions"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]func() *file.Options{
		"always": func() *file.Options { return nil },
		"never":  func() *file.Options { return &file.Options{Sync: file.Never, MaxLine: 8 << 20} },
		"every":  func() *file.Options { return &file.Options{Sync: file.Every(1e6), MaxLine: 8 << 20} },
		"memory": func() *file.Options { return &file.Options{FS: vfstest.NewMemory(), MaxLine: 8 << 20} },
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) store.Store { return open(t, options()) })
			storetest.RunTorn(t, func(t *testing.T) storetest.Torn {
				o := options()
				st := open(t, o)
				return storetest.Torn{Store: st, Leave: func(name, tail string) error {
					var disk vfs.FS = vfs.OS{}
					if o != nil && o.FS != nil {
						disk = o.FS
					}
					f, err := disk.OpenFile(st.Path(name), os.O_RDWR|os.O_APPEND, 0)
					if err == nil {
						_, err = f.Write([]byte(tail))
						err = errors.Join(err, f.Close())
					}
					return err
				}}
			})
		})
	}
}
