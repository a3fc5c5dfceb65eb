package cli

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

// The entry that is saved from a damaged line is the first with which the line can
// be read to its end.
func TestGluedEntryIsTheFirstThatReadsToTheEnd(t *testing.T) {
	pieces := []string{
		`{"type":`, `"message"`, `,"id":"a"`, `,"id":""`, `}`, `{"type":"message","id":"b"}`, `{"type":"tool_use","id":"c"}`,
		`"text":"`, `"`, `,`, `[`, `]`, `\`, `{"x":`, `{"type":"session","id":"s"}`, ` `, `null`,
	}
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 7))
		var b strings.Builder
		for range 1 + r.IntN(12) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		data := bytes.TrimSpace([]byte(b.String()))
		want := 0
		for at := 1; at < len(data) && want == 0; at++ {
			if isEntry(data[at:]) {
				want = at
			}
		}
		if got := gluedEntry(data); got != want {
			t.Fatalf("%s: found at %d, want %d", data, got, want)
		}
	}
}

// What a damaged line of many blocks costs is in proportion to its length.
func TestDamagedLineOfManyBlocks(t *testing.T) {
	t.Parallel()
	for _, block := range []string{`{"type":`, `{"type":[`, `{"type":"a","b":[`, `{"type":"a"},`, `{"type":"\"`} {
		line := file.RawLine{Line: store.Line{Data: []byte(strings.Repeat(block, 512<<10/len(block)))}}
		if got := classify(line); len(got) != 1 || got[0].class != lineDamaged {
			t.Errorf("%s, many times: %d lines", block, len(got))
		}
	}
}
