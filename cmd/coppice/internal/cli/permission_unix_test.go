//go:build unix

package cli

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// forbidden is a place where the program runs as a user who may not do
// everything. Root may, so root runs it as nobody.
type forbidden struct {
	t        *testing.T
	dir, exe string
}

func newForbidden(t *testing.T) *forbidden {
	t.Helper()
	dir, err := os.MkdirTemp("", "forbidden") // t.TempDir's parents are closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := &forbidden{t, dir, filepath.Join(dir, "coppice")} // whose name makes it the program
	// Other tests start programs meanwhile. Had we written the file ourselves, one of
	// those could hold it open for writing still, and then nobody can run it.
	if out, err := exec.Command("cp", self, f.exe).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	home := filepath.Join(dir, "home")
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(f.exe, 0o755), os.Mkdir(home, 0o777), os.Chmod(home, 0o777)); err != nil {
		t.Fatal(err)
	}
	return f
}

// store makes a directory with a session x. If nobody may read the file, it is
// at least in the user's own directory.
func (f *forbidden) store(name string, dirMode, fileMode fs.FileMode) string {
	f.t.Helper()
	dir := filepath.Join(f.dir, name)
	path := filepath.Join(dir, "x.jsonl")
	err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(path, someLines(f.t), 0o600), os.Chmod(path, fileMode), os.Chmod(dir, dirMode))
	if os.Getuid() == 0 && fileMode == 0 {
		err = errors.Join(err, os.Chown(dir, 65534, 65534))
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return dir
}

// run runs the program and returns its exit code and what it printed.
func (f *forbidden) run(dir string, args ...string) (int, string) {
	f.t.Helper()
	cmd := exec.Command(f.exe, args...)
	home := filepath.Join(f.dir, "home")
	cmd.Env = []string{"HOME=" + home, "COPPICE_HOME=" + dir, "NO_COLOR=1", "PATH=" + os.Getenv("PATH")}
	cmd.Env = append(cmd.Env, "GOCOVERDIR="+home) // or a program that counts its coverage complains
	cmd.Dir = f.dir
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		f.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// A file that may not be read is said to be so, by every command, in one line
// that names it.
func TestUnreadableSession(t *testing.T) {
	t.Parallel()
	f := newForbidden(t)
	dir := f.store("secret", 0o700, 0)
	for _, command := range []string{
		"show x", "tree x", "context x", "export x", "follow x", "append x --role user hello", "branch x y", "fork x",
		"merge x y --summary s", "diff x y z", "compact x --summary s", "revert x", "label x y z", "rename x y", "tag x +y", "tag x",
		"pin x", "unpin x", "rm x", "archive x", "repair x",
	} {
		code, out := f.run(dir, strings.Fields(command)...)
		if code != exitError || strings.Count(out, "permission denied") != 1 || !strings.Contains(out, "x.jsonl") || strings.Count(out, "\n") > 2 {
			t.Errorf("%s: exit code %d: %s", command, code, out)
		}
	}
	if code, out := f.run(dir, "fsck"); code != exitCorrupt || !strings.Contains(out, "unreadable") {
		t.Errorf("fsck: exit code %d: %s", code, out)
	}
	for _, command := range []string{"ls", "search hello", "stats", "index status"} {
		want := exitOK
		if command == "search hello" { // which finds nothing
			want = exitError
		}
		if code, out := f.run(dir, strings.Fields(command)...); code != want || !strings.Contains(out, "permission denied") {
			t.Errorf("%s: exit code %d: %s", command, code, out)
		}
	}
}

// Once a store has an index, those who may not write to it can still read it.
func TestReadOnlyStoreWithAnIndex(t *testing.T) {
	t.Parallel()
	f := newForbidden(t)
	dir := f.store("indexed", 0o700, 0o600)
	own := exec.Command(f.exe, "ls")
	own.Env = []string{"HOME=" + t.TempDir(), "COPPICE_HOME=" + dir, "GOCOVERDIR=" + t.TempDir()}
	if out, err := own.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, ".coppice", "index.db")); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o555)
		}
		return errors.Join(err, os.Chmod(path, 0o444))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, ".coppice"), 0o700); _ = os.Chmod(dir, 0o700) })
	for _, command := range []string{"ls", "search garden", "stats", "show x", "show last"} {
		if code, out := f.run(dir, strings.Fields(command)...); code != exitOK || strings.Contains(out, "warning") {
			t.Errorf("%s: exit code %d: %s", command, code, out)
		}
	}
}

