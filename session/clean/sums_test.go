package clean

import (
	"bytes"
	"strings"
	"testing"
)

// guardOf returns a guard that knows some values.
func guardOf(values ...string) *Guard {
	l := &list{Key: bytes.Repeat([]byte{7}, 32)}
	g := newGuard(l)
	for _, v := range values {
		l.Values = append(l.Values, g.describe("private-key", v, false))
	}
	return newGuard(l)
}

// A long secret is found wherever it is, and a text that repeats its middle, or all of it,
// leads to no more than one digest of it.
func TestLongSecretsCostNoMoreThanTheText(t *testing.T) {
	t.Parallel()
	const size = 40_000
	secret := "begin" + strings.Repeat("A", size) + "end"
	even := strings.Repeat("B", size)
	g := guardOf(secret, even)
	for name, test := range map[string]struct {
		text  string
		found int
	}{
		"there":          {"x" + secret + "y", 1},
		"twice":          {secret + " " + secret, 1},
		"its middle":     {strings.Repeat("A", 3*size), 0},
		"everywhere":     {strings.Repeat("B", 3*size), 1},
		"nearly all":     {secret[1:] + secret[:len(secret)-1], 0},
		"both, repeated": {strings.Repeat(secret+even, 2), 2},
	} {
		found := 0
		digests := g.scan([]byte(test.text), func(string, []byte) { found++ })
		if found != test.found || digests > 2 {
			t.Errorf("%s: %d found with %d digests", name, found, digests)
		}
	}
}
