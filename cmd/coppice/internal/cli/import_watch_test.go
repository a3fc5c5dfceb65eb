package cli

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestImportWatch runs the real program: it imports what is there, then what is
// appended, and ends in order when it is interrupted.
func TestImportWatch(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // there is no way to interrupt another process politely
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "projects", "11111111-4d57-4a54-9be1-3f6b1b2f6f10.jsonl")
	appendLine := func(n int) {
		t.Helper()
		parent := "null"
		if n > 1 {
			parent = fmt.Sprintf(`"aaaaaaaa-0000-4000-8000-%012d"`, n-1)
		}
		line := fmt.Sprintf(`{"parentUuid":%s,"cwd":"/w","sessionId":"s","type":"user","message":{"role":"user","content":"line %d"},"uuid":"aaaaaaaa-0000-4000-8000-%012d","timestamp":"2026-01-02T03:04:05.000Z"}`+"\n", parent, n, n)
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(line[:50]); err != nil { // a reader may see half of it
			t.Fatal(err)
		}
		if _, err := f.WriteString(line[50:]); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	appendLine(1)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "import", "--watch", "--interval", "10ms", filepath.Dir(path))
	cmd.Args[0] = "coppice" // testscript's main runs the command of this name
	cmd.Env = append(os.Environ(), "HOME="+dir, "COPPICE_HOME="+filepath.Join(dir, "sessions"), "NO_COLOR=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var talk strings.Builder
	cmd.Stderr = &talk
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
	defer stuck.Stop()
	lines := bufio.NewScanner(out)
	for n := 1; n <= 4; n++ {
		if !lines.Scan() {
			t.Fatalf("it ended after %d lines: %s", n-1, talk.String())
		}
		if !strings.Contains(lines.Text(), "\tclaude-code\t1\t") {
			t.Errorf("line %d is %q", n, lines.Text())
		}
		if n < 4 {
			appendLine(n + 1)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if lines.Scan() {
		t.Errorf("it printed more: %q", lines.Text())
	}
	_ = cmd.Wait() // it is an error to be interrupted
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || !strings.Contains(talk.String(), "imported 4 entries into 1 session from 1 file\n") {
		t.Errorf("it ended with %d and said %s", code, talk.String())
	}
}

// TestInterruptedImportSaysWhatItDid interrupts the real program while it waits
// for one of its sources. What it has imported by then is counted.
func TestInterruptedImportSaysWhatItDid(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // there is no way to interrupt another process politely
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "a.jsonl")
	line := `{"parentUuid":null,"cwd":"/w","sessionId":"s","type":"user","message":{"role":"user","content":"hello"},"uuid":"aaaaaaaa-0000-4000-8000-000000000001","timestamp":"2026-01-02T03:04:05.000Z"}` + "\n"
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "import", "--json", path, "-")
	cmd.Args[0] = "coppice" // testscript's main runs the command of this name
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2", "HOME="+dir, "COPPICE_HOME="+filepath.Join(dir, "sessions"), "NO_COLOR=1")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var talk strings.Builder
	cmd.Stderr = &talk
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
	defer stuck.Stop()
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.Contains(lines.Text(), `"new":1`) {
		t.Fatalf("it printed %q and said %s", lines.Text(), talk.String())
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the pipe stays open
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || !strings.Contains(talk.String(), "interrupted; imported 1 entry into 1 session from 1 file") {
		t.Errorf("it ended with %d and said %s", code, talk.String())
	}
}
