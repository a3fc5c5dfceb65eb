package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

func TestDeedsSayWhatACallDoes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		input map[string]any
		want  []string
	}{
		{"Bash", map[string]any{"command": "go test"}, []string{"ran command "}},
		{"shell", map[string]any{"command": []any{"bash", "-lc", "ls"}}, []string{"ran command "}},
		{"Edit", map[string]any{"file_path": "a.go", "old_string": "x", "new_string": "y"}, []string{"edited file a.go"}},
		{"Write", map[string]any{"file_path": "b.go", "content": "x"}, []string{"edited file b.go"}},
		{"apply_patch", map[string]any{"input": "*** Begin Patch\n*** Delete File: c.go\n*** Update File: d.go\n@@\n-x\n+y\n*** End Patch"}, []string{"deleted file c.go", "edited file d.go"}},
		{"Read", map[string]any{"file_path": "a.go"}, []string{"read file a.go"}},
		{"Grep", map[string]any{"pattern": "x", "path": "."}, []string{"made search "}},
		{"WebFetch", map[string]any{"url": "https://example.org", "prompt": "what"}, []string{"fetched page "}},
		{"frobnicate", map[string]any{"path": "a.go"}, []string{"made other call "}},
	} {
		var got []string
		for _, d := range render.Deeds(&session.ToolUseContent{Name: tt.name, Input: tt.input}) {
			got = append(got, d.Verb+" "+d.One+" "+d.What)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}
