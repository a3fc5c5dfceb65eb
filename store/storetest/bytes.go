package storetest

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/store"
)

var byteChecks = []check{
	{"Sizes", checkByteSizes},
	{"Exact", checkBytesExact},
	{"EmptyLines", checkBytesEmptyLines},
	{"Random", checkBytesRandom},
}

// Sizes are those at which readers with fixed buffers break.
func checkByteSizes(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a")
	var want []string
	for _, size := range []int{
		0, 1, 2, 511, 512, 513, 4095, 4096, 4097,
		64<<10 - 1, 64 << 10, 64<<10 + 1, 1<<20 - 1, 1 << 20, 1<<20 + 1, 5 << 20,
	} {
		line := sized(size)
		MustAppend(t, log, line)
		want = append(want, line)
	}
	MustAppend(t, log, num(1))
	want = append(want, num(1))
	wantLines(t, log, want...)
	wantLines(t, MustCreate(t, s, "b", want...), want...)
}

// sized returns a line of that many bytes, a JSON string if there is room.
func sized(size int) string {
	if size < 2 {
		return strings.Repeat("1", size)
	}
	return `"` + strings.Repeat("x", size-2) + `"`
}

// exact are lines in which something might be eaten, mended or cut.
var exact = []string{
	"\r", "{}\r", "\r{}", "a\rb", "\r\r",
	"\x00", "{}\x00", "\x00{}", `{"a":"` + "\x00" + `"}`, strings.Repeat("\x00", 5000),
	"\xff", "\xff\xfe", `{"a":"` + "\xc3\x28" + `"}`, "\xed\xa0\x80", "\xef\xbb\xbf{}",
	" ", "\t", " {} ", "\v\f", "\x1a", "\x04", "\x85", "\u2028", "\u2029",
	"{", "}", `{"torn":`, `"`, `\`, `\n`, `{"a":"\n"}`, "null", "not json", "😀",
	`{"b":1,"a":2,"a":3, "n" : 1e400}`,
}

func checkBytesExact(t *testing.T, s store.Store) {
	one := MustCreate(t, s, "one")
	for _, line := range exact {
		MustAppend(t, one, line)
	}
	wantLines(t, one, exact...)
	wantLines(t, MustOpen(t, s, "one"), exact...)
	wantLines(t, MustCreate(t, s, "two", exact...), exact...)

	// Each is also the last line once, and something is appended after it.
	three := MustCreate(t, s, "three", num(0))
	want := []string{num(0)}
	for i, line := range exact {
		MustAppend(t, three, line)
		MustAppend(t, MustOpen(t, s, "three"), num(i))
		want = append(want, line, num(i))
	}
	wantLines(t, three, want...)
}

func checkBytesEmptyLines(t *testing.T, s store.Store) {
	log := MustCreate(t, s, "a", "", "", num(0), "")
	wantLines(t, log, "", "", num(0), "")
	if _, err := log.Append(t.Context(), MustEnd(t, log), nil, []byte{}, []byte(num(1)), nil); err != nil {
		t.Fatalf("append empty lines: %v", err)
	}
	wantLines(t, log, "", "", num(0), "", "", "", num(1), "")
}

func checkBytesRandom(t *testing.T, s store.Store) {
	rng := rand.New(rand.NewPCG(1, 2))
	log := MustCreate(t, s, "a")
	var want []string
	for range 50 {
		var batch []string
		for range rng.IntN(4) {
			batch = append(batch, randomLine(rng))
		}
		MustAppend(t, log, batch...)
		want = append(want, batch...)
	}
	wantLines(t, log, want...)
	wantLines(t, MustOpen(t, s, "a"), want...)
}

func randomLine(rng *rand.Rand) string {
	line := make([]byte, rng.IntN(1<<rng.IntN(14)))
	for i := range line {
		if line[i] = byte(rng.UintN(256)); line[i] == '\n' {
			line[i] = '\r'
		}
	}
	return string(line)
}
