//go:build unix

package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/coppice-dev/coppice/internal/needs"
)

// What root does to somebody's sessions leaves them theirs.
func TestRootLeavesTheOwnerIn(t *testing.T) {
	needs.This(t, needs.Root)
	if os.Geteuid() != 0 {
		t.Skip("only root can own what is another's")
	}
	const nobody = 65534
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	dir := filepath.Join(home, "s")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		name := filepath.Join(dir, string(rune('x'+i))+".jsonl")
		if err := os.WriteFile(name, someLines(t), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	chownAll(t, home, nobody)
	for _, args := range [][]string{
		{"ls"},
		{"append", "x", "--role", "user", "--", "export GITHUB_TOKEN=ghp_" + "R7x2Kd9QmZ4vTb1LsW8nYc5JpHf3Ge6Ua0Xi"},
		{"redact", "--all", "--apply"},
		{"new"},
		{"fork", "x"},
		{"archive", "x"},
		{"unarchive", "x"},
		{"rm", "y"},
		{"index", "rebuild"},
		{"config", "set", "max_sessions", "9"},
		{"export", "x", "--to", "claude-code"},
		{"export", "x", "-o", filepath.Join(home, "x.html")},
	} {
		if out, err := program(dir, args...); err != nil {
			t.Fatalf("%v: %s, %v", args, out, err)
		}
	}
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Sys().(*syscall.Stat_t).Uid != nobody {
			t.Errorf("%s is root's", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func chownAll(t *testing.T, dir string, uid int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Chown(path, uid, uid)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
