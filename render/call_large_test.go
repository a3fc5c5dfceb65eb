package render_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// Of a list that is too long to be decoded, a line says how long it is.
func TestGistOfAVeryLongList(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"a", "rows"} {
		var e session.Entry
		text := `{"type":"message","message":{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"c","name":"f","input":{"` + key + `":[` + strings.Repeat("1,", 100_000) + `1]}}}]}}`
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatal(err)
		}
		if gist := render.Gist(&e, 0); len(gist) > 100 || !strings.Contains(gist, "100,001") && !strings.Contains(gist, "100001") {
			t.Errorf("%.200s", gist)
		}
	}
}
