package format_test

import (
	"testing"

	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
)

func TestJSONLTree(t *testing.T) {
	t.Parallel()
	var tree jsonl.Tree
	if got := tree.Resolve("a"); got != "a" {
		t.Errorf("a line that is a record resolves to %q", got)
	}
	tree.Pass("b", "a")
	tree.Pass("c", "b")
	tree.Pass("top", "")
	tree.Pass("", "a")
	tree.Pass("self", "self")
	for parent, want := range map[string]string{"b": "a", "c": "a", "top": "", "d": "d", "self": "self", "": ""} {
		if got := tree.Resolve(parent); got != want {
			t.Errorf("%q resolves to %q, want %q", parent, got, want)
		}
	}
}
