//go:build unix

package index_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
)

// fewFiles tells the test below that it is the child process, and where to work.
const fewFiles = "COPPICE_TEST_FEW_FILES"

// Too few descriptors are not a lack of permission: another place would not help. The
// limit holds for a whole process, so the test runs itself again.
func TestTooFewDescriptors(t *testing.T) {
	dir := os.Getenv(fewFiles)
	if dir == "" {
		cmd := exec.Command(must[string](t)(os.Executable()), "-test.run=^TestTooFewDescriptors$", "-test.count=1")
		cmd.Env = append(os.Environ(), fewFiles+"="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	st := must[*file.Store](t)(file.Open(dir, nil))
	defer st.Close()
	next := must[*os.File](t)(os.Open(dir)) // whose number is the next that is free
	lowest := int(next.Fd())
	next.Close()
	failed := 0
	for n := range 12 {
		var limit unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		few := limit
		few.Cur = uint64(lowest + n)
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
			t.Fatal(err)
		}
		ix, err := index.Open(t.Context(), st, filepath.Join(dir, "index.db"), nil)
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		if err == nil {
			ix.Close()
			continue
		}
		if failed++; !vfs.NoDescriptors(err) || errors.Is(err, fs.ErrPermission) {
			t.Errorf("with %d descriptors: %v", n, err)
		}
	}
	if failed == 0 {
		t.Error("there were always enough")
	}
}
