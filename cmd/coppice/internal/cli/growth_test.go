package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/bench/shapes"
)

// Each of these takes milliseconds where the work is in proportion to the input.
// Where each entry looks at all others, the test's time limit says so.

// What branches off a branch that branches off a branch is drawn, in lines that are
// not longer and longer.
func TestTreeOfBranchesOfBranches(t *testing.T) {
	t.Parallel()
	const n = 5000
	var out bytes.Buffer
	if code := onShape(t, "branches of branches", n, &out, "tree", shapes.ID, "--fold", "0"); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	if lines := strings.Count(out.String(), "\n"); lines != 2*n {
		t.Errorf("%d lines, want %d", lines, 2*n)
	}
	if most := 2 * n * 1000; out.Len() > most {
		t.Errorf("the tree has %d bytes, want at most %d", out.Len(), most)
	}
}

// onShape runs a command on a session of an extreme shape.
func onShape(t *testing.T, name string, n int, out io.Writer, args ...string) int {
	t.Helper()
	dir := t.TempDir()
	for _, shape := range shapes.All {
		if shape.Name != name {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, shapes.ID+".jsonl"), []byte(shape.Lines(n)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	getenv := func(name string) string { return map[string]string{"COPPICE_HOME": dir, "HOME": dir}[name] }
	a := &app{talk: newTalk(out, io.Discard, getenv), stdin: strings.NewReader(""), getenv: getenv}
	return a.run(context.Background(), args)
}
