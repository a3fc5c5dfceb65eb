package session_test

import (
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// A file of a machine is named by nothing that is handed on, wherever it stands.
func TestWithoutLocal(t *testing.T) {
	t.Parallel()
	for data, local := range map[string]bool{
		"file:///home/ann/a.log": true, "FILE:///a": true, " file:///a": true, "/home/ann/a.log": true, `C:\Users\ann\a.log`: true,
		"images/a.png": true, "./a:b": true, "https://example.com/a.png": false, "gs://bucket/a": false, "data:text/plain,hi": false,
	} {
		at := session.Content{Type: session.ContentTypeFile, File: &session.FileContent{Source: &session.Source{Type: "url", Data: data}}}
		result := session.ToolResult("c", "x", false)
		result.ToolResult.Parts = []session.Content{session.Text("x"), at}
		given := []session.Content{session.Text("look"), at, result}
		kept, found := session.WithoutLocal(given)
		want := 3
		if local {
			want = 2
		}
		if found != local || len(kept) != want || len(kept[want-1].ToolResult.Parts) != want-1 {
			t.Errorf("%q: kept %d blocks and %d parts, found %v", data, len(kept), len(kept[len(kept)-1].ToolResult.Parts), found)
		}
		if len(given) != 3 || len(given[2].ToolResult.Parts) != 2 {
			t.Errorf("%q: what was given has changed", data)
		}
	}
}