// In a directory in which one may only read, what only reads works.
func TestReadOnlyStore(t *testing.T) {
	t.Parallel()
	f := newForbidden(t)
	dir := f.store("locked", 0o555, 0o444)
	for _, command := range []string{
		"show x", "tree x", "context x", "export x", "ls", "search garden", "stats", "fsck x", "tag x", "index status",
	} {
		if code, out := f.run(dir, strings.Fields(command)...); code != exitOK && code != exitCorrupt {
			t.Errorf("%s: exit code %d: %s", command, code, out)
		}
	}
	for _, command := range []string{
		"new", "append x --role user hello", "fork x", "rename x y", "tag x +y", "pin x", "rm x", "archive x", "demo " + dir + " --force",
	} {
		code, out := f.run(dir, strings.Fields(command)...)
		if code != exitError || strings.Count(out, "permission denied") != 1 || !strings.Contains(out, dir) || strings.Count(out, "\n") > 2 {
			t.Errorf("%s: exit code %d: %s", command, code, out)
		}
	}
}

// An import says once that the store cannot be written, and not of every file that it
// could not be read.
func TestImportIntoReadOnlyStore(t *testing.T) {
	t.Parallel()
	f := newForbidden(t)
	dir, in := f.store("locked", 0o555, 0o444), filepath.Join(f.dir, "in")
	err := os.Mkdir(in, 0o755)
	for _, name := range []string{"a.json", "b.json", "c.json"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(in, name), []byte(`{"model":"m","messages":[{"role":"user","content":"hello"}]}`), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	code, out := f.run(dir, "import", in)
	if code != exitError || strings.Count(out, "permission denied") != 1 || !strings.Contains(out, dir) || strings.Contains(out, "skipped") || strings.Count(out, "\n") > 3 {
		t.Errorf("exit code %d: %s", code, out)
	}
	if code, out := f.run(dir, "import", in, "--dry-run"); code != exitOK || !strings.Contains(out, "would import") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// A directory that one may not even look into.
func TestClosedStore(t *testing.T) {
	t.Parallel()
	f := newForbidden(t)
	dir := f.store("closed", 0o700, 0o644)
	if os.Getuid() != 0 {
		if err := os.Chmod(dir, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(dir, 0o700) })
	}
	for _, command := range []string{"ls", "show x", "fsck", "search hello", "stats", "trash ls", "new", "follow --all", "retain --max-count 1"} {
		code, out := f.run(dir, strings.Fields(command)...)
		if code != exitError || strings.Count(out, "permission denied") != 1 || !strings.Contains(out, dir) || strings.Count(out, "\n") > 2 {
			t.Errorf("%s: exit code %d: %s", command, code, out)
		}
	}
}

// What an import may not read or write it names, and does not count.
func TestForbiddenImport(t *testing.T) {
	t.Parallel()
	f := newForbidden(t)
	request := []byte(`{"model":"m","messages":[{"role":"user","content":"hello"}]}`)
	in := filepath.Join(f.dir, "in")
	err := errors.Join(
		os.Mkdir(in, 0o755), os.WriteFile(filepath.Join(in, "open.json"), request, 0o644),
		os.WriteFile(filepath.Join(in, "secret.json"), request, 0), os.Mkdir(filepath.Join(in, "closed"), 0),
		os.Chmod(in, 0o755), os.Chmod(filepath.Join(in, "open.json"), 0o644),
	)
	if err != nil {
		t.Fatal(err)
	}
	code, out := f.run(filepath.Join(f.dir, "home", "sessions"), "import", in)
	for _, want := range []string{"secret.json: permission denied", "closed: permission denied", "imported 2 entries into 1 session from 3 files; 2 skipped"} {
		if code != exitPartial || !strings.Contains(out, want) {
			t.Errorf("exit code %d, no %q in %s", code, want, out)
		}
	}
	code, out = f.run(f.store("locked", 0o555, 0o444), "import", filepath.Join(in, "open.json"))
	if code != exitError || !strings.Contains(out, "permission denied") {
		t.Errorf("exit code %d: %s", code, out)
	}
}
