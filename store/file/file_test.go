package file_test

import (
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs"
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
	for name, options := range map[string]func() *file.Options{
		"always": func() *file.Options { return nil },
		"never":  func() *file.Options { return &file.Options{Sync: file.Never} },
		"every":  func() *file.Options { return &file.Options{Sync: file.Every(1e6)} },
		"memory": func() *file.Options { return &file.Options{FS: vfs.NewMemory()} },
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) store.Store { return open(t, options()) })
		})
	}
}
