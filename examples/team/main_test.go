package main

import (
	"context"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
)

// killed names the directory in which the test, started again as another process, dies.
const killed = "COPPICE_TEST_TEAM"

// dying is a model that ends the program when a helper has used a tool.
type dying struct{ offline.Model }

func (m *dying) Stream(ctx context.Context, r *provider.Request) iter.Seq2[provider.Event, error] {
	if r.Entries[len(r.Entries)-1].Message.Role == session.RoleTool {
		os.Exit(3)
	}
	return m.Model.Stream(ctx, r)
}

// The program dies in the middle of a helper's work. The next one goes on with the same
// helpers. The researcher reads and cannot write; the writer writes.
func TestTeam(t *testing.T) {
	t.Parallel()
	const look = `call research {"description":"look","prompt":"call read {\"path\":\"a.txt\"}"}
call research {"description":"meddle","prompt":"call write {\"path\":\"b.txt\",\"content\":\"oak\"}"}`
	if dir := os.Getenv(killed); dir != "" {
		t.Fatal(lead(t.Context(), &dying{}, dir, filepath.Join(dir, "sessions"), look, os.Stdout))
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hazel\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), killed+"="+dir)
	if out, err := child.CombinedOutput(); child.ProcessState == nil || child.ProcessState.ExitCode() != 3 {
		t.Fatalf("the first program: %v\n%s", err, out)
	}
	run := func(prompt string, sessions int) string {
		t.Helper()
		var out strings.Builder
		keep := filepath.Join(dir, "sessions")
		if err := lead(t.Context(), &offline.Model{}, dir, keep, prompt, &out); err != nil {
			t.Fatal(err)
		}
		if all, err := session.List(keep); err != nil || len(all) != sessions {
			t.Errorf("%d sessions, %v, want the lead's and one for each piece of work", len(all), err)
		}
		return out.String()
	}
	if out := run("", 3); !strings.Contains(out, "hazel") || !strings.Contains(out, "no tool write") {
		t.Errorf("the lead says %q", out)
	}
	run(`call write_up {"description":"write","prompt":"call write {\"path\":\"c.txt\",\"content\":\"willow\"}"}`, 4)
	if text, err := os.ReadFile(filepath.Join(dir, "c.txt")); string(text) != "willow" {
		t.Errorf("the writer wrote %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "b.txt")); err == nil {
		t.Error("the researcher wrote a file")
	}
}
