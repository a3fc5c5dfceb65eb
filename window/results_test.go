package window_test

import (
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

func TestShortenResults(t *testing.T) {
	t.Parallel()
	s, ids := gardening(t)
	before := contextOf(t, s)
	size := func(c *session.Context) (n int) {
		for i := range c.Entries {
			for _, b := range c.Entries[i].Message.Content {
				if b.ToolResult != nil {
					n += len(b.ToolResult.Content)
				}
			}
		}
		return n
	}
	edits := window.ShortenResults(before, 6000)
	if _, err := s.AppendAll(edits...); err != nil {
		t.Fatal(err)
	}
	after := contextOf(t, s)
	if gained := size(before) - size(after); gained < 6000 || gained > 9000 {
		t.Errorf("%d bytes shorter, want about 6000", gained)
	}
	for name, id := range ids {
		if after.Edited[id] == "" || after.Edited[id] == before.Edited[id] {
			t.Errorf("the %s result is as it was", name)
		}
	}
	for i := range after.Entries {
		for _, b := range after.Entries[i].Message.Content {
			if b.ToolResult != nil && b.ToolResult.ToolUseID == "c3" && b.ToolResult.Content != "a.txt" {
				t.Errorf("a short result became %q", b.ToolResult.Content)
			}
			if b.ToolResult != nil && b.ToolResult.ToolUseID == "c1" && (len(b.ToolResult.Extra) == 0 || !strings.Contains(b.ToolResult.Content, "left out")) {
				t.Errorf("a long result became %+v", b.ToolResult)
			}
		}
	}
	for range 3 { // it never becomes nothing, and there is an end to it
		if edits = window.ShortenResults(contextOf(t, s), 1<<20); len(edits) > 0 {
			if _, err := s.AppendAll(edits...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if end := contextOf(t, s); len(edits) > 0 || size(end) < 1000 {
		t.Errorf("%d edits are left, and %d bytes", len(edits), size(end))
	}
}
