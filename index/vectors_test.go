package index_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coppice-dev/coppice/index"
)

// treeVector is what a vector of package session says of a tree.
type treeVector struct {
	Error string   `json:"error"`
	Leaf  string   `json:"leaf"`
	Path  []string `json:"path"`
	Name  string   `json:"name"`
	Tags  []string `json:"tags"`
	Tree  []struct {
		ID     string  `json:"id"`
		Parent *string `json:"parent"`
		Type   string  `json:"type"`
	} `json:"tree"`
}

// The index reads a log as it grows and keeps the tree in tables, so it has rules
// of its own. They must give what package session's give: both are held to the
// same vectors, and the index also when it meets the lines one by one.
func TestTreeVectors(t *testing.T) {
	t.Parallel()
	logs, wanted := readVectors(t)
	for _, byLine := range []bool{false, true} {
		f := newFixture(t)
		ix, err := index.Open(context.Background(), f.st, f.path(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer ix.Close()
		for step, more := 1, true; more; step++ {
			more = false
			for name, log := range logs {
				n := len(log)
				if byLine && step < n {
					n, more = step, true
				}
				if err := os.WriteFile(filepath.Join(f.dir, name+".jsonl"), []byte(strings.Join(log[:n], "")), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := ix.CatchUp(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
		}
		for name, want := range wanted {
			t.Run(name+map[bool]string{true: "/line-by-line"}[byLine], func(t *testing.T) { checkTree(t, ix, name, &want) })
		}
	}
}

// readVectors returns the lines of each vector that can be read, and what must
// come of them.
func readVectors(t *testing.T) (map[string][]string, map[string]treeVector) {
	t.Helper()
	const dir = "../session/testdata/vectors"
	paths, err := filepath.Glob(dir + "/*/expected.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	logs, wanted := make(map[string][]string), make(map[string]treeVector)
	for _, path := range paths {
		var want treeVector
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &want)
		}
		log, err2 := os.ReadFile(filepath.Join(filepath.Dir(path), "session.jsonl"))
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if name := filepath.Base(filepath.Dir(path)); want.Error == "" {
			logs[name], wanted[name] = strings.SplitAfter(string(log), "\n"), want
		}
	}
	return logs, wanted
}

func checkTree(t *testing.T, ix *index.Index, name string, want *treeVector) {
	t.Helper()
	nodes, leaf, live, err := ix.Tree(name)
	if err != nil {
		t.Fatal(err)
	}
	byID := func(a, b index.TreeNode) int { return strings.Compare(a.ID, b.ID) }
	slices.SortFunc(nodes, byID)
	var wanted []index.TreeNode
	for _, n := range want.Tree {
		node := index.TreeNode{ID: n.ID}
		if n.Parent != nil {
			node.Parent = *n.Parent
		}
		wanted = append(wanted, node)
	}
	slices.SortFunc(wanted, byID)
	if diff := cmp.Diff(wanted, nodes, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	if leaf != want.Leaf {
		t.Errorf("leaf: %q, want %q", leaf, want.Leaf)
	}
	if diff := cmp.Diff(want.Path, live, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("path (-want +got):\n%s", diff)
	}
	s := must[index.Session](t)(ix.Get(context.Background(), name))
	if got := s.Title; s.Named && got != want.Name || !s.Named && want.Name != "" {
		t.Errorf("name: %q, want %q", got, want.Name)
	}
	if diff := cmp.Diff(want.Tags, s.Tags, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}
