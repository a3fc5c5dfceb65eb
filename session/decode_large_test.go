package session_test

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// allocated returns how many bytes do takes from the heap.
func allocated(do func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// An entry of very many small values takes memory in proportion to its text, and comes back as it
// was written.
func TestEntryOfManySmallValues(t *testing.T) {
	list := "[" + strings.Repeat("1,", 1_000_000) + "1]"
	for name, text := range map[string]string{
		"custom": `{"type":"custom","custom":{"custom_type":"x","data":{"before":[1],"a":` + list + `,"after":{"b":true}}}}`,
		"call":   `{"type":"message","message":{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"c","name":"f","input":{"before":[1],"a":` + list + `,"after":{"b":true}}}}]}}`,
		"lists":  `{"type":"custom","custom":{"custom_type":"x","data":{"a":[` + strings.Repeat("[[]],", 400_000) + `[]]}}}`,
		"other":  `{"type":"other","a":` + list + `}`,
	} {
		s := newMemory(t, memory.New(nil))
		var e session.Entry
		if n := allocated(func() {
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				t.Fatal(err)
			}
		}); n > 8*len(text) {
			t.Errorf("%s: to read %d bytes takes %d, %d times as many", name, len(text), n, n/len(text))
		}
		var id string
		if n := allocated(func() { id = mustGet(s.AppendEntry(e))(t) }); n > 8*len(text) {
			t.Errorf("%s: to append %d bytes takes %d, %d times as many", name, len(text), n, n/len(text))
		}
		var back session.Entry
		if n := allocated(func() { back = mustGet(s.Entry(id))(t) }); n > 8*len(text) {
			t.Errorf("%s: to read back %d bytes takes %d, %d times as many", name, len(text), n, n/len(text))
		}
		if written := mustGet(json.Marshal(back))(t); !bytes.Contains(written, []byte(text[strings.Index(text, `"a":`):strings.Index(text, `"a":`)+2_000_000])) {
			t.Errorf("%s: something else comes back", name)
		}
		if name != "custom" {
			continue
		}
		if large, ok := back.Custom.Data["a"].(json.RawMessage); !ok || string(large) != list || back.Custom.Data["after"].(map[string]any)["b"] != true {
			t.Errorf("%.80v", back.Custom.Data)
		}
		back.Custom.Data["more"] = 1.0 // so that it is encoded again
		if written := mustGet(json.Marshal(back))(t); !bytes.Contains(written, []byte(`"a":`+list)) {
			t.Error("a change of the entry loses what was not decoded")
		}
	}
}
