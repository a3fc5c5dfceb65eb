//go:build unix

package session_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// restrictedDir tells the test below that it is the child process, and where to
// work.
const restrictedDir = "COPPICE_TEST_RESTRICTED_DIR"

// Files without permission: root may do everything, so the test runs itself
// again as nobody.
func TestBadPermissions(t *testing.T) {
	if dir := os.Getenv(restrictedDir); dir != "" {
		restricted(t, dir)
		return
	}
	dir := mustGet(os.MkdirTemp("", "restricted"))(t) // t.TempDir's parents are closed to others
	t.Cleanup(func() { os.RemoveAll(dir) })
	mustDo(t, os.Chmod(dir, 0o755))
	for _, name := range []string{"locked", "readable", "secret"} {
		s := scribe{mustGet(session.FileManager{}.New(quick(filepath.Join(dir, name))))(t), t}
		s.user("one")
		mustDo(t, s.Close())
		mustDo(t, os.Rename(s.File(), filepath.Join(dir, name, "s.jsonl")))
		mustDo(t, os.RemoveAll(filepath.Join(dir, name, ".coppice")))
	}
	exe := filepath.Join(dir, "test") // where nobody can run it
	mustDo(t, os.WriteFile(exe, readBytes(t, mustGet(os.Executable())(t)), 0o755))
	chmod := map[string]fs.FileMode{"test": 0o755, "locked": 0o555, "locked/s.jsonl": 0o666, "readable": 0o755, "readable/s.jsonl": 0o444, "secret": 0o755, "secret/s.jsonl": 0o000}
	for name, mode := range chmod {
		mustDo(t, os.Chmod(filepath.Join(dir, name), mode))
	}
	cmd := exec.Command(exe, "-test.run=^TestBadPermissions$", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), restrictedDir+"="+dir)
	cmd.Dir = dir
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("as nobody: %v\n%s", err, out)
	}
	t.Logf("as nobody:\n%s", out)
}

// restricted runs as a user who may not write.
func restricted(t *testing.T, dir string) {
	if os.Getuid() == 0 {
		t.Fatal("still root")
	}
	write := func(s *session.Session) error {
		_, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("two")})
		return err
	}
	for _, name := range []string{"locked", "readable"} {
		path := filepath.Join(dir, name, "s.jsonl")
		before := string(readBytes(t, path))
		s := loadScribe(t, path)
		s.sees("user: one")
		if err := write(s.Session); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: append gives %v, want fs.ErrPermission", name, err)
		}
		if err := write(s.Session); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: a second append gives %v, want fs.ErrPermission", name, err)
		}
		s.sees("user: one")
		if string(readBytes(t, path)) != before {
			t.Errorf("%s: the file has changed", name)
		}
	}
	secret := filepath.Join(dir, "secret")
	if _, err := session.Load(filepath.Join(secret, "s.jsonl")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("secret: %v, want fs.ErrPermission", err)
	}
	if _, err := session.LoadOrRecover(filepath.Join(secret, "s.jsonl")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("secret: LoadOrRecover gives %v, want fs.ErrPermission", err)
	}
	infos := mustGet(session.List(secret))(t)
	if len(infos) != 1 || !errors.Is(infos[0].Err, fs.ErrPermission) {
		t.Errorf("secret: listed as %+v", infos)
	}
	if _, err := session.ContinueRecent(secret); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("secret: ContinueRecent gives %v, want fs.ErrPermission among its causes", err)
	}
	if _, err := session.New(filepath.Join(dir, "locked"), ""); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("new in a directory that cannot be written: %v, want fs.ErrPermission", err)
	}
}
