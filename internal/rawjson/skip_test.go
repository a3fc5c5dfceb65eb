package rawjson_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// checkValid compares the verdicts of Valid and Skip with that of encoding/json.
func checkValid(t *testing.T, b []byte) {
	t.Helper()
	want := json.Valid(b)
	if got := rawjson.Valid(b); got != want {
		t.Fatalf("Valid(%.80q) = %v, encoding/json says %v", b, got, want)
	}
	end := rawjson.Skip(b, 0)
	if end > len(b) || end < -1 || end == 0 {
		t.Fatalf("Skip(%.80q) = %d, outside the text", b, end)
	}
	if want && strings.Trim(string(b[max(end, 0):]), " \t\r\n") != "" {
		t.Fatalf("Skip(%.80q) = %d, want the whole value", b, end)
	}
	if end > 0 && !json.Valid(b[:end]) {
		t.Fatalf("Skip(%.80q) = %d, but that much is not a value", b, end)
	}
}

func TestValidAgrees(t *testing.T) {
	t.Parallel()
	for _, s := range append(nasty(), heads()...) {
		checkValid(t, []byte(s))
		checkValid(t, []byte("["+s+"]"))
		checkValid(t, []byte(`{"k":`+s+`}`))
		if len(s) > 200 {
			continue
		}
		for cut := range len(s) {
			checkValid(t, []byte(s[:cut]))
		}
	}
}

// TestValidMutations changes each byte of each short text in turn.
func TestValidMutations(t *testing.T) {
	t.Parallel()
	const swaps = "\"\\{}[],:0-.eu \n\x00\x1f\x80"
	for _, s := range append(disputed(), heads()...) {
		b := []byte(s)
		for i, old := range b {
			for _, c := range []byte(swaps) {
				b[i] = c
				checkValid(t, b)
			}
			b[i] = old
		}
	}
}

// TestValidShort tries every text of up to four bytes over what JSON is made of.
func TestValidShort(t *testing.T) {
	t.Parallel()
	const alphabet = "{}[],:\"\\019-+.eEn \n\x00"
	var b [4]byte
	var grow func(n int)
	grow = func(n int) {
		checkValid(t, b[:n])
		if n == len(b) {
			return
		}
		for _, c := range []byte(alphabet) {
			b[n] = c
			grow(n + 1)
		}
	}
	grow(0)
}

func TestSkip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		from int
		want int
	}{
		{`{"a":1}`, 0, 7},
		{`{"a":1}`, 5, 6},
		{`{"a":1}`, 1, 4},
		{`{"a":1}`, 4, -1},
		{"  [1] x", 0, 5},
		{"  [1] x", 1, 5},
		{"1 2", 1, 3},
		{"01", 0, 1},
		{"12abc", 0, 2},
		{"truely", 0, 4},
		{`"a"`, 3, -1},
		{`"a"`, 4, -1},
		{`"a"`, math.MaxInt, -1},
		{`"a"`, -1, -1},
		{"", 0, -1},
		{"   ", 0, -1},
		{"[1", 0, -1},
		{strings.Repeat("[", 10001), 0, -1},
		{strings.Repeat("[", 10001) + strings.Repeat("]", 10001), 0, -1},
		{strings.Repeat("[", 10001) + strings.Repeat("]", 10001), 1, 20001},
	} {
		if got := rawjson.Skip([]byte(c.text), c.from); got != c.want {
			t.Errorf("Skip(%.20q, %d) = %d, want %d", c.text, c.from, got, c.want)
		}
	}
}
