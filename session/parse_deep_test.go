package session_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// nested is an entry whose data nests so many levels, with a member twice at the bottom if repeats
// is true.
func nested(levels int, repeats bool) []byte {
	bottom := `{"b":[0,{"c":1}]}`
	if repeats {
		bottom = `{"b":[0,{"c":1,"c":2}]}`
	}
	return fmt.Appendf(nil, `{"type":"custom","custom":{"custom_type":"x","data":%s%s%s}}`, strings.Repeat(`{"a":`, levels), bottom, strings.Repeat(`}`, levels))
}

// To read an entry costs what its bytes cost, however deep they nest.
func TestReadingADeepEntry(t *testing.T) {
	cost := func(levels int) uint64 {
		text := nested(levels, false)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := session.ParseEntry(text); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	cost(1_000) // what is only made once
	if few, many := cost(1_000), cost(8_000); many > 12*few {
		t.Errorf("eight times as deep takes %d bytes of memory, and not %d: %d times as many", many, few, many/few)
	}
	_, err := session.ParseEntry(nested(2, true))
	if err == nil || !strings.Contains(err.Error(), `"custom.data.a.a.b[1].c"`) {
		t.Errorf("a member occurs twice: %v", err)
	}
}
