//go:build unix

package file_test

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/storetest"
)

// A pipe in the place of a blob keeps nobody waiting.
func TestPipeIsNoBlob(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	ref := storetest.MustPut(t, st.Blobs(), []byte("content"))
	must(t, os.Remove(blobPath(st, ref)))
	must(t, unix.Mkfifo(blobPath(st, ref), 0o600))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := st.Blobs().Get(t.Context(), ref)
		wantKind(t, err, store.ErrCorrupt)
		for ref := range st.Blobs().All(t.Context()) {
			t.Errorf("%s is listed", ref)
		}
		storetest.MustPut(t, st.Blobs(), []byte("content"))
		if got, err := st.Blobs().Get(t.Context(), ref); string(got) != "content" || err != nil {
			t.Errorf("put again: %q, %v", got, err)
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it waits for somebody to write to the pipe")
	}
}
