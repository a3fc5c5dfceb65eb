//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that cannot be read costs the older backup nothing. A home that may only be
// read can be backed up.
func TestBackupWithoutPermission(t *testing.T) {
	t.Parallel()
	f := newForbidden(t)
	readable := f.store("readable", 0o755, 0o644)
	to := filepath.Join(f.dir, "home", "b.tar.zst")
	if code, out := f.run(readable, "backup", to); code != exitOK || !strings.Contains(out, "backed up 1 session ") {
		t.Fatalf("a home that may only be read: %d\n%s", code, out)
	}
	was, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	closed := f.store("closed", 0o700, 0)
	code, out := f.run(closed, "backup", to)
	if code != exitPartial || !strings.Contains(out, "warning: x.jsonl cannot be read: ") || !strings.Contains(out, "b.tar.zst was left as it is; coppice backup --partial ") {
		t.Errorf("a file that cannot be read: %d\n%s", code, out)
	}
	if is, err := os.ReadFile(to); err != nil || string(is) != string(was) {
		t.Errorf("the older backup has changed: %v", err)
	}
	if code, out := f.run(closed, "backup", "--partial", to); code != exitPartial || !strings.Contains(out, "backed up 0 sessions") {
		t.Errorf("--partial: %d\n%s", code, out)
	}
	if code, out := f.run(closed, "restore", to, "--dir", "/nowhere/x"); code != exitError || !strings.Contains(out, "permission denied") {
		t.Errorf("restoring where one may not: %d\n%s", code, out)
	}
}
