package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/provider/offline"
)

// The agent reads without asking, writes what was approved, leaves what was not, and the
// next start knows the conversation.
func TestCoder(t *testing.T) {
	t.Parallel()
	dir, keep := t.TempDir(), filepath.Join(t.TempDir(), "sessions")
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hazel\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(prompt, answers string) string {
		t.Helper()
		var out strings.Builder
		if err := code(t.Context(), &offline.Model{}, dir, keep, prompt, strings.NewReader(answers), &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if out := run(`call read {"path":"a.txt"}`, ""); strings.Contains(out, "run it?") || !strings.Contains(out, "hazel") {
		t.Errorf("read gave %q", out)
	}
	if out := run(`call write {"path":"b.txt","content":"willow"}`, "n\n"); !strings.Contains(out, "run it?") {
		t.Errorf("nobody was asked: %q", out)
	}
	if _, err := os.Stat(filepath.Join(dir, "b.txt")); err == nil {
		t.Error("the file was written although the person said no")
	}
	run(`call write {"path":"b.txt","content":"willow"}`, "y\n")
	if text, err := os.ReadFile(filepath.Join(dir, "b.txt")); string(text) != "willow" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if names, err := filepath.Glob(filepath.Join(keep, "*.jsonl")); len(names) != 1 {
		t.Errorf("%d sessions, %v, want one that goes on", len(names), err)
	}
}
