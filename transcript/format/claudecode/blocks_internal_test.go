package claudecode

import (
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// TestMoreBlocksThanAMessageHas: they are kept as one block that is not known, and nothing
// is allocated for each of them.
func TestMoreBlocksThanAMessageHas(t *testing.T) {
	many := "[" + strings.Repeat("{},", session.MaxBlocks) + "{}]"
	blocks := contents([]byte(many))
	if len(blocks) != 1 || string(blocks[0].Raw) != many {
		t.Errorf("%d blocks", len(blocks))
	}
	if n := testing.AllocsPerRun(1, func() { contents([]byte(many)) }); n > 10 {
		t.Errorf("%v allocations", n)
	}
}
