package keyed_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A bot that runs while somebody redacts its sessions shows what is left, and
// goes on.
func TestSessionRewrittenUnderAManager(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := inDir(t, dir)
	m.AddMessage(key, "user", "the word is xyzzy")
	m.AddMessage(key, "assistant", "thank you")
	rewrite(t, dir, "xyzzy", "[gone]")
	m.sees("the word is [gone]", "thank you")
	rewrite(t, dir, "thank you", "noted")
	m.AddMessage(key, "user", "go on")
	m.save(key)
	want := []string{"the word is [gone]", "noted", "go on"}
	m.sees(want...)
	inDir(t, dir).sees(want...)
}

// rewrite exchanges the only log of a directory as redaction does.
func rewrite(t *testing.T, dir, old, new string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	data, err := os.ReadFile(logs[0])
	if err != nil || !bytes.Contains(data, []byte(old)) {
		t.Fatalf("%q is not in %q (%v)", old, data, err)
	}
	if err := os.WriteFile(logs[0]+".new", bytes.ReplaceAll(data, []byte(old), []byte(new)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(logs[0]+".new", logs[0]); err != nil {
		t.Fatal(err)
	}
}
