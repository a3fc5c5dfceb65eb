//go:build unix

package upkeep_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/postgres"
	"github.com/coppice-dev/coppice/upkeep"
)

var inDatabase opener = func(t *testing.T) store.Store {
	st, err := postgres.Open(t.Context(), postgrestest.URL(t), nil)
	must(t, err)
	t.Cleanup(func() { st.Close() })
	return st
}

// What a writer has not finished may have a secret that was redacted in the original, and keeps
// the blobs that it names. The copy says so each time, until it is gone.
func TestCopyTellsWhatIsLeft(t *testing.T) {
	t.Parallel()
	from, to := inFiles(t), inDatabase(t)
	ref, err := from.Blobs().Put(t.Context(), []byte("the key is "+token(4)))
	must(t, err)
	named := message("1", "null", "tool", fmt.Sprintf(`{"type":"tool_result","tool_result":{"tool_use_id":"c","blob":%q}}`, ref), "")
	write(t, from, "a", named)
	mustCopy(t, from, to)
	unfinished := to.Batch()
	must(t, unfinished.Add(t.Context(), "b", store.Lines([]byte(named), []byte(strings.Repeat("x", 5<<20)))))
	_, err = upkeep.Redact(t.Context(), from, upkeep.RedactRequest{Apply: true})
	must(t, err)
	for range 2 {
		if did := mustCopy(t, from, to); len(did.Left) == 0 {
			t.Errorf("copied %+v", did)
		}
	}
	unfinished.Discard()
	if did := mustCopy(t, from, to); len(did.Left) > 0 || strings.Contains(everywhere(t, to), token(4)) {
		t.Errorf("at last copied %+v", did)
	}
}
