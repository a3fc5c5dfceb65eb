package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestMain is the program itself for the processes that tests start.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "crash")
	if err != nil {
		return report(err)
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "coppice")
	out, err := exec.Command("go", "build", "-o", program, "../../cmd/coppice").CombinedOutput()
	if err != nil {
		return report(fmt.Errorf("go build: %w\n%s", err, out))
	}
	os.Setenv(programEnv, program)
	return m.Run()
}

// TestCheck shows, without a crash, that the check passes what the work leaves,
// and notices when more was acknowledged than is there.
func TestCheck(t *testing.T) {
	ctx, dir, record := t.Context(), t.TempDir(), t.TempDir()
	w, err := newWorld(dir, "session", record)
	if err != nil {
		t.Fatal(err)
	}
	// Processes of their own take too long for a test of every commit.
	all := operations
	t.Cleanup(func() { operations = all })
	operations = nil
	for _, op := range all {
		if op.name[:3] != "cli" {
			operations = append(operations, op)
		}
	}
	for w.step < 60 {
		if err := w.next(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	if err := check(ctx, dir, record, w.step-1); err != nil {
		t.Errorf("all steps were done: %v", err)
	}
	if err := check(ctx, t.TempDir(), record, -1); err != nil {
		t.Errorf("nothing acknowledged, nothing there: %v", err)
	}
	if err := check(ctx, t.TempDir(), record, w.step-1); err == nil {
		t.Error("acknowledged sessions are missing, and the check does not notice")
	}
	if _, err := newWorld(dir, "other", record); err == nil {
		t.Error("an unknown mode was accepted")
	}
	logs, err := filepath.Glob(filepath.Join(sessionsIn(dir), "*.jsonl"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	if err := os.Truncate(logs[0], 10); err != nil {
		t.Fatal(err)
	}
	if err := check(ctx, dir, record, w.step-1); err == nil {
		t.Error("a session was truncated, and the check does not notice")
	}
}
