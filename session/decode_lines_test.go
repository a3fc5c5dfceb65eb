package session

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/coppice-dev/coppice/store"
)

// decodeTogether decodes messages, every other one large, and returns two neighbours.
func decodeTogether() (small *Entry, large weak.Pointer[Entry]) {
	var lines lineDecoder
	for i := range 200 {
		text := "small"
		if i%2 == 1 {
			text = strings.Repeat("large ", 2000)
		}
		lines.add(store.Pos(i), fmt.Appendf(nil, `{"type":"message","id":"%d","parent_id":null,"timestamp":"2024-01-01T10:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":{"content":%q}}]}}`, i, text))
	}
	first := lines.finish()[0].lines
	return first[0].entry, weak.Make(first[1].entry)
}

// Entries that were decoded together share memory, but whoever keeps a small one
// does not keep the large ones beside it.
func TestLargeEntriesAreNotKeptByTheirNeighbours(t *testing.T) {
	t.Parallel()
	small, large := decodeTogether()
	runtime.GC()
	if large.Value() != nil {
		t.Error("a large entry is still in memory")
	}
	if small.Message.Content[0].Text.Content != "small" {
		t.Errorf("the small one is %v", small.Message)
	}
}
