//go:build unix

package index_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// restrictedDir tells the test below that it is the child process, and where to
// work.
const restrictedDir = "COPPICE_TEST_RESTRICTED_DIR"

// Files without permission: root may do everything, so the test runs itself
// again as nobody.
func TestNoPermission(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(restrictedDir); dir != "" {
		restricted(t, dir)
		return
	}
	dir := must[string](t)(os.MkdirTemp("", "restricted")) // t.TempDir's parents are closed to others
	t.Cleanup(func() { os.RemoveAll(dir) })
	sessions := filepath.Join(dir, "sessions")
	for _, id := range []string{"open", "secret"} {
		st := must[*file.Store](t)(file.Open(sessions, nil))
		s := must[*session.Session](t)(session.Create(context.Background(), st, session.Header{ID: id}, nil))
		must[string](t)(s.AppendMessage(session.RoleUser, []session.Content{session.Text("needle")}))
		s.Close()
		st.Close()
	}
	program := must[[]byte](t)(os.ReadFile(must[string](t)(os.Executable())))
	exe := filepath.Join(dir, "test") // where nobody can run it
	err := errors.Join(os.WriteFile(exe, program, 0o755), os.Mkdir(filepath.Join(dir, "free"), 0o777))
	for name, mode := range map[string]fs.FileMode{"": 0o755, "test": 0o755, "free": 0o777, "sessions": 0o755, "sessions/.coppice": 0o755, "sessions/open.jsonl": 0o644, "sessions/secret.jsonl": 0} {
		err = errors.Join(err, os.Chmod(filepath.Join(dir, name), mode))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestNoPermission$", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), restrictedDir+"="+dir)
	cmd.Dir = dir
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	} else if err := os.Chmod(sessions, 0o555); err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("as nobody: %v\n%s", err, out)
	}
}

// restricted runs as a user who may not write beside the sessions, nor read all
// of them.
func restricted(t *testing.T, dir string) {
	if os.Getuid() == 0 {
		t.Fatal("still root")
	}
	ctx := context.Background()
	sessions := filepath.Join(dir, "sessions")
	st := must[*file.Store](t)(file.Open(sessions, nil))
	defer st.Close()
	for _, path := range []string{filepath.Join(sessions, "index.db"), filepath.Join(sessions, "new", "index.db")} {
		if _, err := index.Open(ctx, st, path, nil); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v, want fs.ErrPermission", path, err)
		}
	}
	ix := must[*index.Index](t)(index.Open(ctx, st, filepath.Join(dir, "free", "index.db"), nil))
	defer ix.Close()
	for range 2 { // it is tried each time
		report, err := ix.CatchUp(ctx, nil)
		if err != nil || len(report.Unread) != 1 || report.Unread[0].Name != "secret" || !errors.Is(report.Unread[0].Err, fs.ErrPermission) {
			t.Errorf("catching up: %+v, %v", report, err)
		}
	}
	if hits := search(t, ix, index.SearchOptions{Query: "needle"}); len(hits) != 1 || hits[0].Session != "open" {
		t.Errorf("found %+v", hits)
	}
}
